"""``caveat.hf.pipeline``: transformers' manners, with the doubt of every answer."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from torch import nn

from caveat import _validation as check
from caveat._progress import ProgressBar
from caveat._random import Seed
from caveat.errors import InputTypeError
from caveat.hf.answering import QuestionAnswering
from caveat.hf.tasks import (
    HeadTask,
    ImageClassification,
    Regression,
    TextClassification,
    TokenClassification,
)
from caveat.sampling import MCDropout

_KINDS: dict[str, type[HeadTask]] = {
    "text-classification": TextClassification,
    "token-classification": TokenClassification,
    "question-answering": QuestionAnswering,
    "image-classification": ImageClassification,
}
_WINDOW = 32  # batches that are read ahead and sorted by length


class Pipeline:
    """Items in, answers out; made by :func:`pipeline`."""

    def __init__(
        self, task: HeadTask, mc: MCDropout, n_draws: int, batch_size: int
    ) -> None:
        self._task, self._mc = task, mc
        self._n_draws, self._batch_size = n_draws, batch_size

    def __call__(self, items: Any, *, progress: bool | None = None) -> Any:
        """Answers for one item, a list, or anything that can be run through.

        Parameters
        ----------
        items : str, pair, dict, image, list, generator or data set
            One item gives one answer, a list a list; all else an iterator, which reads
            some batches ahead.
        progress : bool, optional
            Show a bar; by default on a terminal, when it takes more than a second.
        """
        if isinstance(items, list):
            return list(self._run(items, len(items), progress))
        single = isinstance(items, str | Mapping | tuple)
        if single or not hasattr(items, "__iter__"):
            return next(self._run([items], 1, progress))
        if hasattr(items, "shape"):
            raise InputTypeError(
                f"Several arrays must come as a list. Got one "
                f"{type(items).__name__}; pass [image] or list(images)."
            )
        total = len(items) if hasattr(items, "__len__") else None
        return self._run(items, total, progress)

    def _run(
        self, items: Iterable[Any], total: int | None, progress: bool | None
    ) -> Iterator[Any]:
        rest = iter(items)
        with ProgressBar("items", total, progress) as bar:
            while window := list(islice(rest, _WINDOW * self._batch_size)):
                yield from self._window(window, bar)

    def _window(self, items: list[Any], bar: ProgressBar) -> list[Any]:
        """Answers in the order given; computed in the order of lengths."""
        rows = [self._task.encode(item) for item in items]
        order = sorted(range(len(rows)), key=lambda i: self._task.length(rows[i]))
        found: list[Any] = [None] * len(rows)
        for begin in range(0, len(order), self._batch_size):
            some = order[begin : begin + self._batch_size]
            answers = self._task.answers(
                self._mc, [items[i] for i in some], [rows[i] for i in some],
                self._n_draws,
            )  # fmt: skip
            for i, answer in zip(some, answers, strict=True):
                found[i] = answer
            bar.advance(len(some))
        return found


def pipeline(
    task: str,
    model: nn.Module,
    tokenizer: Any,
    *,
    n_draws: int = 30,
    batch_size: int = 8,
    seed: Seed = 0,
    level: float = 0.9,
    precision: Any = None,
) -> Pipeline:
    """A function from texts or images to answers with their doubt.

    Draws are functions and noise has an address by token, so answers depend neither
    on ``batch_size`` nor on the order or number of items, up to rounding.

    Parameters
    ----------
    task : str
        ``"text-classification"``, ``"token-classification"``,
        ``"question-answering"``, ``"image-classification"`` or ``"regression"``.
    model : nn.Module
        A model of transformers with the head of the task, adapters included.
    tokenizer : tokenizer or image processor
        What makes inputs of items.
    n_draws : int
        T of the papers.
    batch_size : int
        Items run at a time, sorted by length.
    seed : int, torch.Generator or None
        Fixes the draws.
    level : float
        Of intervals. For classes: that of the label's probability, over the draws.
    precision : float, optional
        τ for ``"regression"``, as in :meth:`caveat.MCDropout.regress`.

    Returns
    -------
    Pipeline
        Called with items. Answers are dicts: label, score, interval, probs, entropy
        and mutual_information (nats); a list of them for tokens; answer, start and end
        for questions; mean, std, epistemic_std and interval for regressions.
    """
    check.one_of("task", task, (*_KINDS, "regression"))
    n_draws = check.positive_int("n_draws", n_draws)
    batch_size = check.positive_int("batch_size", batch_size)
    level = check.unit_interval("level", level)
    # Closed forms would hang on the size of a batch.
    mc = MCDropout(model, seed=seed, analytic=False)
    made: HeadTask
    if task == "regression":
        made = Regression(model, tokenizer, level, precision)
    else:
        made = _KINDS[task](model, tokenizer, level)
    return Pipeline(made, mc, n_draws, batch_size)
