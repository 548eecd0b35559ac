"""The precision by validation, restated; parts of the rows; names of what diverged."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from caveat.errors import CaveatWarning, ParameterError
from caveat.estimators.prior import Prior
from caveat.estimators.trainer import Trainer
from caveat.predictive import GaussianPredictive
from caveat.training.ensembles import (
    TRIAL_PRECISION,
    Candidate,
    Problem,
    Settings,
    fit_ensembles,
)
from tests.estimators.dropout_data import rows


def a_trainer(**changes):
    settings = Settings(n_draws=20, seed=5, **changes.pop("settings", {}))
    candidate = Candidate(0.2, hidden=(5,), epochs=10)
    prior = Prior.of(0.1, None, drop_rate=0.2, precision="validated")
    return Trainer("Test", settings, candidate, prior, **changes)


@pytest.mark.parametrize("noise_head", [False, True])
def test_the_scale_maximises_the_density_of_the_folds(noise_head):
    """With the folds cut here and densities from GaussianPredictive."""
    trainer = a_trainer(settings={"noise_head": noise_head})
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
            Candidate(0.2, hidden=(5,), lengthscale=0.1, epochs=10),
            seed=number + 1,
            standard_precision=TRIAL_PRECISION,
        )
        (ensemble,) = fit_ensembles([problem], trainer.settings)
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


def test_rows_held_out_are_not_learned_from():
    trainer = a_trainer(held_out=0.25)
    x, y = rows(40, 2, 1)
    problem = trainer.problem(x, y, precision=1.0)
    held, _ = problem.held_out
    assert trainer.n_train(40) == len(problem.x) == 30
    both = np.concatenate([problem.x, held])
    assert np.array_equal(np.sort(both, 0), np.sort(x, 0))


def test_very_few_rows_are_left_out_one_by_one():
    x, y = rows(3, 2, 1)
    assert np.isfinite(a_trainer().validate(x, y).scale)


def test_nothing_is_left_to_learn_from():
    with pytest.raises(ParameterError, match="holds out 2 of 2 rows and leaves none"):
        a_trainer(held_out=0.9).n_train(2)
    with pytest.raises(ParameterError, match="validation_fraction must lie strictly"):
        a_trainer(held_out=1.0)


def test_a_diverged_network_is_reported_by_name():
    x, y = rows(20, 2, 1)
    trainer = a_trainer(settings={"learning_rate": 1e30, "n_members": 2})
    named = "'Test, member 0', 'Test, member 1'"
    with (
        pytest.warns(CaveatWarning, match="training diverged"),
        pytest.raises(ParameterError, match=rf"(?s){named} are not finite.*1e\+30"),
    ):
        trainer.fit(x, y, precision=1.0)


def test_a_fleet_stops_all_of_its_networks_early_or_none():
    x, y = rows(20, 2, 1)
    parts = [
        a_trainer().problem(x, y, precision=1.0),
        a_trainer(held_out=0.2).problem(x, y, precision=1.0, part=1),
    ]
    with pytest.raises(ParameterError, match=r"must hold out rows, or none.*1 of 2"):
        fit_ensembles(parts, Settings())
