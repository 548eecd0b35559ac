"""What a prediction is: plain tensors in, plain tensors out."""

from caveat.predictive.accumulators import CategoricalAccumulator, GaussianAccumulator
from caveat.predictive.base import Predictive
from caveat.predictive.classification import CategoricalPredictive
from caveat.predictive.moments import Moments, merge
from caveat.predictive.regression import GaussianPredictive
from caveat.predictive.student import StudentMixturePredictive, StudentPredictive

__all__ = [
    "Predictive",
    "GaussianPredictive",
    "CategoricalPredictive",
    "StudentPredictive",
    "StudentMixturePredictive",
    "Moments",
    "merge",
    "GaussianAccumulator",
    "CategoricalAccumulator",
]
