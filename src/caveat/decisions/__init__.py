"""Choices made from predictions: read a ``Predictive``, return a decision."""

from caveat.decisions import acquisition
from caveat.decisions.acquisition import BatchBALD, Diverse, RandomChoice, TopScore
from caveat.decisions.active import ActiveLearner, LearningCurve
from caveat.decisions.cascade import (
    Cascade,
    CascadeAnswer,
    CascadeReport,
    Person,
    Stage,
    StageReport,
)
from caveat.decisions.conformal import ConformalIntervals, ConformalSets, conformal
from caveat.decisions.conformal_intervals import (
    IntervalScore,
    QuantileResidual,
    ScaledResidual,
)
from caveat.decisions.conformal_predictives import (
    ConformalIntervalPredictive,
    ConformalSetPredictive,
)
from caveat.decisions.conformal_sets import AdaptiveSets, LeastAmbiguous, SetScore
from caveat.decisions.defer import Deferral, DeferralPolicy, defer
from caveat.decisions.defer_targets import Costs, Coverage, DeferralTarget, ErrorRate
from caveat.decisions.guarantees import CalibrationScores, Guarantee
from caveat.decisions.scores import score_of
from caveat.decisions.thompson import (
    FunctionSampler,
    thompson,
    thompson_arms,
    thompson_batch,
)
from caveat.decisions.thompson_samplers import EnsembleSampler, PosteriorSampler

__all__ = [
    "score_of",
    "defer",
    "ErrorRate",
    "Coverage",
    "Costs",
    "DeferralTarget",
    "DeferralPolicy",
    "Deferral",
    "conformal",
    "ConformalIntervals",
    "ConformalSets",
    "ConformalIntervalPredictive",
    "ConformalSetPredictive",
    "CalibrationScores",
    "Guarantee",
    "IntervalScore",
    "ScaledResidual",
    "QuantileResidual",
    "SetScore",
    "LeastAmbiguous",
    "AdaptiveSets",
    "acquisition",
    "TopScore",
    "RandomChoice",
    "BatchBALD",
    "Diverse",
    "ActiveLearner",
    "LearningCurve",
    "Cascade",
    "Stage",
    "Person",
    "CascadeAnswer",
    "CascadeReport",
    "StageReport",
    "thompson",
    "thompson_arms",
    "thompson_batch",
    "FunctionSampler",
    "PosteriorSampler",
    "EnsembleSampler",
]
