"""``caveat.hf.pipeline``: transformers' manners, with the doubt of every answer."""

from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import Any

from torch import nn

from caveat import _validation as check
from caveat._progress import ProgressBar
from caveat._random import Seed
from caveat.errors import InputTypeError, ParameterError
from caveat.hf.answering import QuestionAnswering
from caveat.hf.checking import check_processor, check_transformer
from caveat.hf.padding import ends_known
from caveat.hf.tagging import TokenClassification
from caveat.hf.tasks import (
    Asked,
    HeadTask,
    ImageClassification,
    Regression,
    TextClassification,
)
from caveat.sampling import MCDropout
from caveat.sampling.inputs import check_model

_KINDS: dict[str, type[HeadTask]] = {
    "text-classification": TextClassification,
    "token-classification": TokenClassification,
    "question-answering": QuestionAnswering,
    "image-classification": ImageClassification,
    "regression": Regression,
}
_WINDOW = 32  # batches that are read ahead and sorted by length


class Pipeline:
    """Items in, answers out; made by :func:`pipeline`."""

    def __init__(
        self, task: HeadTask, mc: MCDropout, n_draws: int, batch_size: int
    ) -> None:
        self._task, self._mc = task, mc
        self._n_draws, self._batch_size = n_draws, batch_size
        self._can_pad: bool | None = None  # not known yet

    def __call__(self, items: Any, *, progress: bool | None = None) -> Any:
        """Answers for one item, a list, or anything that can be run through.

        Parameters
        ----------
        items : str, pair, dict, image, list, generator, data set or frame
            One item gives one answer, a list a list; all else an iterator, which reads
            some batches ahead. Of a data set or frame a row is a dict.
        progress : bool, optional
            Show a bar; by default on a terminal, when it takes more than a second.
        """
        if isinstance(items, list):
            return list(self._run(items, len(items), progress))
        if self._task.single(items) or not hasattr(items, "__iter__"):
            return next(self._run([items], 1, progress))
        items = _by_rows(items)
        if len(getattr(items, "shape", (0,))) > 1 and not _has_columns(items):
            raise InputTypeError(
                f"Several items must come as a list. Got one {type(items).__name__} of "
                f"shape {tuple(items.shape)}; pass list(images), or a column of texts."
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
        for some in self._batches(order, rows):
            own, encoded = [items[i] for i in some], [rows[i] for i in some]
            with ends_known():
                answers = self._task.answers(self._mc, own, encoded, self._n_draws)
            for i, answer in zip(some, answers, strict=True):
                found[i] = answer
            bar.advance(len(some))
        return found

    def _batches(self, order: list[int], rows: list[Any]) -> Iterator[list[int]]:
        """Numbers of rows, shortest first, those that run together."""
        size, lengths = self._batch_size, [self._task.length(row) for row in rows]
        for some in _chunks(order, size):
            if self._can_pad is None and lengths[some[0]] < lengths[some[-1]]:
                with ends_known():
                    self._can_pad = self._task.can_pad(
                        self._mc, rows[some[0]], rows[some[-1]]
                    )
            if self._can_pad is not False:
                yield some
                continue
            for _, alike in groupby(some, lengths.__getitem__):
                yield list(alike)


def _chunks(order: list[int], size: int) -> Iterator[list[int]]:
    for begin in range(0, len(order), size):
        yield order[begin : begin + size]


def _by_rows(items: Any) -> Any:
    """A frame of pandas or polars as its rows; all else as it is."""
    if hasattr(items, "iter_rows") and hasattr(items, "columns"):
        return list(items.iter_rows(named=True))
    if hasattr(items, "iloc") and hasattr(items, "columns"):
        return items.to_dict("records")
    return items


def _has_columns(items: Any) -> bool:
    """Whether this is a data set of ``datasets``, whose rows are dicts."""
    return hasattr(items, "column_names")


def pipeline(  # noqa: PLR0913, a door: options by name
    task: str,
    model: nn.Module,
    tokenizer: Any = None,
    *,
    n_draws: int = 30,
    batch_size: int = 8,
    seed: Seed = 0,
    level: float = 0.9,
    precision: Any = None,
    top_k: int | None = None,
    truncation: bool = False,
    words: bool = False,
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
    top_k : int, optional
        Only so many classes in ``probs``, the most probable first; of questions so
        many answers as ``spans``. By default all classes and the best answer.
    truncation : bool
        Cut texts that are too long for the model; otherwise they are an error.
    words : bool
        For ``"token-classification"``: an answer for each word, that of its first
        token, instead of each token.

    Returns
    -------
    Pipeline
        Called with items. Answers are dicts: label, score, interval, probs, entropy
        and mutual_information (nats); a list of them for tokens; answer, start and end
        for questions; mean, std, epistemic_std and interval for regressions.
    """
    check.one_of("task", task, _KINDS)
    check_transformer(check_model(model))
    check_processor(tokenizer)
    for name, value, owner in (
        ("precision", precision, "regression"),
        ("words", words or None, "token-classification"),
    ):
        if value is not None and task != owner:
            raise ParameterError(f"{name} is for {owner!r}. Got it for {task!r}.")
    if top_k is not None and task == "regression":
        raise ParameterError("top_k is for classes and spans. Got it for 'regression'.")
    n_draws = check.positive_int("n_draws", n_draws)
    batch_size = check.positive_int("batch_size", batch_size)
    if top_k is not None:
        top_k = check.positive_int("top_k", top_k)
    asked = Asked(
        check.unit_interval("level", level),
        precision,
        top_k,
        check.boolean("truncation", truncation),
        check.boolean("words", words),
    )
    # Closed forms would hang on the size of a batch.
    mc = MCDropout(model, seed=seed, analytic=False)
    return Pipeline(_KINDS[task](model, tokenizer, asked), mc, n_draws, batch_size)
