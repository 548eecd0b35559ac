"""How uncertain each row is, as one number: the scores by which rows are ranked."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from caveat.errors import InputTypeError, ParameterError, ShapeError
from caveat.predictive import ClassificationPredictive, Predictive

Array: TypeAlias = NDArray[np.float64]
Score: TypeAlias = str | Callable[[Any], Any]


def least_confidence(predictive: ClassificationPredictive) -> Tensor:
    """One minus the probability of the most probable class; shape (batch, *extra)."""
    return 1.0 - predictive.probs.double().amax(-1)


def margin(predictive: ClassificationPredictive) -> Tensor:
    """One minus the lead of the first class over the second; shape (batch, *extra)."""
    first, second = predictive.probs.double().topk(2, -1).values.unbind(-1)
    return 1.0 - (first - second)


CLASSIFICATION_SCORES: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {
        "entropy": lambda predictive: predictive.entropy,
        "expected_entropy": lambda predictive: predictive.expected_entropy,
        "mutual_information": lambda predictive: predictive.mutual_information,
        "variation_ratio": lambda predictive: predictive.variation_ratio,
        "least_confidence": least_confidence,
        "margin": margin,
    }
)
REGRESSION_SCORES: Mapping[str, Callable[[Any], Any]] = MappingProxyType(
    {
        "std": lambda predictive: predictive.std,
        "epistemic_std": lambda predictive: predictive.epistemic_variance.sqrt(),
    }
)


def score_of(predictive: Predictive, score: Score) -> Array:
    """How uncertain each row is: one number per row, higher is more uncertain.

    Parameters
    ----------
    predictive : Predictive
        Of any kind, with one output (or one label) per row.
    score : str or callable
        For classification ``"entropy"``, ``"expected_entropy"``,
        ``"mutual_information"``, ``"variation_ratio"``, ``"least_confidence"``
        (one minus the largest probability) or ``"margin"`` (one minus the lead of the
        first class over the second). For regression ``"std"`` (of a new observation)
        or ``"epistemic_std"`` (without its noise). Or a function of the predictive
        that returns one number per row.

    Returns
    -------
    array of float64, shape (rows,)
        Without NaN; a score may be infinite.

    Examples
    --------
    >>> import torch
    >>> from caveat.predictive import CategoricalPredictive
    >>> logits = torch.tensor([[[4.0, 0.0], [0.0, 0.0]]])  # 1 draw, 2 rows, 2 classes
    >>> predictive = CategoricalPredictive.from_logits(logits)
    >>> score_of(predictive, "least_confidence").round(3)
    array([0.018, 0.5  ])
    >>> score_of(predictive, lambda p: -p.probs[:, 0]).round(3)
    array([-0.982, -0.5  ])
    """
    function = _function(predictive, score)
    name = f"The score {score!r}" if isinstance(score, str) else "The score"
    return checked_scores(name, function(predictive), len(predictive))


def checked_scores(name: str, values: Any, n_rows: int) -> Array:
    """One number per row, none of them NaN, as float64.

    Parameters
    ----------
    name : str
        What the message of an error calls them.
    values : array or Tensor, shape (rows,) or (rows, 1)
        What came.
    n_rows : int
        How many there must be.

    Returns
    -------
    array of float64, shape (rows,)
    """
    found = as_array(name, values)
    if found.shape[:1] != (n_rows,) or found.size != n_rows:
        raise ShapeError(
            f"{name} must have one number per row, the shape ({n_rows},). Got "
            f"{found.shape}. With several outputs per row, say how they are joined: "
            f"pass a function such as lambda p: p.std.amax(-1)."
        )
    bad = int(np.isnan(found).sum())
    if bad:
        raise ParameterError(
            f"{name} must not be NaN. {bad} of {n_rows} rows are; leave them out, or "
            f"give them a score of infinity, which is never accepted."
        )
    return found.reshape(n_rows)


def scores_of_rows(scores: Any) -> Array:
    """Scores that came as they are, from any source; one number per row."""
    found = as_array("scores", scores)
    return checked_scores("scores", found, len(np.atleast_1d(found)))


def as_array(name: str, values: Any) -> Array:
    """Real numbers as a float64 array, from a tensor or whatever NumPy takes."""
    if isinstance(values, Tensor):
        values = values.detach().to(torch.float64).numpy(force=True)
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputTypeError(
            f"{name} must be real numbers. Got {type(values).__name__}."
        ) from error


def default_score(predictive: Predictive) -> str:
    """The score that ranks rows if none is named: all uncertainty about a new row."""
    if isinstance(predictive, ClassificationPredictive):
        return "least_confidence"
    return "std"


def _function(predictive: Predictive, score: Score) -> Callable[[Any], Any]:
    if not isinstance(predictive, Predictive):
        raise InputTypeError(
            f"predictive must be a caveat Predictive. Got {type(predictive).__name__}."
        )
    is_classifier = isinstance(predictive, ClassificationPredictive)
    known = CLASSIFICATION_SCORES if is_classifier else REGRESSION_SCORES
    if callable(score):
        return score
    if score in known:
        return known[score]
    raise ParameterError(
        f"score must be a function of the predictive or, for a "
        f"{type(predictive).__name__}, one of {', '.join(map(repr, known))}. "
        f"Got {score!r}."
    )
