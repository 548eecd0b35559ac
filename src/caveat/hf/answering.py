"""Extractive question answering: a distribution over the spans of a context."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from caveat.errors import InputTypeError, ParameterError, ShapeError
from caveat.hf.tasks import HeadTask
from caveat.predictive import CategoricalPredictive
from caveat.sampling import MCDropout

_LONGEST = 15  # tokens of an answer, as in transformers
_TOGETHER = 8  # windows of long contexts that are run at a time


class _Span(NamedTuple):
    """An answer, as tokens of one of the windows that hold it."""

    window: int
    first: int
    last: int
    text: tuple[int, int]  # where it begins and ends in the context


class QuestionAnswering(HeadTask):
    """The classes are all spans of the context of at most 15 tokens.

    Under a draw, p(span) is proportional to exp(start logit + end logit). A context
    that is too long for the model is read in windows that overlap by half; a span is
    judged in the window where the shorter of its sides is longest, so that each span
    is one class.
    """

    def encode(self, item: Any) -> Any:
        """Tokens of question and context, window by window."""
        question, context = _parts(item)
        if not getattr(self._processor, "is_fast", False):
            raise ParameterError(
                "Question answering needs a fast tokenizer, which knows where tokens "
                f"stand in the text. Got {type(self._processor).__name__}."
            )
        longest = self._longest
        options: dict[str, Any] = {}
        if longest is not None:
            overlap = self._overlap(question, longest)
            options = {"max_length": longest, "stride": overlap}
            options |= {"truncation": "only_second"}
        row = self._processor(
            question,
            context,
            return_offsets_mapping=True,
            return_overflowing_tokens=True,
            **options,
        )
        if not _places(row, 0):
            raise ParameterError(f"A context must have tokens. Got {context!r}.")
        return row

    def length(self, row: Any) -> int:
        """The tokens of the first window, which is the longest."""
        return len(row["input_ids"][0])

    def can_pad(self, mc: MCDropout, short: Any, long: Any) -> bool:
        """Whether the answers to two questions are the same alone and together."""
        first, second = (next(_windows(row)) for row in (short, long))
        return super().can_pad(mc, first, second)

    def answers(
        self, mc: MCDropout, items: Sequence[Any], rows: Sequence[Any], n_draws: int
    ) -> list[Any]:
        """The most probable span of each context."""
        windows = [list(_windows(row))[: self._most(row)] for row in rows]
        every = [window for own in windows for window in own]
        drawn = mc.draws(
            **self._arguments(every),
            n_draws=n_draws,
            batch_size=_TOGETHER if len(every) > len(rows) else None,
            progress=False,
        )
        sizes = [len(own) for own in windows]
        start, end = (part.split(sizes, 1) for part in _ends(drawn))
        return [
            self._answer(item, _spans(row, size), *ends)
            for item, row, size, *ends in zip(
                items, rows, sizes, start, end, strict=True
            )
        ]

    def _most(self, row: Any) -> int:
        """How many windows are read."""
        return 1 if self._asked.truncation else len(row["input_ids"])

    def _overlap(self, question: str, longest: int) -> int:
        """Tokens that two windows share: half of the room that the question leaves."""
        own = self._processor(question, add_special_tokens=False)["input_ids"]
        marks = self._processor.num_special_tokens_to_add(pair=True)
        room = longest - marks - len(own)
        if room < 2:
            raise ParameterError(
                f"A question and a context may have {longest} tokens. Got a question "
                f"that leaves room for {max(room, 0)}; shorten {question!r:.80}."
            )
        return room // 2

    def _answer(
        self, item: Any, spans: list[_Span], start: Tensor, end: Tensor
    ) -> dict[str, Any]:
        _, context = _parts(item)
        window, first, last = (
            torch.tensor([span[k] for span in spans]) for k in range(3)
        )
        logits = start[:, window, first] + end[:, window, last]
        # A class that cannot be: a single span is one of two, and certain.
        logits = torch.nn.functional.pad(logits, (0, 1), value=-torch.inf)
        found = CategoricalPredictive.from_logits(logits[:, None])
        order = found.probs[0, : len(spans)].argsort(descending=True, stable=True)
        named = [
            _described(context, spans[i].text, found.probs[0, i])
            for i in order[: self._asked.top_k or 1].tolist()
        ]
        several = {} if self._asked.top_k is None else {"spans": named}
        return {
            **named[0],
            "entropy": float(found.entropy[0]),
            "mutual_information": float(found.mutual_information[0]),
            **several,
        }


def _windows(row: Any) -> Iterator[dict[str, Any]]:
    """What the model is given of each window."""
    aside = ("offset_mapping", "overflow_to_sample_mapping")
    names = [name for name in row if name not in aside]
    for number in range(len(row["input_ids"])):
        yield {name: row[name][number] for name in names}


def _ends(drawn: Any) -> tuple[Tensor, Tensor]:
    """Start and end logits of all draws, of shape (draws, windows, tokens)."""
    found = [getattr(drawn, f"{name}_logits", None) for name in ("start", "end")]
    start, end = found
    if not isinstance(start, Tensor) or not isinstance(end, Tensor):
        raise InputTypeError(
            f"Question answering needs a head that gives start_logits and end_logits. "
            f"Got a model that gives {type(drawn).__name__}."
        )
    if start.ndim != 3 or end.shape != start.shape:
        raise ShapeError(
            f"Question answering needs a logit for the start and one for the end per "
            f"token. Got {tuple(start.shape[1:])} and {tuple(end.shape[1:])}."
        )
    return start.double(), end.double()


def _spans(row: Any, n_windows: int) -> list[_Span]:
    """Each span of the context once, in the window that shows most around it."""
    best: dict[tuple[int, int], tuple[int, _Span]] = {}
    step = _step(row) if n_windows > 1 else 0
    for number in range(n_windows):
        own, offsets = _places(row, number), row["offset_mapping"][number]
        begin = number * step - own[0]
        for a in own:
            for b in range(a, min(a + _LONGEST, own[-1] + 1)):
                place, margin = (begin + a, begin + b), min(a - own[0], own[-1] - b)
                if place not in best or margin > best[place][0]:
                    text = offsets[a][0], offsets[b][1]
                    best[place] = margin, _Span(number, a, b, text)
    return [span for _, span in best.values()]


def _places(row: Any, number: int) -> list[int]:
    """Where in a window the context is."""
    return [i for i, part in enumerate(row.sequence_ids(number)) if part == 1]


def _step(row: Any) -> int:
    """By how many tokens of the context a window begins after the one before."""
    first, second = (
        [row["offset_mapping"][n][i] for i in _places(row, n)] for n in (0, 1)
    )
    n = len(first)
    return next(s for s in range(1, n + 1) if first[s:] == second[: n - s])


def _described(context: str, text: tuple[int, int], prob: Any) -> dict[str, Any]:
    start, end = text
    answer = context[start:end]
    return {"answer": answer, "start": start, "end": end, "score": float(prob)}


def _parts(item: Any) -> tuple[str, str]:
    if isinstance(item, Mapping) and {"question", "context"} <= set(item):
        question, context = item["question"], item["context"]
        if isinstance(question, str) and isinstance(context, str):
            return question, context
    raise InputTypeError(
        f"An item must be a dict with 'question' and 'context', both strings. Got "
        f"{item!r:.80}."
    )
