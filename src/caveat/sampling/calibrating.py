"""The precision that rows tell which trained nothing."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from caveat.errors import InputTypeError, ParameterError
from caveat.predictive import GaussianPredictive

_EACH = 32  # outputs that are fitted one by one
_HOW = 'precision="fit" needs calibration=(x, y): rows that trained nothing'


def check_fit(precision: str, calibration: Any) -> None:
    """Whether a precision can be fitted: it is asked for, and there are rows."""
    if precision != "fit":
        raise ParameterError(
            f"precision must be a positive number, one per output, or 'fit'. "
            f"Got {precision!r}."
        )
    if not isinstance(calibration, tuple | list) or len(calibration) != 2:
        came = "nothing" if calibration is None else type(calibration).__name__
        raise InputTypeError(f"{_HOW}. Got {came}.")


def fitted_precision(
    regress: Callable[..., GaussianPredictive], calibration: Any
) -> Tensor:
    """tau under which the calibration rows are most probable (ledger E111).

    Parameters
    ----------
    regress : callable
        ``MCDropout.regress`` with all but inputs and precision.
    calibration : pair
        Inputs and what was observed.

    Returns
    -------
    Tensor
        One for each output, found for each on its own. More than 32 outputs keep the
        proportions of their mean squared errors, and a factor on all is searched for.
    """
    from caveat.evaluation.calibration import PrecisionCalibration  # few need it
    from caveat.evaluation.targets import observed_values

    x, y = calibration
    held_out = regress(x, precision=1.0)
    values = observed_values(held_out, y)
    misfit = (values - held_out.mean).double().square().mean(0)
    if not bool((misfit > 0).all()):
        raise ParameterError(
            f"{_HOW}. Got rows that the model repeats without any error: there is no "
            f"noise to be fitted. Pass a number."
        )
    first = misfit.reciprocal()  # all of the error as noise: not more than that
    if misfit.numel() > _EACH:
        found = PrecisionCalibration.fit(held_out.with_precision(first), values)
        return first * found.factor
    draws = held_out.draws.reshape(*held_out.draws.shape[:2], -1)
    seen = values.reshape(len(values), -1)
    each = []
    for number, tau in enumerate(first.reshape(-1).tolist()):
        alone = GaussianPredictive.from_draws(draws[..., number], precision=tau)
        each.append(tau * PrecisionCalibration.fit(alone, seen[:, number]).factor)
    return first.new_tensor(each).reshape(first.shape)
