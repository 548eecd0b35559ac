"""Ensembles: networks on rows in the units of the data."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from caveat.errors import ParameterError
from caveat.theory import precision_in_standard_units
from caveat.training import (
    EarlyStopping,
    GaussianWithPrecision,
    NetworkSpec,
    Problem,
    Schedule,
    SoftmaxCrossEntropy,
    fit_ensembles,
)
from caveat.training.ensembles import scaling_of
from caveat.training.scaling import Scaling

SPEC = NetworkSpec(
    (8,), drop_rate=0.1, input_drop_rate=0.05, schedule=Schedule(epochs=10)
)
HEAD = SPEC.vary(objective=GaussianWithPrecision())


def some_rows(n_rows=60, *, shift=50.0, size=10.0, targets=1):
    rng = np.random.default_rng(0)
    x = rng.normal(5.0, 3.0, (n_rows, 2))
    y = np.tanh((x[:, :1] - 5.0) / 2.0) + 0.1 * rng.normal(size=(n_rows, 1))
    return x, np.repeat(shift + size * y, targets, 1)


def fit(spec=SPEC, **rows):
    x, y = some_rows(**rows)
    [ensemble] = fit_ensembles([Problem("one", x, y, spec)], n_threads=1)
    return ensemble, x, y


def of(count):
    return SPEC.vary(n_members=count)


def test_draws_are_those_of_the_networks_in_the_units_of_y():
    ensemble, x, y = fit(of(3))
    draws = ensemble.draws(x, n_draws=5, seed=2)
    inputs = ensemble.scaling.inputs(x)
    plain = ensemble.trained.draws(inputs, n_draws=5, seed=2)  # (draws, members, …)
    expected = plain.double() * y.std() + y.mean()
    assert draws.precisions is None and draws.means.dtype == torch.float64
    torch.testing.assert_close(draws.means, expected.reshape(15, 60, 1))


def test_networks_learn_in_the_units_of_y():
    ensemble, x, y = fit(SPEC.vary(epochs=300, drop_rate=0.02))
    draws = ensemble.draws(x, n_draws=50)
    assert np.sqrt(np.mean((draws.means.mean(0).numpy() - y) ** 2)) < 0.4 * y.std()


def test_units_of_the_data_do_not_matter():
    plain, x, _ = fit(shift=0.0, size=1.0)
    other, x, _ = fit(shift=-700.0, size=1000.0)
    found = (other.draws(x, n_draws=4).means + 700.0) / 1000.0
    torch.testing.assert_close(
        found, plain.draws(x, n_draws=4).means, atol=1e-4, rtol=1e-3
    )


def test_blocks_are_the_draws_some_at_a_time(monkeypatch):
    ensemble, x, _ = fit(of(2))
    monkeypatch.setattr("caveat.training.stacked._GROUP", 32)
    blocks = [block.means for block in ensemble.blocks(x, n_draws=70)]
    assert len(blocks) > 1
    torch.testing.assert_close(torch.cat(blocks), ensemble.draws(x, n_draws=70).means)


def test_members_of_an_ensemble_differ():
    ensemble, _, _ = fit(of(3))
    weights = ensemble.trained.parameters
    assert not torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[1], weights[2])


def test_point_is_the_mean_of_the_networks_without_noise():
    ensemble, x, _ = fit(of(2))
    inputs = ensemble.scaling.inputs(x)
    networks = [ensemble.trained.network(i)(inputs) for i in range(2)]
    expected = ensemble.scaling.outputs(torch.stack(networks).mean(0).detach())
    torch.testing.assert_close(ensemble.point(x), expected, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("targets", [1, 2])
def test_noise_head_gives_precisions_in_the_units_of_y(targets):
    ensemble, x, y = fit(HEAD, targets=targets)
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
    spec = HEAD.vary(hidden=(50,), drop_rate=0.01, input_drop_rate=0.0, epochs=100)
    problem = Problem("two sizes", x, sd * rng.normal(size=x.shape), spec)
    [ensemble] = fit_ensembles([problem], n_threads=1)
    _, precisions = ensemble.draws(np.array([[-0.5], [0.5]]), n_draws=50)
    found = precisions.mean(0).flatten().rsqrt().tolist()
    assert found == pytest.approx([2.0, 8.0], rel=0.25)


def test_precision_of_the_decay_is_in_the_units_of_y():
    x, y = some_rows()
    scaling = Scaling.of(x, y)

    def penalties(**precision):
        problem = Problem("one", x, y, SPEC.vary(**precision))
        [member] = problem.members(scaling, n_train=60)
        return member.l2_penalties

    tau = precision_in_standard_units(0.3, float(y.std()))
    keep, n_train, lengthscale = 0.9, 60, SPEC.lengthscale
    found = penalties(precision=0.3)
    # E14: inverted dropout, half the squared error
    assert found[1] == pytest.approx(lengthscale**2 / (2 * n_train * tau * keep))
    assert penalties(precision=0.6)[1] == pytest.approx(found[1] / 2)


def test_standard_precision_comes_before_that_of_the_spec():
    x, y = some_rows()
    scaling = Scaling.of(x, y)
    own = Problem("own", x, y, SPEC.vary(precision=0.3))
    given = replace(own, standard_precision=0.6 * y.var())
    as_if = Problem("own", x, y, SPEC.vary(precision=0.6))
    penalties = [
        problem.members(scaling, n_train=60)[0].l2_penalties
        for problem in (own, given, as_if)
    ]
    assert penalties[1] == pytest.approx(penalties[2])
    assert penalties[1] != pytest.approx(penalties[0])


def test_classes_are_left_as_they_are():
    x, y = some_rows()
    spec = SPEC.vary(objective=SoftmaxCrossEntropy(2))
    scaling = scaling_of(spec, x, y)
    assert scaling.y_mean.tolist() == [0.0] and scaling.y_std.tolist() == [1.0]
    assert np.array_equal(scaling.x_mean, scaling_of(SPEC, x, y).x_mean)


def test_rows_held_out_are_not_learned_from():
    x, y = some_rows()
    spec = SPEC.vary(early_stopping=EarlyStopping(share=0.25))
    learn, stop = Problem("one", x, y, spec, seed=2).parts(seed=5)
    assert (len(learn.x), len(stop.x)) == (45, 15)
    both = np.concatenate([learn.x, stop.x])
    assert np.array_equal(np.sort(both, 0), np.sort(x, 0))
    assert Problem("one", x, y, SPEC).parts(seed=5)[1] is None


def test_early_stopping_ends_before_the_schedule():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 5)), rng.normal(size=(60, 1))
    spec = SPEC.vary(epochs=300, early_stopping=EarlyStopping(0.3, patience=5))
    [ensemble] = fit_ensembles([Problem("noise", x, y, spec)], n_threads=1)
    assert ensemble.trained.stopped[0] < 150


def test_draws_are_computed_in_the_dtype_asked_for():
    ensemble, x, _ = fit()
    narrow = ensemble.draws(x, n_draws=5).means
    wide = ensemble.draws(x, n_draws=5, dtype=torch.float64).means
    torch.testing.assert_close(narrow, wide, rtol=1e-5, atol=1e-4)
    assert not torch.equal(narrow, wide)


def test_problems_of_a_fleet_are_alike():
    x, y = some_rows()
    problems = [
        Problem("a", x, y, SPEC),
        Problem("b", x, y, SPEC.vary(hidden=(9,))),
    ]
    with pytest.raises(ParameterError, match="same inputs, targets and hidden"):
        fit_ensembles(problems)


def test_each_problem_has_its_own_rows_and_seed():
    x, y = some_rows()
    problems = [
        Problem("a", x, y, of(2)),
        Problem("b", x[:40], 3 * y[:40], of(3), seed=1),
    ]
    together = fit_ensembles(problems, n_threads=1)
    assert [len(ensemble.trained) for ensemble in together] == [2, 3]
    for problem, ensemble in zip(problems, together, strict=True):
        [alone] = fit_ensembles([problem], n_threads=1)
        torch.testing.assert_close(
            ensemble.draws(x, n_draws=3).means, alone.draws(x, n_draws=3).means
        )


def test_divergence_is_known():
    with pytest.warns(UserWarning, match="diverged"):
        ensemble, _, _ = fit(SPEC.vary(learning_rate=1e30))
    assert ensemble.trained.diverged
    assert not fit()[0].trained.diverged
