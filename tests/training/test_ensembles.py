"""Ensembles: networks on rows in the units of the data."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from caveat.errors import ParameterError
from caveat.theory import precision_in_standard_units
from caveat.training.ensembles import Candidate, Problem, Settings, fit_ensembles
from caveat.training.scaling import Scaling

CANDIDATE = Candidate(0.1, 0.05, (8,), epochs=10)


def some_rows(n_rows=60, *, shift=50.0, size=10.0, targets=1):
    rng = np.random.default_rng(0)
    x = rng.normal(5.0, 3.0, (n_rows, 2))
    y = np.tanh((x[:, :1] - 5.0) / 2.0) + 0.1 * rng.normal(size=(n_rows, 1))
    return x, np.repeat(shift + size * y, targets, 1)


def fit(settings=None, candidate=CANDIDATE, **rows):
    x, y = some_rows(**rows)
    problem = Problem("one", x, y, candidate)
    [ensemble] = fit_ensembles([problem], settings or Settings(), n_threads=1)
    return ensemble, x, y


def test_draws_are_those_of_the_networks_in_the_units_of_y():
    ensemble, x, y = fit(Settings(n_members=3))
    draws = ensemble.draws(x, n_draws=5, seed=2)
    inputs = ensemble.scaling.inputs(x)
    plain = ensemble.trained.draws(inputs, n_draws=5, seed=2)  # (draws, members, …)
    expected = plain.double() * y.std() + y.mean()
    assert draws.precisions is None and draws.means.dtype == torch.float64
    torch.testing.assert_close(draws.means, expected.reshape(15, 60, 1))


def test_networks_learn_in_the_units_of_y():
    ensemble, x, y = fit(candidate=replace(CANDIDATE, epochs=300, drop_rate=0.02))
    draws = ensemble.draws(x, n_draws=50)
    assert np.sqrt(np.mean((draws.means.mean(0).numpy() - y) ** 2)) < 0.4 * y.std()


def test_units_of_the_data_do_not_matter():
    plain, x, _ = fit(shift=0.0, size=1.0)
    other, x, _ = fit(shift=-700.0, size=1000.0)
    found = (other.draws(x, n_draws=4).means + 700.0) / 1000.0
    torch.testing.assert_close(
        found, plain.draws(x, n_draws=4).means, atol=1e-4, rtol=1e-3
    )


def test_blocks_are_the_draws_some_at_a_time():
    ensemble, x, _ = fit(Settings(n_members=2))
    blocks = [block.means for block in ensemble.blocks(x, n_draws=70)]
    assert len(blocks) > 1
    torch.testing.assert_close(torch.cat(blocks), ensemble.draws(x, n_draws=70).means)


def test_members_of_an_ensemble_differ():
    ensemble, _, _ = fit(Settings(n_members=3))
    weights = ensemble.trained.parameters
    assert not torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[1], weights[2])


def test_point_is_the_mean_of_the_networks_without_noise():
    ensemble, x, _ = fit(Settings(n_members=2))
    inputs = ensemble.scaling.inputs(x)
    networks = [ensemble.trained.network(i)(inputs) for i in range(2)]
    expected = ensemble.scaling.outputs(torch.stack(networks).mean(0).detach())
    torch.testing.assert_close(ensemble.point(x), expected, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("targets", [1, 2])
def test_noise_head_gives_precisions_in_the_units_of_y(targets):
    ensemble, x, y = fit(Settings(noise_head=True), targets=targets)
    means, precisions = ensemble.draws(x, n_draws=5)
    outputs = ensemble.trained.draws(ensemble.scaling.inputs(x), n_draws=5)[:, 0]
    sd, mean = torch.from_numpy(y.std(0)), torch.from_numpy(y.mean(0))
    torch.testing.assert_close(means, outputs[..., :targets].double() * sd + mean)
    expected = outputs[..., targets:].double().exp() / sd**2  # E18
    torch.testing.assert_close(precisions, expected)


def test_noise_head_learns_the_size_of_the_noise():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (600, 1))
    sd = np.where(x > 0, 8.0, 2.0)
    problem = Problem("two sizes", x, sd * rng.normal(size=x.shape), Candidate(0.01))
    problem = replace(problem, candidate=replace(problem.candidate, epochs=100))
    [ensemble] = fit_ensembles([problem], Settings(noise_head=True), n_threads=1)
    _, precisions = ensemble.draws(np.array([[-0.5], [0.5]]), n_draws=50)
    found = precisions.mean(0).flatten().rsqrt().tolist()
    assert found == pytest.approx([2.0, 8.0], rel=0.25)


def test_precision_of_the_decay_is_in_the_units_of_y():
    x, y = some_rows()
    scaling = Scaling.of(x, y)

    def penalties(**precision):
        problem = Problem("one", x, y, replace(CANDIDATE, **precision))
        [member] = problem.members(Settings(), scaling, 0)
        return member.l2_penalties

    tau = precision_in_standard_units(0.3, float(y.std()))
    keep, n_train, lengthscale = 0.9, 60, CANDIDATE.lengthscale
    found = penalties(precision=0.3)
    # E14: inverted dropout, half the squared error
    assert found[1] == pytest.approx(lengthscale**2 / (2 * n_train * tau * keep))
    assert penalties(precision=0.6)[1] == pytest.approx(found[1] / 2)


def test_precision_of_a_problem_comes_before_that_of_its_candidate():
    x, y = some_rows()
    scaling = Scaling.of(x, y)
    own = Problem("own", x, y, replace(CANDIDATE, precision=0.3))
    given = replace(own, precision=0.6)
    as_if = Problem("own", x, y, replace(CANDIDATE, precision=0.6))
    settings = Settings()
    assert given.members(settings, scaling, 0) == as_if.members(settings, scaling, 0)
    assert given.members(settings, scaling, 0) != own.members(settings, scaling, 0)


def test_drop_rates_are_one_per_weight_layer():
    assert Candidate(0.2, 0.1, (5, 6)).drop_rates == (0.1, 0.2, 0.2)


def test_problems_of_a_fleet_are_alike():
    x, y = some_rows()
    problems = [
        Problem("a", x, y, CANDIDATE),
        Problem("b", x, y, replace(CANDIDATE, hidden=(9,))),
    ]
    with pytest.raises(ParameterError, match="same inputs, targets and hidden"):
        fit_ensembles(problems, Settings())


def test_each_problem_has_its_own_rows_and_seed():
    x, y = some_rows()
    problems = [
        Problem("a", x, y, CANDIDATE),
        Problem("b", x[:40], 3 * y[:40], CANDIDATE, seed=1),
    ]
    together = fit_ensembles(problems, Settings(n_members=2), n_threads=1)
    for problem, ensemble in zip(problems, together, strict=True):
        [alone] = fit_ensembles([problem], Settings(n_members=2), n_threads=1)
        torch.testing.assert_close(
            ensemble.draws(x, n_draws=3).means, alone.draws(x, n_draws=3).means
        )


@pytest.mark.parametrize(
    "setting", [{"n_members": 0}, {"n_draws": 1}, {"learning_rate": 0.0}]
)
def test_settings_out_of_range_are_refused(setting):
    with pytest.raises(ParameterError, match=next(iter(setting))):
        Settings(**setting)


def test_divergence_is_known():
    with pytest.warns(UserWarning, match="diverged"):
        ensemble, _, _ = fit(Settings(learning_rate=1e30))
    assert ensemble.has_diverged
    assert not fit()[0].has_diverged
