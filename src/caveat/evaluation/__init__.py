"""How good predictions are, in numbers and in figures."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from caveat._optional import require
from caveat.evaluation.calibration import (
    Calibration,
    PrecisionCalibration,
    TemperatureCalibration,
    calibrate,
)
from caveat.evaluation.estimates import Estimate
from caveat.evaluation.intervals import CoverageCurve, coverage, probability_transform
from caveat.evaluation.losses import absolute_error, misclassified, off_by_more_than
from caveat.evaluation.metrics import (
    accuracy,
    brier,
    log_likelihood,
    rmse,
    sharpness,
)
from caveat.evaluation.ood import auroc, error_auroc, ood_auroc
from caveat.evaluation.precision import BestScale, search_scale
from caveat.evaluation.ranked import crps
from caveat.evaluation.reliability import ReliabilityCurve, ece
from caveat.evaluation.report import Evaluation, Metric, evaluate
from caveat.evaluation.scores import score_of
from caveat.evaluation.selective import RiskCoverage, aurc

if TYPE_CHECKING:
    from caveat.evaluation.bars import ClassBarsDisplay
    from caveat.evaluation.calibration_displays import (
        CoverageDisplay,
        ReliabilityDisplay,
    )
    from caveat.evaluation.displays import PredictiveDisplay, SoftmaxScatterDisplay
    from caveat.evaluation.maps import MapDisplay
    from caveat.evaluation.selective_displays import (
        RetentionDisplay,
        RiskCoverageDisplay,
    )

__all__ = [
    "evaluate",
    "Evaluation",
    "Metric",
    "Estimate",
    "accuracy",
    "log_likelihood",
    "brier",
    "ece",
    "rmse",
    "crps",
    "coverage",
    "sharpness",
    "probability_transform",
    "aurc",
    "auroc",
    "error_auroc",
    "ood_auroc",
    "score_of",
    "misclassified",
    "absolute_error",
    "off_by_more_than",
    "ReliabilityCurve",
    "CoverageCurve",
    "RiskCoverage",
    "calibrate",
    "Calibration",
    "PrecisionCalibration",
    "TemperatureCalibration",
    "search_scale",
    "BestScale",
    "ReliabilityDisplay",
    "CoverageDisplay",
    "RiskCoverageDisplay",
    "RetentionDisplay",
    "PredictiveDisplay",
    "SoftmaxScatterDisplay",
    "ClassBarsDisplay",
    "MapDisplay",
]

# matplotlib, an extra, is imported when a figure is asked for
_DISPLAYS = {
    "ClassBarsDisplay": "bars",
    "CoverageDisplay": "calibration_displays",
    "MapDisplay": "maps",
    "PredictiveDisplay": "displays",
    "ReliabilityDisplay": "calibration_displays",
    "RetentionDisplay": "selective_displays",
    "RiskCoverageDisplay": "selective_displays",
    "SoftmaxScatterDisplay": "displays",
}


def __getattr__(name: str) -> Any:
    if name in _DISPLAYS:
        require("matplotlib", extra="plot")
        return getattr(import_module(f"caveat.evaluation.{_DISPLAYS[name]}"), name)
    raise AttributeError(f"module 'caveat.evaluation' has no attribute {name!r}")
