"""DropoutRegressor: one code path with the fleet, units, precision, answers."""

from copy import deepcopy

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.estimator_checks import check_estimator
from torch import nn
from torch.distributions import Categorical, Independent, MixtureSameFamily, Normal
from torch.testing import assert_close

import caveat
from caveat import MCDropout
from caveat.errors import InputTypeError, ParameterError, ShapeError
from caveat.estimators import (
    DropoutRegressor,
    EarlyStopping,
    NoiseHead,
    Prior,
    Schedule,
)
from caveat.training import Rows, train
from caveat.training.activations import ACTIVATIONS
from caveat.training.ensembles import TRIAL_PRECISION
from caveat.training.streams import mask_seed
from tests.estimators.dropout_data import quick_regressor, rows
from tests.statistics import assert_mean_is, assert_variance_is

_BATCHES = "networks learn from batches: two rows of weight 1 are not one of weight 2"
EXPECTED_FAILURES = {  # of scikit-learn's checks, with the reason
    "check_sample_weight_equivalence_on_dense_data": _BATCHES,
    "check_sample_weight_equivalence_on_sparse_data": _BATCHES,
}


def weights_of(network):
    return [p.detach() for p in network.parameters()]


# scikit-learn


def test_all_checks_of_scikit_learn():
    found = check_estimator(
        DropoutRegressor(schedule=Schedule(epochs=20), n_draws=20),
        expected_failed_checks=EXPECTED_FAILURES,
        on_fail=None,
        on_skip=None,
    )
    failed = {r["check_name"]: r["exception"] for r in found if r["status"] == "failed"}
    assert len(found) > 45 and failed == {}


def test_pipeline_grid_search_and_cross_validation():
    x, y = rows()
    model = make_pipeline(PolynomialFeatures(2), quick_regressor(precision=4.0))
    assert len(cross_val_score(model, x, y, cv=2)) == 2
    search = GridSearchCV(
        quick_regressor(precision=4.0),
        {"drop_rate": [0.05, 0.9]},
        scoring=lambda model, x, y: model.log_likelihood(x, y),
        cv=2,
    ).fit(x, y)
    assert search.best_params_ == {"drop_rate": 0.05}
    assert search.best_estimator_.predict(x, return_std=True)[1].shape == y.shape


def test_a_clone_has_the_parameters_and_learns_the_same():
    x, y = rows()
    model = quick_regressor(hidden=(4, 3), precision=NoiseHead()).fit(x, y)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "networks_")
    assert np.array_equal(copy.fit(x, y).predict(x), model.predict(x))


def test_sparse_matrices_and_data_frames():
    x, y = rows()
    x[x < 0.5] = 0.0
    plain = quick_regressor(precision=4.0).fit(x, y)
    for matrix in (sparse.csr_matrix(x), sparse.coo_array(x)):
        thin = quick_regressor(precision=4.0).fit(matrix, y)
        assert np.array_equal(thin.predict(matrix), plain.predict(x))
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    named = quick_regressor(precision=4.0).fit(frame, pd.Series(y))
    assert named.feature_names_in_.tolist() == ["a", "b", "c"]
    assert np.array_equal(named.predict(frame), plain.predict(x))
    with pytest.raises(ValueError, match="feature names should match"):
        named.predict(frame[["b", "a", "c"]])


# One code path


@pytest.mark.parametrize("noise", ["bernoulli", "gaussian"])
def test_fit_is_the_training_of_a_fleet_of_one(noise):
    """The same member, standardised rows made here: the same weights, bit for bit."""
    x, y = rows()
    model = quick_regressor(precision=2.0, noise=noise, activation="tanh").fit(x, y)
    trainer = model._trainer(2.0, model._seed)
    problem = trainer.problem(x, y[:, None], precision=2.0 * y.var())
    members = problem.members(model.scaling_, n_train=60, seed=model._seed)
    standard = Rows.of((x - x.mean(0)) / x.std(0), (y - y.mean()) / y.std())
    trained = train(members, [standard])
    for ours, theirs in zip(
        weights_of(model.networks_[0]), weights_of(trained.network(0)), strict=True
    ):
        assert torch.equal(ours, theirs)


def test_the_first_of_several_networks_is_the_only_one_of_one():
    x, y = rows()
    one = quick_regressor(precision=4.0).fit(x, y)
    three = quick_regressor(precision=4.0, n_members=3).fit(x, y)
    first, second = three.networks_[:2]
    for ours, theirs in zip(
        weights_of(one.networks_[0]), weights_of(first), strict=True
    ):
        assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    assert not torch.equal(weights_of(first)[0], weights_of(second)[0])
    assert three.predictive(x).n_draws == 150


def test_networks_are_ordinary_modules():
    x, y = rows()
    model = quick_regressor(hidden=(4, 3), input_drop_rate=0.1).fit(x, y)
    kinds = [type(m) for m in model.networks_[0]]
    hidden = [nn.ReLU, nn.Dropout, nn.Linear]
    assert kinds == [nn.Dropout, nn.Linear, *hidden, *hidden]


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_all_non_linearities(activation):
    x, y = rows()
    model = quick_regressor(
        activation=activation, precision=4.0, schedule=Schedule(60, batch_size=5)
    )
    assert model.fit(x, y).score(x, y) > 0.5


def test_a_linear_model():
    x, y = rows()
    given = {"hidden": (), "input_drop_rate": 0.01, "precision": 4.0}
    model = quick_regressor(**given, schedule=Schedule(200, batch_size=20)).fit(x, y)
    centred = x - x.mean(0)
    residual = y - y.mean() - centred @ np.linalg.lstsq(centred, y, rcond=None)[0]
    assert model.score(x, y) > 0.98 * (1 - residual.var() / y.var())
    assert len(model.weight_decays_) == 1


def test_draws_are_those_of_mcdropout_on_the_networks():
    x, y = rows()
    model = quick_regressor(precision=4.0, n_members=2, noise="gaussian").fit(x, y)
    draws = model.predictive(x[:5]).draws
    seed = mask_seed(model._seed, 0)
    inputs = model.scaling_.inputs(x[:5]).double()
    for number, net in enumerate(model.networks_):
        engine = MCDropout(deepcopy(net).double(), seed=mask_seed(seed, number))
        theirs = engine.draws(inputs, n_draws=50)[..., 0] * y.std() + y.mean()
        assert_close(draws[number::2], theirs)


def test_errors_are_those_of_stratified_draws():
    x, y = rows()
    found = quick_regressor(n_draws=128).fit(x, y).predictive(x)
    plain = found.draws.std(0) / 128**0.5
    assert bool((found.mean_error < 0.8 * plain).all())
    several = quick_regressor(n_draws=128, n_members=2).fit(x, y).predictive(x)
    assert_close(several.mean_error, several.draws.std(0) / 256**0.5)


def test_a_second_prediction_makes_no_masks(monkeypatch):
    x, y = rows()
    model = quick_regressor(precision=4.0).fit(x, y)
    first = model.predict(x[:1])

    def never(*args):
        raise AssertionError("masks were made again")

    monkeypatch.setattr("caveat.training.stacked.factors_of", never)
    assert np.array_equal(model.predict(x[:1]), first)
    assert model.predict(x[:7])[0] == pytest.approx(first[0])


def test_a_fitted_estimator_survives_joblib_and_copies(tmp_path):
    x, y = rows()
    model = quick_regressor(precision=NoiseHead()).fit(x, y)
    expected = model.predict(x)
    joblib.dump(model, tmp_path / "model")
    for again in (joblib.load(tmp_path / "model"), deepcopy(model)):
        assert np.array_equal(again.predict(x), expected)


def test_at_most_thirteen_parameters():
    assert len(DropoutRegressor().get_params()) == 13


def test_a_grid_of_schedules():
    x, y = rows()
    lengths = [Schedule(epochs=1, learning_rate=1e-6), Schedule(epochs=40)]
    search = GridSearchCV(quick_regressor(precision=4.0), {"schedule": lengths}, cv=2)
    assert search.fit(x, y).best_params_ == {"schedule": lengths[1]}


# Units


@pytest.mark.parametrize("precision", [None, NoiseHead()])
def test_answers_are_in_the_units_of_y(precision):
    """By a factor of two the standardised rows are the same, bit for bit."""
    x, y = rows()
    small = quick_regressor(precision=precision).fit(x, y)
    large = quick_regressor(precision=precision).fit(x, 1024 * y)
    for a, b in zip(
        (*small.predict(x, return_std=True), *small.predict_interval(x)),
        (*large.predict(x, return_std=True), *large.predict_interval(x)),
        strict=True,
    ):
        assert np.allclose(1024 * a, b, rtol=1e-9, atol=1e-9)
    shift = np.log(1024)
    found = small.log_likelihood(x, y) - large.log_likelihood(x, 1024 * y)
    assert found == pytest.approx(shift)
    change = small.validation_log_likelihood_ - large.validation_log_likelihood_
    assert change == pytest.approx(shift)
    if precision is not None:
        assert small.precision_scale_ == pytest.approx(large.precision_scale_)
    else:
        assert small.precision_ == pytest.approx(1024**2 * large.precision_)


def test_several_outputs_in_several_units():
    x, y = rows(n_outputs=2)
    model = quick_regressor().fit(x, y)
    other = quick_regressor().fit(x, y * [1.0, 0.5])
    assert_close(other.precision_, model.precision_ * [1.0, 4.0])
    assert_close(
        model.precision_[0] / model.precision_[1], y[:, 1].var() / y[:, 0].var()
    )
    mean, std = model.predict(x, return_std=True)
    assert mean.shape == std.shape == (60, 2)
    assert_close(other.predict(x), mean * [1.0, 0.5])
    found = model.predictive(x)
    assert_close(found.precision[0].numpy(), model.precision_)
    joint = found.log_prob(torch.from_numpy(y)).mean().item()
    assert model.log_likelihood(x, y) == pytest.approx(joint)


def test_a_column_of_targets_stays_a_column():
    x, y = rows(n_outputs=1)
    model = quick_regressor(precision=4.0).fit(x, y)
    flat = quick_regressor(precision=4.0).fit(x, y[:, 0])
    assert np.array_equal(model.predict(x), flat.predict(x)[:, None])
    assert isinstance(model.precision_, float)


# Precision, length-scale, weight decay


def test_penalties_follow_from_precision_and_lengthscale():
    """wd_i = l² / (p_i tau_std N) for torch's dropout (E14, E17); l² / (tau N) of b."""
    x, y = rows()
    model = quick_regressor(
        input_drop_rate=0.2, drop_rate=0.1, precision=2.0, prior=Prior(0.3)
    ).fit(x, y)
    unit = 0.3**2 / (2.0 * y.var() * 60)
    assert model.weight_decays_ == pytest.approx((unit / 0.8, unit / 0.9))
    assert model.bias_weight_decay_ == pytest.approx(unit)
    assert model.precision_ == 2.0 and model.lengthscale_ == 0.3
    assert model.validation_log_likelihood_ is None


@pytest.mark.parametrize("precision", [2.0, None])
def test_the_lengthscale_follows_from_precision_and_decay(precision):
    x, y = rows()
    given = {"precision": precision, "prior": Prior(weight_decay=1e-3)}
    model = quick_regressor(**given).fit(x, y)
    tau = model.precision_ * y.var()
    assert model.weight_decays_[-1] == pytest.approx(1e-3)
    assert model.lengthscale_**2 == pytest.approx(1e-3 * 0.95 * tau * 60)


def test_the_precision_follows_from_lengthscale_and_decay():
    x, y = rows()
    model = quick_regressor(prior=Prior(0.3, 1e-3)).fit(x, y)
    assert model.validation_log_likelihood_ is None
    tau = model.precision_ * y.var()
    assert tau == pytest.approx(0.3**2 / (0.95 * 60 * 1e-3))
    assert model.weight_decays_[-1] == pytest.approx(1e-3)


def test_the_decay_is_that_of_the_validated_precision():
    x, y = rows()
    model = quick_regressor(prior=Prior(0.3)).fit(x, y)
    tau = model.precision_ * y.var()
    assert tau != pytest.approx(TRIAL_PRECISION)
    assert model.weight_decays_[-1] == pytest.approx(0.3**2 / (0.95 * tau * 60))


def test_the_validated_precision_is_that_of_the_noise():
    """Noise of variance 1/4 on a linear function: tau near 4 (its log has se ~ 0.1)."""
    x, y = rows(400, 2)
    model = quick_regressor(hidden=(), schedule=Schedule(epochs=60), drop_rate=0.0).fit(
        x, y
    )
    assert abs(np.log(model.precision_ / 4)) < 0.35
    exact = model.log_likelihood(*rows(400, 2))
    assert model.validation_log_likelihood_ == pytest.approx(exact, abs=0.1)


def test_a_precision_per_output():
    x, y = rows(n_outputs=2)
    model = quick_regressor(precision=[1.0, 9.0]).fit(x, y)
    assert model.predictive(x).precision[0].tolist() == [1.0, 9.0]
    tau = np.mean(np.array([1.0, 9.0]) * y.var(0))
    assert model.bias_weight_decay_ == pytest.approx(1e-4 / (tau * 60))


# The noise head


def noisy_rows(n_rows=400):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(n_rows, 1))
    return x, np.where(x[:, 0] > 0, 1.0, 0.05) * rng.normal(size=n_rows)


def test_noise_that_depends_on_x_is_learned():
    x, y = noisy_rows()
    long = {"schedule": Schedule(epochs=60)}
    plain = quick_regressor(**long).fit(x, y)
    head = quick_regressor(**long, precision=NoiseHead()).fit(x, y)
    new_x, new_y = noisy_rows(300)
    gain = head.log_likelihood(new_x, new_y) - plain.log_likelihood(new_x, new_y)
    assert gain > 0.5
    _, std = head.predict([[-0.7], [0.7]], return_std=True)
    assert std[0] < 0.2 < 0.6 < std[1]
    assert head.precision_ is None and 0.3 < head.precision_scale_ < 3


def test_the_density_with_a_noise_head_is_that_of_the_mixture():
    x, y = noisy_rows(40)
    head = NoiseHead(calibrate=False)
    model = quick_regressor(precision=head).fit(x, y[:, None])
    assert model.validation_log_likelihood_ is None
    assert model.precision_scale_ == 1.0
    found = model.predictive(x)
    parts = Normal(found.draws, found.draw_precision.rsqrt())
    weights = Categorical(logits=torch.zeros(40, 50))
    by_torch = MixtureSameFamily(
        weights,
        Independent(Normal(parts.loc.transpose(0, 1), parts.scale.transpose(0, 1)), 1),
    )
    expected = by_torch.log_prob(torch.from_numpy(y[:, None])).mean().item()
    assert model.log_likelihood(x, y[:, None]) == pytest.approx(expected)
    assert found.draw_precision.std(0).min() > 0


# Answers


def test_answers_are_those_of_the_predictive(monkeypatch):
    """Also when rows are asked in parts."""
    x, y = rows()
    model = quick_regressor(precision=NoiseHead()).fit(x, y)
    found = model.predictive(x)
    monkeypatch.setattr("caveat.estimators.base._AT_ONCE", 1000)
    mean, std = model.predict(x, return_std=True)
    assert_close(mean, found.mean.numpy(), rtol=1e-9, atol=1e-9)
    assert_close(std, found.std.numpy(), rtol=1e-9, atol=1e-9)
    for ours, theirs in zip(
        model.predict_interval(x, 0.8), found.interval(0.8), strict=True
    ):
        assert_close(ours, theirs.numpy(), rtol=1e-5, atol=1e-5)
    expected = found.log_prob(torch.from_numpy(y)).mean().item()
    assert model.log_likelihood(x, y) == pytest.approx(expected)


def test_a_row_does_not_depend_on_the_others():
    x, y = rows()
    model = quick_regressor(n_members=2).fit(x, y)
    whole = model.predictive(x).draws
    assert_close(model.predictive(x[[7, 2]]).draws, whole[:, [7, 2]])


@pytest.mark.parametrize("precision", [4.0, NoiseHead(calibrate=False)])
def test_sampled_observations_have_the_moments_of_the_predictive(precision):
    """As many other masks: both have a Monte Carlo error, their gap √2 times it."""
    x, y = rows()
    given = {"precision": precision, "drop_rate": 0.3}
    model = quick_regressor(n_members=2, n_draws=4000, **given).fit(x, y)
    found = model.predictive(x[:3])
    drawn = torch.from_numpy(model.sample_y(x[:3], n_draws=8001))
    assert drawn.shape == (8001, 3)
    assert_mean_is(drawn, found.mean, z=5 * 2**0.5)
    assert_variance_is(drawn, found.variance, z=5 * 2**0.5)


def test_sampled_observations_are_reproducible():
    x, y = rows(n_outputs=2)
    model = quick_regressor(precision=4.0).fit(x, y)
    assert model.sample_y(x).shape == (1, 60, 2)
    assert np.array_equal(model.sample_y(x, 3), model.sample_y(x, 3))
    other = model.sample_y(x, 3, random_state=1)
    assert not np.array_equal(model.sample_y(x, 3), other)


def test_without_dropout_an_ensemble_has_a_draw_per_network():
    x, y = rows()
    model = quick_regressor(drop_rate=0.0, n_members=3, precision=4.0).fit(x, y)
    found = model.predictive(x)
    assert found.n_draws == 3
    nets = [net(model.scaling_.inputs(x)) for net in model.networks_]
    mean = torch.stack(nets).mean(0)[:, 0] * y.std() + y.mean()
    assert np.allclose(model.predict(x), mean.detach().numpy(), atol=1e-5)
    assert model.sample_y(x, 10).shape == (10, 60)


def test_intervals_cover_new_observations():
    """Of 1000 new rows 80 % lie inside, up to five standard errors and 0.04."""
    x, y = rows(400, 2)
    model = quick_regressor(schedule=Schedule(epochs=50)).fit(x, y)
    rng = np.random.default_rng(9)
    new = rng.normal(size=(1000, 2))
    weights = np.linalg.lstsq(x, y, rcond=None)[0]
    observed = new @ weights + 0.5 * rng.normal(size=1000)
    lower, upper = model.predict_interval(new, level=0.8)
    inside = np.mean((lower < observed) & (observed < upper))
    assert abs(inside - 0.8) < 0.04 + 5 * np.sqrt(0.16 / 1000)


# Randomness


def test_the_same_seed_gives_the_same_and_another_another():
    x, y = rows()
    first = quick_regressor().fit(x, y).predict(x)
    assert np.array_equal(quick_regressor().fit(x, y).predict(x), first)
    state = np.random.RandomState(0)
    assert np.array_equal(
        quick_regressor(random_state=state).fit(x, y).predict(x), first
    )
    other = quick_regressor(random_state=1).fit(x, y).predict(x)
    assert not np.array_equal(other, first)


def test_global_generators_are_left_alone():
    x, y = rows()
    before = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    quick_regressor(random_state=None).fit(x, y).sample_y(x)
    assert np.array_equal(np.random.get_state()[1], before[0])  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), before[1])


# Early stopping


def test_early_stopping_keeps_the_best_weights():
    """Pure noise: the longer, the worse."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 5)), rng.normal(size=60)
    given = {"precision": 1.0, "drop_rate": 0.01}
    full = quick_regressor(**given, schedule=Schedule(900)).fit(x, y)
    stopping = EarlyStopping(share=0.3, patience=5)
    schedule = Schedule(900, early_stopping=stopping)
    early = quick_regressor(**given, schedule=schedule).fit(x, y)
    assert early.n_steps_[0] < 0.5 * full.n_steps_[0]
    new = rng.normal(size=(300, 5)), rng.normal(size=300)
    assert early.log_likelihood(*new) > full.log_likelihood(*new)


# Awkward data


def test_constant_columns_are_only_centred():
    x, y = rows()
    x[:, 1] = 7.0
    model = quick_regressor().fit(x, y)
    assert model.scaling_.x_std[1] == 1.0 and np.isfinite(model.predict(x)).all()
    flat = quick_regressor(schedule=Schedule(epochs=100)).fit(x, np.full(60, 3.0))
    assert flat.scaling_.y_std.tolist() == [1.0]
    assert np.allclose(flat.predict(x), 3.0, atol=0.2)


@pytest.mark.parametrize("n_rows", [2, 3, 6])
def test_very_few_rows(n_rows):
    x, y = rows(n_rows)
    mean, std = quick_regressor().fit(x, y).predict(x, return_std=True)
    assert np.isfinite(mean).all() and (std > 0).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x, y: (np.where(x > 1, np.nan, x), y), "Input X contains NaN"),
        (lambda x, y: (np.where(x > 1, np.inf, x), y), "Input X contains infinity"),
        (lambda x, y: (x, np.where(y > 0, np.nan, y)), "[Ii]nput y contains NaN"),
        (lambda x, y: (x[:1], y[:1]), r"1 sample\(s\).*minimum of 2"),
        (lambda x, y: (x, y[:-1]), "inconsistent numbers of samples"),
        (lambda x, y: (x[0], y), "Expected 2D array"),
        (lambda x, y: (x, y.reshape(60, 1, 1)), "3|Found array with dim"),
    ],
)
def test_bad_data(change, message):
    with pytest.raises(ValueError, match=message):
        quick_regressor().fit(*change(*rows()))


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"hidden": 50}, InputTypeError, r"hidden must be a tuple.*Got 50"),
        ({"activation": "relo"}, ParameterError, "activation must be one of 'relu'"),
        ({"noise": "poisson"}, ParameterError, "noise must be 'bernoulli', 'gau"),
        ({"drop_rate": 1.0}, ParameterError, r"lie in \[0, 1\). Got 1.0: a unit"),
        ({"precision": "validated"}, InputTypeError, r"NoiseHead\(\).*'validated'"),
        ({"precision": NoiseHead}, InputTypeError, r"NoiseHead\(\) \(learned"),
        ({"precision": -1.0}, ParameterError, "precision .*must be finite and above 0"),
        ({"precision": [1.0, 2.0]}, ShapeError, "one per output, 1"),
        (
            {"precision": 2.0, "prior": Prior(0.1, 1e-3)},
            ParameterError,
            "Got all three: the precision 2.0",
        ),
        (
            {"precision": NoiseHead(), "prior": Prior(0.1, 1e-3)},
            ParameterError,
            "Got all three",
        ),
        ({"prior": 0.1}, InputTypeError, r"prior must be Prior\(lengthscale"),
        ({"schedule": 100}, InputTypeError, r"schedule must be a Schedule, such as"),
        ({"n_members": 0}, ParameterError, "n_members must be at least 1"),
        ({"n_draws": 1}, ParameterError, "n_draws must be at least 2"),
    ],
)
def test_bad_parameters(parameters, error, message):
    with pytest.raises(error, match=message):
        quick_regressor(**parameters).fit(*rows())


def test_bad_questions():
    x, y = rows()
    model = quick_regressor(precision=4.0).fit(x, y)
    with pytest.raises(ShapeError, match=r"y must have the shape \(60,\)"):
        model.log_likelihood(x, y[:, None])
    with pytest.raises(ParameterError, match="level must lie strictly"):
        model.predict_interval(x, level=95)
    with pytest.raises(ValueError, match="2 features, but DropoutRegressor is expect"):
        model.predict(x[:, :2])
    with pytest.raises(ParameterError, match="n_draws must be at least 1"):
        model.sample_y(x, 0)


def test_the_loss_curve_falls_and_is_kept(tmp_path):
    x = np.linspace(-2, 2, 60)[:, None]
    schedule = Schedule(epochs=30)
    model = DropoutRegressor(n_members=2, schedule=schedule, random_state=0)
    curve = model.fit(x, np.sin(x[:, 0])).loss_curve_
    assert len(curve) == 20 and curve[-1] < 0.5 * curve[0]
    caveat.save(model, tmp_path / "model")
    assert caveat.load(tmp_path / "model").loss_curve_ == curve


def test_names_of_the_columns_of_a_prediction(tmp_path):
    pandas = pytest.importorskip("pandas")
    x = np.linspace(-2, 2, 20)[:, None]
    both = pandas.DataFrame({"height": x[:, 0], "width": -x[:, 0]})
    settings = {"schedule": Schedule(epochs=1), "random_state": 0}
    for y, names in (
        (both, ["height", "width"]),
        (both["width"], ["width"]),
        (both.to_numpy(), ["y0", "y1"]),
        (x[:, 0], ["y"]),
    ):
        model = DropoutRegressor(**settings).fit(x, y)
        assert model.get_feature_names_out().tolist() == names
        caveat.save(model, tmp_path / "m")
        same = caveat.load(tmp_path / "m")
        assert same.get_feature_names_out().tolist() == names
