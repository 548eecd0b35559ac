"""scikit-learn's own checks. None is excluded.

``check_array_api_input`` skips itself unless SCIPY_ARRAY_API is set.
"""

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

from caveat.estimators import (
    BayesianDropoutClassifier,
    BayesianDropoutRegression,
    BayesianDropoutRegressionCV,
)

ESTIMATORS = [
    BayesianDropoutRegression(),
    BayesianDropoutRegression(noise="gaussian", drop_to="mean", solver="krylov"),
    BayesianDropoutRegressionCV(drop_rates=(0.0, 0.5), prior_precisions=(0.1, 10.0)),
    BayesianDropoutClassifier(),
]
CASES = [case for each in ESTIMATORS for case in estimator_checks_generator(each)]


def name_of(part) -> str:
    function = getattr(part, "func", None)
    return repr(part) if function is None else function.__name__


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:.* lie so far from 0")  # some of its X is near 100
@pytest.mark.parametrize(("estimator", "check"), CASES, ids=name_of)
def test_sklearn_check(estimator, check):
    check(estimator)
