"""From predictives to named arrays, a row for each row that was asked."""

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from caveat.errors import DrawsNotKeptError, NoAnswerError
from caveat.predictive import ClassificationPredictive
from caveat.serve.tensors import BYTES, TensorInfo

Arrays = dict[str, NDArray[Any]]
QUANTILES = "quantiles"  # of a regression, for figures
LEVELS = (0.005, *(round(0.025 * n, 3) for n in range(1, 40)), 0.995)


class RowFeatures(NamedTuple):
    """Rows as a model takes them.

    Attributes
    ----------
    x : array, shape (rows, …)
    notes : tuple of str
        What had to be made up.
    """

    x: NDArray[Any]
    notes: tuple[str, ...] = ()


def number_outputs(event: tuple[int, ...]) -> tuple[TensorInfo, ...]:
    """Outputs of a regression whose rows have the shape ``event``."""
    names = ("mean", "std", "lower", "upper", "epistemic", "mc_error")
    own = tuple(TensorInfo(name, "FP64", (-1, *event)) for name in names)
    return (*own, *_COMMON)


def class_outputs(count: int, *, has_sets: bool = False) -> tuple[TensorInfo, ...]:
    """Outputs of a classification of ``count`` classes."""
    sets = (TensorInfo("set", BYTES, (-1,)),) if has_sets else ()
    return (
        TensorInfo("label", BYTES, (-1,)),
        TensorInfo("probs", "FP64", (-1, count)),
        TensorInfo("entropy", "FP64", (-1,)),
        TensorInfo("mutual_information", "FP64", (-1,)),
        TensorInfo("mc_error", "FP64", (-1, count)),
        *sets,
        *_COMMON,
    )


_COMMON = (TensorInfo("n_draws", "INT64", (-1,)), TensorInfo("deferred", "BOOL", (-1,)))


def mc_error(predictive: Any) -> Tensor:
    """Monte Carlo error of the mean or of the probabilities of each row.

    Draws are taken as independent, so that no other row has a say; they are stratified,
    and the error is smaller than this.
    """
    is_classes = isinstance(predictive, ClassificationPredictive)
    try:
        draws = predictive.draws.double()
    except (DrawsNotKeptError, NoAnswerError):
        return torch.as_tensor(predictive.mean_error).double()
    draws = draws.softmax(-1) if is_classes else draws
    if len(draws) < 2:  # networks without noise: nothing was sampled
        return torch.zeros_like(draws[0])
    return draws.std(0) / len(draws) ** 0.5


def is_enough(predictive: Any, tolerance: float) -> NDArray[np.bool_]:
    """Which rows have an error below this part of their spread."""
    if isinstance(predictive, ClassificationPredictive):
        probs = predictive.probs.double()
        scale = (probs * (1.0 - probs)).sqrt()
    else:
        scale = predictive.std.double()
    fine = mc_error(predictive) <= tolerance * scale
    return np.asarray(fine.reshape(len(fine), -1).all(1).numpy())


def arrays(
    model: Any, predictive: Any, level: float, wanted: Collection[str]
) -> Arrays:
    """Those outputs that are wanted.

    Parameters
    ----------
    model : ServedModel
        That answers.
    predictive : Predictive
        Of some rows.
    level : float
        Of intervals.
    wanted : collection of str
        Names of outputs.

    Returns
    -------
    dict of str to array
    """
    rows = len(predictive)
    ways: dict[str, Callable[[], Any]] = {
        "mean": lambda: predictive.mean,
        "std": lambda: predictive.std,
        "epistemic": lambda: predictive.epistemic_variance.sqrt(),
        "probs": lambda: predictive.probs,
        "entropy": lambda: predictive.entropy,
        "mutual_information": lambda: predictive.mutual_information,
        "mc_error": lambda: mc_error(predictive),
        QUANTILES: lambda: _quantiles(predictive),
        "label": lambda: _labels(model.classes, predictive),
        "set": lambda: model.sets(predictive),
        "deferred": lambda: model.deferred(predictive),
        "n_draws": lambda: np.full(rows, predictive.n_draws, dtype=np.int64),
    }
    found = {name: _array(ways[name]()) for name in wanted if name in ways}
    if "lower" in wanted or "upper" in wanted:
        lower, upper = predictive.interval(level)
        own = {"lower": _array(lower), "upper": _array(upper)}
        found |= {name: values for name, values in own.items() if name in wanted}
    return found


def _array(values: Any) -> NDArray[Any]:
    if isinstance(values, Tensor):
        return values.detach().double().numpy()
    return np.asarray(values)


def _quantiles(predictive: Any) -> NDArray[Any]:
    """Shape (rows, levels) of the first output; no levels where it has no quantiles."""
    try:
        found = predictive.quantile(LEVELS).double()
    except NoAnswerError:
        return np.zeros((len(predictive), 0))
    return np.asarray(found.reshape(len(LEVELS), len(predictive), -1)[:, :, 0].T)


def _labels(classes: tuple[str, ...], predictive: Any) -> NDArray[Any]:
    return np.array(classes, dtype=object)[predictive.label.numpy()]
