"""The precision by validation, restated; parts of the rows; names of what diverged."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from caveat.errors import CaveatWarning, ParameterError
from caveat.estimators.prior import Prior
from caveat.estimators.trainer import Trainer
from caveat.predictive import GaussianPredictive
from caveat.training import (
    EarlyStopping,
    GaussianWithPrecision,
    NetworkSpec,
    Problem,
    Schedule,
    SquaredError,
    fit_ensembles,
)
from caveat.training.ensembles import TRIAL_PRECISION
from tests.estimators.dropout_data import rows

SPEC = NetworkSpec(
    (5,), drop_rate=0.2, schedule=Schedule(epochs=10), n_draws=20, lengthscale=0.1
)


def a_trainer(**changes):
    return Trainer("Test", SPEC.vary(**changes), Prior(0.1), seed=5)


@pytest.mark.parametrize("objective", [SquaredError(), GaussianWithPrecision()])
def test_the_scale_maximises_the_density_of_the_folds(objective):
    """With the folds cut here and densities from GaussianPredictive."""
    trainer = a_trainer(objective=objective)
    x, y = rows(50, 2, 2)
    y = y * np.array([1.0, 100.0])
    found = trainer.validate(x, y)
    order = np.random.default_rng([5, 0]).permutation(50)
    sd, parts = torch.from_numpy(y.std(0)), np.split(order, 5)
    predictives = []
    for number, valid in enumerate(parts):
        train = np.concatenate([p for k, p in enumerate(parts) if k != number])
        problem = Problem(
            f"fold {number}",
            x[train],
            y[train],
            trainer.spec,
            seed=number + 1,
            standard_precision=TRIAL_PRECISION,
        )
        (ensemble,) = fit_ensembles([problem], seed=5)
        draws = ensemble.draws(x[valid], n_draws=20)
        tau = 1.0 if draws.precisions is None else draws.precisions * sd**2
        one = GaussianPredictive.from_draws(draws.means / sd, precision=tau)
        predictives.append((one, torch.from_numpy(y[valid]) / sd))

    def mean_density(scale):
        logs = [
            p.with_precision(p.draw_precision * scale).log_prob(target)
            for p, target in predictives
        ]
        return float(torch.cat(logs).mean())

    best = minimize_scalar(lambda k: -mean_density(np.exp(k)), bounds=(-7, 7))
    assert np.log(found.scale) == pytest.approx(best.x, abs=5e-3)
    assert found.log_likelihood == pytest.approx(-best.fun, abs=1e-4)


def test_penalties_follow_from_the_rows_that_are_learned_from():
    stopping = EarlyStopping(share=0.25)
    decay = Trainer("Test", SPEC.vary(early_stopping=stopping), Prior(None, 1e-3))
    x, y = rows(40, 2, 1)
    assert decay.lengthscale(2.0, 40) ** 2 == pytest.approx(1e-3 * 0.8 * 2.0 * 30)
    ensemble = decay.fit(x, y, precision=2.0)
    found = ensemble.trained.members[0].l2_penalties[-1]
    assert 2 * found == pytest.approx(1e-3)


def test_very_few_rows_are_left_out_one_by_one():
    x, y = rows(3, 2, 1)
    assert np.isfinite(a_trainer().validate(x, y).scale)


def test_a_diverged_network_is_reported_by_name():
    x, y = rows(20, 2, 1)
    trainer = a_trainer(learning_rate=1e30, n_members=2)
    named = "'Test, member 0', 'Test, member 1'"
    with (
        pytest.warns(CaveatWarning, match="training diverged"),
        pytest.raises(ParameterError, match=rf"(?s){named} are not finite.*1e\+30"),
    ):
        trainer.fit(x, y, precision=1.0)
