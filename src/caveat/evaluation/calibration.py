"""One number, fitted on held-out rows, that makes a predictive more probable.

For regression it is the precision tau of the noise, for classification a temperature.
Fit it on rows that trained nothing, and judge it on others still.

.. [Guo2017] C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger. On calibration of modern
   neural networks. ICML 2017.
"""

import math
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar, final, overload

import torch
from torch import Tensor

from caveat._random import Seed
from caveat.errors import CaveatWarning, DrawsNotKeptError
from caveat.evaluation.precision import Objective, search_scale
from caveat.evaluation.targets import observed_labels, observed_values, regression_of
from caveat.predictive import (
    CategoricalPredictive,
    ClassificationPredictive,
    Predictive,
    RegressionPredictive,
)
from caveat.predictive.softmax import log_softmax

Kind = TypeVar("Kind", bound=Predictive)
AnyRegression = TypeVar("AnyRegression", bound=RegressionPredictive)

_REACH = 1e6  # how far from 1 a factor or a temperature is looked for
_TOLERANCE = 1e-4  # of its logarithm


@dataclass(frozen=True)
class Calibration(ABC, Generic[Kind]):
    """What was fitted, and how much it helped on the rows it was fitted on.

    Attributes
    ----------
    before, after : float
        Mean log-likelihood of the held-out rows without and with it.
    n_rows : int
        How many there were.
    """

    before: float
    after: float
    n_rows: int

    @classmethod
    @abstractmethod
    def fit(cls, predictive: Kind, y: Any) -> Self:
        """Find the number under which held-out observations are most probable.

        Parameters
        ----------
        predictive : Predictive
            Of held-out rows.
        y : array or Tensor
            What was observed there.

        Returns
        -------
        Calibration
        """

    @abstractmethod
    def apply(self, predictive: Kind) -> Kind:
        """The same predictions, calibrated.

        Parameters
        ----------
        predictive : Predictive
            Of any rows of the same model.

        Returns
        -------
        Predictive
            A new one; the given one is left as it is.
        """


@final
@dataclass(frozen=True)
class PrecisionCalibration(Calibration[RegressionPredictive]):
    """A factor on the precision tau of a regression (ledger E111).

    The log-likelihood of eq. 13 of paper 001 is maximised. Where all rows have the same
    tau, this finds tau itself; where a model has learned a tau for each row or draw, it
    corrects their scale. The mean does not change, nor what the draws disagree about.
    Every regression serves whose noise can be exchanged (``with_precision``): not a
    Student-t, which has it integrated out.

    Attributes
    ----------
    factor : float
        On every precision.

    Examples
    --------
    >>> import torch
    >>> from caveat.predictive import GaussianPredictive
    >>> draws = torch.zeros(1, 4)  # one draw of four rows: a plain Gaussian
    >>> held_out = GaussianPredictive.from_draws(draws, precision=1.0)
    >>> found = PrecisionCalibration.fit(held_out, [2.0, -2.0, 1.0, -1.0])
    >>> round(found.factor, 3)  # 1 / mean square
    0.4
    >>> found.apply(held_out).precision[0]
    tensor(0.4000)
    """

    factor: float

    @classmethod
    def fit(cls, predictive: RegressionPredictive, y: Any) -> Self:
        values = observed_values(predictive, y)

        def mean_density(factor: float) -> float:
            # E111: factor = argmax_k sum_i log p(y_i | x_i, k tau)
            return _mean(predictive.scale_precision(factor).log_prob(values))

        factor, after = _best("precision factor", mean_density)
        return cls(mean_density(1.0), after, len(predictive), factor)

    def apply(self, predictive: AnyRegression) -> AnyRegression:
        """The same predictions, calibrated.

        Parameters
        ----------
        predictive : RegressionPredictive
            Of any rows of the same model.

        Returns
        -------
        RegressionPredictive
            Of the same kind.
        """
        return predictive.scale_precision(self.factor)


@final
@dataclass(frozen=True)
class TemperatureCalibration(Calibration[ClassificationPredictive]):
    """A temperature that divides the logits of a classification (ledger E112).

    With draws, the logits of *each draw* are divided before their probabilities are
    averaged, so that entropy, mutual information and all else stay of one piece.
    Without them the logarithms of the *averaged* probabilities are divided: the answer
    is then a single draw (a point, if there never were draws), in which no disagreement
    is left. The two temperatures are not the same, so one fitted in one way is not
    applied in the other.

    Attributes
    ----------
    temperature : float
        Above 1 it makes predictions less sure.
    per_draw : bool
        Whether it divides the logits of each draw.

    Examples
    --------
    >>> import torch
    >>> logits = torch.tensor([[[3.0, 0.0]] * 4])  # one draw; 95 % sure of class 0
    >>> held_out = CategoricalPredictive.from_logits(logits)
    >>> found = TemperatureCalibration.fit(held_out, [0, 0, 0, 1])
    >>> round(found.temperature, 3)  # 3 / log 3: then it is 75 % sure
    2.731
    >>> found.apply(held_out).probs[0]
    tensor([0.7500, 0.2500])
    """

    temperature: float
    per_draw: bool

    @classmethod
    def fit(cls, predictive: ClassificationPredictive, y: Any) -> Self:
        labels = observed_labels(predictive, y)
        logits = _kept_logits(predictive)
        per_draw = logits is not None
        if logits is None:
            logits = predictive.log_probs.unsqueeze(0)
        logits = logits.double()

        def mean_log_prob(temperature: float) -> float:
            return _mean(_tempered_log_prob(logits, labels, temperature))

        temperature, after = _best("temperature", mean_log_prob)
        before = mean_log_prob(1.0)
        return cls(before, after, len(predictive), temperature, per_draw)

    def apply(
        self, predictive: ClassificationPredictive, *, seed: Seed = 0
    ) -> CategoricalPredictive:
        """The same predictions, calibrated.

        Parameters
        ----------
        predictive : ClassificationPredictive
            Of any rows of the same model, with its draws if the fit had them.
        seed : int, torch.Generator or None, default 0
            Of the labels sampled for ``variation_ratio``.

        Returns
        -------
        CategoricalPredictive
        """
        logits = _kept_logits(predictive)
        if not self.per_draw and predictive.n_draws == 0:
            return CategoricalPredictive.point(predictive.log_probs / self.temperature)
        if not self.per_draw:
            logits = predictive.log_probs.unsqueeze(0)
        elif logits is None:
            raise DrawsNotKeptError(
                "The temperature was fitted on the logits of each draw, and this "
                "predictive has not kept its draws. Pass keep_draws=True to "
                "MCDropout.classify, or fit on a predictive without draws too."
            )
        return CategoricalPredictive.from_logits(logits / self.temperature, seed=seed)


@overload
def calibrate(predictive: RegressionPredictive, y: Any) -> PrecisionCalibration: ...
@overload
def calibrate(
    predictive: ClassificationPredictive, y: Any
) -> TemperatureCalibration: ...
def calibrate(
    predictive: Predictive, y: Any
) -> PrecisionCalibration | TemperatureCalibration:
    """Fit the precision of a regression, or the temperature of a classification.

    Parameters
    ----------
    predictive : Predictive
        Of held-out rows. The noise of a regression must be one that can be exchanged:
        for a Student-t predictive, conformal intervals (``caveat.decisions``) serve.
    y : array or Tensor
        Observations, or class numbers.

    Returns
    -------
    PrecisionCalibration or TemperatureCalibration
        Whose ``apply`` calibrates the predictives of other rows.

    Examples
    --------
    >>> import torch
    >>> from caveat.predictive import GaussianPredictive
    >>> held_out = GaussianPredictive.from_draws(torch.zeros(1, 4), precision=1.0)
    >>> calibration = calibrate(held_out, [2.0, -2.0, 1.0, -1.0])
    >>> new = GaussianPredictive.from_draws(torch.zeros(1, 1), precision=1.0)
    >>> calibration.apply(new).std
    tensor([1.5811])
    """
    if isinstance(predictive, ClassificationPredictive):
        return TemperatureCalibration.fit(predictive, y)
    return PrecisionCalibration.fit(regression_of(predictive), y)


def _kept_logits(predictive: ClassificationPredictive) -> Tensor | None:
    try:
        return predictive.draws
    except DrawsNotKeptError:
        return None


def _tempered_log_prob(logits: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """Log of the averaged probability of the labels, shape of ``labels``."""
    # E112: pbar_c = (1/T) sum_t softmax(logits_t / temperature)_c
    log_probs = log_softmax(logits / temperature)
    place = labels.unsqueeze(-1).expand(*log_probs.shape[:-1], 1)
    chosen = log_probs.gather(-1, place).squeeze(-1)
    return chosen.logsumexp(0) - math.log(len(logits))


def _mean(log_probs: Tensor) -> float:
    return float(log_probs.mean(dtype=torch.float64))


def _best(name: str, objective: Objective) -> tuple[float, float]:
    """The number near 1 that maximises the objective, and its maximum."""
    found = search_scale(objective, low=1.0 / _REACH, high=_REACH, tolerance=_TOLERANCE)
    if found.at_edge:
        warnings.warn(
            f"The {name} went to the end of its range, {found.scale:.3g}: the held-out "
            f"rows do not determine it. All of them are fitted without error, or the "
            f"units of y and of the predictive differ.",
            CaveatWarning,
            stacklevel=4,
        )
    return found.scale, found.log_likelihood
