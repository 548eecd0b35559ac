"""What all regressions answer is what their predictives say."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from caveat.errors import ParameterError
from caveat.estimators import (
    BayesianDropoutRegression,
    BayesianDropoutRegressionCV,
    DropoutRegressor,
    DropoutSearchCV,
    PBPRegressor,
    Schedule,
)

SHORT = DropoutRegressor(schedule=Schedule(epochs=20), random_state=0)
KINDS = {
    "networks": SHORT,
    "linear": BayesianDropoutRegression(drop_rate=0.2),
    "linear, rates by validation": BayesianDropoutRegressionCV(),
    "search": DropoutSearchCV((0.05, 0.1), estimator=SHORT, random_state=0),
    "moments": PBPRegressor((10,), n_epochs=2, random_state=0),
}


@pytest.fixture(params=KINDS.values(), ids=KINDS, scope="module")
def fitted(request):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    y = 10.0 + x @ [1.0, -2.0, 0.5] + 0.3 * rng.normal(size=60)
    return request.param.fit(x, y), x, y


def test_answers_are_those_of_the_predictive(fitted):
    model, x, y = fitted
    found = model.predictive(x)
    mean, std = model.predict(x, return_std=True)
    lower, upper = model.predict_interval(x, level=0.8)
    assert_allclose(mean, found.mean)
    assert_allclose(std, found.std)
    assert_allclose([lower, upper], np.stack(found.interval(0.8)))
    density = found.log_prob(np.asarray(y)).mean()
    assert model.log_likelihood(x, y) == pytest.approx(float(density))
    assert_allclose(model.predict(x), mean)
    assert model.score(x, y) > 0.3


def test_a_level_is_a_probability(fitted):
    model, x, _ = fitted
    with pytest.raises(ParameterError, match="level"):
        model.predict_interval(x, level=90)
