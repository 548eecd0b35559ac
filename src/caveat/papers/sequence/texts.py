"""Words as numbers: the two tasks, their parts and their batches.

A text is filled at its front to a multiple of 8 words, whatever else is in its batch:
predictions do not depend on the company it is in, and only few lengths occur.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from caveat.data import load_movie_ratings, load_sst2

TASKS = ("ratings", "sentiment")
N_WORDS = 5000  # of the vocabulary, with the two numbers below
FILLER, UNKNOWN = 0, 1
MOST_WORDS = {"ratings": 48, "sentiment": 40}
_STEP = 8
_SPLIT_SEED = 0
_TEST_SHARE = _VALIDATION_SHARE = 0.2  # of all reviews, and of the rest


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts of one length or several, and what is to be predicted."""

    words: tuple[Tensor, ...]  # numbers of words, shape (rows, length) for each length
    targets: tuple[Tensor, ...]  # standardised ratings (rows, 1), or labels (rows,)

    def __len__(self) -> int:
        return sum(len(group) for group in self.words)

    def batches(
        self, size: int, generator: torch.Generator
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """All rows once, in random batches of one length each."""
        places = [
            (group, rows)
            for group, words in enumerate(self.words)
            for rows in torch.randperm(len(words), generator=generator).split(size)
        ]
        for k in torch.randperm(len(places), generator=generator).tolist():
            group, rows = places[k]
            yield self.words[group][rows], self.targets[group][rows]


@dataclass(frozen=True, eq=False)
class TextTask:
    """What to learn, to choose settings by, and to be tested on."""

    train: Texts
    validation: Texts
    test: Texts
    n_outputs: int  # 1 for a rating, 2 for the logits of a sentiment
    scale: float = 1.0  # a rating is scale times the standardised one plus shift
    shift: float = 0.0


@lru_cache(maxsize=2)
def load_task(name: str, most_rows: int | None = None) -> TextTask:
    """One of the two tasks, of each part only the first so many rows."""
    return {"ratings": _ratings, "sentiment": _sentiment}[name](most_rows)


def _ratings(most_rows: int | None) -> TextTask:
    """The last words of each review, where its author sums up."""
    data = load_movie_ratings()
    order = np.random.default_rng(_SPLIT_SEED).permutation(len(data))
    n_test = round(_TEST_SHARE * len(order))
    n_validation = round(_VALIDATION_SHARE * (len(order) - n_test))
    cuts = [n_test, n_test + n_validation]  # test, validation, training rows
    places = [rows[:most_rows] for rows in np.split(order, cuts)]
    known = data.rating[places[-1]]
    shift, scale = known.mean(), known.std()
    targets = torch.tensor((data.rating - shift) / scale, dtype=torch.float32)
    texts = [_cut(text, "ratings") for text in data.text]
    numbers = _vocabulary([texts[k] for k in places[-1]])
    parts = (
        _part([texts[k] for k in rows], targets[rows].unsqueeze(-1), numbers)
        for rows in places
    )
    test, validation, train = parts
    return TextTask(train, validation, test, 1, float(scale), float(shift))


def _sentiment(most_rows: int | None) -> TextTask:
    data = load_sst2()
    parts = [
        (
            [_cut(text, "sentiment") for text in part.text[:most_rows]],
            torch.from_numpy(part.label[:most_rows]),
        )
        for part in (data.train, data.dev, data.test)
    ]
    numbers = _vocabulary(parts[0][0])
    train, validation, test = (_part(*part, numbers) for part in parts)
    return TextTask(train, validation, test, n_outputs=2)


def _cut(text: str, task: str) -> list[str]:
    return text.split()[-MOST_WORDS[task] :]


def _vocabulary(texts: Sequence[Sequence[str]]) -> dict[str, int]:
    """Numbers of the most frequent words, those met first before their equals."""
    counts = Counter(word for text in texts for word in text)
    kept = counts.most_common(N_WORDS - 2)
    return {word: k for k, (word, _) in enumerate(kept, start=2)}


def _part(
    texts: Sequence[Sequence[str]], targets: Tensor, numbers: dict[str, int]
) -> Texts:
    lengths = torch.tensor([-len(text) // _STEP * -_STEP for text in texts])
    words, own = [], []
    for length in lengths.unique().tolist():
        rows = (lengths == length).nonzero().squeeze(-1)
        words.append(
            torch.tensor([_numbered(texts[k], numbers, length) for k in rows.tolist()])
        )
        own.append(targets[rows])
    return Texts(tuple(words), tuple(own))


def _numbered(text: Sequence[str], numbers: dict[str, int], length: int) -> list[int]:
    found = [numbers.get(word, UNKNOWN) for word in text]
    return [FILLER] * (length - len(found)) + found
