"""``caveat.export``: a model, its sampler and its answers in one file."""

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from caveat import _validation as check
from caveat._drafts import checked_output
from caveat.errors import InputTypeError, ParameterError
from caveat.exporting.subjects import (
    ExportSubject,
    Question,
    SampledSubject,
    refuse_what_has_no_graph,
)
from caveat.exporting.summaries import is_of_classes
from caveat.sampling import MCDropout
from caveat.sampling.inputs import Batch
from caveat.sampling.outputs import Output

_SUFFIX = """path must end in .onnx (for ONNX Runtime and its kin) or in .pt2 (for
torch.export.load). Got {path!r}."""

_ANALYTIC = """The graph of a file holds the draws alone, and no closed forms. Got an
MCDropout with analytic=True, whose answers it could not give; make one with
analytic=False, which a file equals."""


def export(
    model: Any,
    example: Any,
    path: str | os.PathLike[str],
    *,
    outputs: Sequence[str] = ("mean", "std"),
    precision: Any = None,
    level: float = 0.95,
    output: Output | str | None = None,
    class_dim: int | None = None,
) -> Path:
    """Write a model together with its sampler, to be run without Caveat.

    The graph takes the inputs of the model, ``seed`` and ``n_draws``. It draws the
    masks itself, by the same hash as :class:`MCDropout`, so that it gives the numbers
    that ``MCDropout(model, seed=seed, analytic=False)`` gives. What lies before the
    first site is run once, the rest in a loop over the draws. Before the file is
    written it is compared with Caveat; if they differ, nothing is written.

    Parameters
    ----------
    model : MCDropout, DropoutRegressor or DropoutClassifier
        What to export. Of an estimator a recipe or a pool; ``n_draws`` of the graph is
        for each of its networks.
    example : Tensor or array, tuple of them, or dict by argument
        Inputs as ``draws`` takes them. Their sizes are those of the graph, but for the
        number of rows, which is free.
    path : path
        ``m.onnx`` for ONNX, ``m.pt2`` for ``torch.export``. What is there is replaced
        when all is done.
    outputs : sequence of str
        Of a regression: "mean", "std", "variance", "epistemic_variance", "lower",
        "upper". Of a classifier: "probs", "entropy", "expected_entropy",
        "mutual_information", "label". Of either: "draws", (draws, batch, ...).
    precision : float or Tensor, optional
        τ, the inverse variance of the noise in y, for "std", "variance", "lower" and
        "upper" of new observations. Without it they are those of the network's
        output, and there are no intervals.
    level : float
        Probability between "lower" and "upper".
    output : callable or str, optional
        As for :meth:`MCDropout.regress` and :meth:`MCDropout.classify`.
    class_dim : int, optional
        As for :meth:`MCDropout.classify`.

    Returns
    -------
    Path
        Where the file is.

    Raises
    ------
    UnsupportedModelError
        If no graph can do what the model does; the message says why.

    Examples
    --------
    >>> import torch, caveat
    >>> net = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(3, 1))
    >>> mc = caveat.MCDropout(net, seed=0)
    >>> caveat.export(mc, torch.zeros(4, 3), "net.txt")
    Traceback (most recent call last):
    caveat.errors.ParameterError: path must end in .onnx (for ONNX Runtime and its ...
    """
    target = Path(path)
    writer = _writer(target)
    checked_output(target)
    of_classes = is_of_classes(outputs)
    if precision is not None:
        precision = check.precision(precision).detach()
    question = Question(
        tuple(outputs),
        of_classes,
        precision,
        check.unit_interval("level", level),
        output,
        class_dim,
    )
    subject = _subject(model, question)
    batch = subject.batch(example)
    with torch.no_grad():
        refuse_what_has_no_graph(subject, batch)
        content = writer(subject, batch)
    _replace(target, content)
    return target


def _writer(target: Path) -> Callable[[ExportSubject, Batch], bytes]:
    if target.suffix == ".onnx":
        from caveat.exporting.onnx_file import onnx_bytes

        return onnx_bytes
    if target.suffix == ".pt2":
        from caveat.exporting.pt2_file import pt2_bytes

        return pt2_bytes
    raise ParameterError(_SUFFIX.format(path=str(target)))


def _subject(model: Any, question: Question) -> ExportSubject:
    if isinstance(model, MCDropout):
        if model._analytic:
            raise ParameterError(_ANALYTIC)
        return SampledSubject(model, question)
    if type(model).__module__.startswith("caveat.estimators."):
        from caveat.estimators import DropoutClassifier, DropoutRegressor
        from caveat.exporting.fitted import Fitted, Pooled

        if isinstance(model, DropoutRegressor | DropoutClassifier):
            is_pool = getattr(model, "_table", None) is not None
            return (Pooled if is_pool else Fitted)(model, question)
    raise InputTypeError(
        f"export takes an MCDropout, a DropoutRegressor or a DropoutClassifier. Got "
        f"{type(model).__name__}; of a module write MCDropout(module, seed=0)."
    )


def _replace(target: Path, content: bytes) -> None:
    """Write a file whole, or not at all."""
    folder = target.parent
    handle, name = tempfile.mkstemp(dir=folder, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).chmod(0o644)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
