"""What a prediction is: plain tensors in, plain tensors out.

:class:`Predictive` is what all predictives answer, on two sides:
:class:`RegressionPredictive` and :class:`ClassificationPredictive`. Outside of this
package nothing asks for a concrete kind.
"""

from caveat.predictive.accumulators import CategoricalAccumulator, GaussianAccumulator
from caveat.predictive.base import Predictive
from caveat.predictive.categorical import CategoricalPredictive
from caveat.predictive.classification import ClassificationPredictive
from caveat.predictive.gaussian import GaussianPredictive
from caveat.predictive.moment_matched import MomentPredictive
from caveat.predictive.moments import Moments, merge
from caveat.predictive.regression import RegressionPredictive
from caveat.predictive.softmax import mean_field_softmax
from caveat.predictive.student import StudentPredictive
from caveat.predictive.student_mixture import StudentMixturePredictive

__all__ = [
    "Predictive",
    "RegressionPredictive",
    "ClassificationPredictive",
    "GaussianPredictive",
    "MomentPredictive",
    "StudentPredictive",
    "StudentMixturePredictive",
    "CategoricalPredictive",
    "Moments",
    "merge",
    "mean_field_softmax",
    "GaussianAccumulator",
    "CategoricalAccumulator",
]
