"""Every kind of predictive keeps every promise of its side."""

import ast
import dataclasses
import math
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.testing import assert_close

import caveat
from caveat.errors import CaveatWarning, DrawsNotKeptError, NoAnswerError, ShapeError
from caveat.predictive import (
    ClassificationPredictive,
    Predictive,
    RegressionPredictive,
)
from tests.predictive.contract_cases import (
    CLASSIFICATIONS,
    CONTINUOUS,
    NOT_KEPT,
    ONE_OUTPUT,
    REGRESSIONS,
    ROWS,
    SEVERAL,
)
from tests.predictive.examples import random_draws
from tests.statistics import assert_mean_is

N_SAMPLES = 20_000
LEVELS = [0.05, 0.3, 0.5, 0.62, 0.95]
MOMENTS = "mean std variance epistemic_variance noise_variance mean_error".split()
MEASURES = "entropy expected_entropy mutual_information variation_ratio".split()


@pytest.fixture(params=REGRESSIONS)
def name(request) -> str:
    return request.param


@pytest.fixture
def regression(name) -> RegressionPredictive:
    return REGRESSIONS[name]()


@pytest.fixture(params=CONTINUOUS)
def continuous(request) -> RegressionPredictive:
    """All but the conformal ones, whose cdf has steps and is not their density's."""
    return REGRESSIONS[request.param]()


@pytest.fixture(params=ONE_OUTPUT)
def one_output(request) -> RegressionPredictive:
    """Those whose density is that of one number, and exact enough for differences."""
    return REGRESSIONS[request.param]()


@pytest.fixture(params=CLASSIFICATIONS)
def classification(request) -> ClassificationPredictive:
    return CLASSIFICATIONS[request.param]()


@pytest.fixture(params=[*REGRESSIONS.values(), *CLASSIFICATIONS.values()])
def predictive(request) -> Predictive:
    return request.param()


def some_y(predictive: Predictive) -> torch.Tensor:
    """An observation of each row, not at its centre."""
    if isinstance(predictive, ClassificationPredictive):
        return predictive.label
    assert isinstance(predictive, RegressionPredictive)
    return predictive.mean + 0.7 * predictive.std


def answers(predictive: Predictive) -> dict[str, np.ndarray]:
    """Everything that has rows, rows first."""
    found = predictive.to_numpy()
    found["log_prob"] = predictive.log_prob(some_y(predictive)).numpy()
    if isinstance(predictive, RegressionPredictive):
        found["quantile"] = predictive.quantile([0.2, 0.9]).transpose(0, 1).numpy()
        found["cdf"] = predictive.cdf(some_y(predictive)).numpy()
        found["crps"] = predictive.crps(some_y(predictive)).numpy()
    return found


# What all predictives promise


def test_rows_are_chosen_and_joined(predictive):
    whole = answers(predictive)
    for index, rows in (
        (slice(1, 3), [1, 2]),
        ([2, 0], [2, 0]),
        (torch.tensor([True, False, False, True]), [0, 3]),
        (-1, [3]),
    ):
        part = answers(predictive[index])
        for key, array in part.items():
            np.testing.assert_allclose(
                array, whole[key][rows], rtol=1e-6, atol=1e-9, err_msg=key
            )
    parts = [predictive[:1], predictive[[1, 2]], predictive[3]]
    joined = type(predictive).concatenate(parts)
    assert type(joined) is type(predictive)
    assert len(joined) == len(predictive) == ROWS == len(list(predictive))
    assert joined.n_draws == predictive.n_draws
    for key, array in answers(joined).items():
        np.testing.assert_allclose(array, whole[key], rtol=1e-6, atol=1e-9, err_msg=key)


def test_no_rows_still_answer(predictive):
    none = predictive[:0]
    assert len(none) == 0
    assert none.sample(3).shape == (3, 0, *predictive.sample(1).shape[2:])
    for array in answers(none).values():
        assert len(array) == 0
    assert "0 rows" in repr(none)


def test_it_is_a_value(predictive):
    for attribute in ("mean", "probs", "n_draws", "anything"):
        with pytest.raises((dataclasses.FrozenInstanceError, AttributeError)):
            setattr(predictive, attribute, 1)
    before = answers(predictive)
    for array in predictive.to_numpy().values():
        array[:] = 0
    copy = pickle.loads(pickle.dumps(predictive))
    for found in (answers(predictive), answers(copy)):
        for key, array in found.items():
            np.testing.assert_array_equal(array, before[key], err_msg=key)


def test_draws_are_there_or_said_to_be_missing(predictive):
    try:
        draws = predictive.draws
    except DrawsNotKeptError as error:
        assert "draws" in str(error) and "MCDropout" in str(error)
        return
    assert len(draws) == predictive.n_draws > 0
    assert draws.shape[1] == ROWS


def test_every_kind_is_drawn(predictive):
    plt = pytest.importorskip("matplotlib.pyplot")
    display = predictive.plot()
    assert display.ax_.has_data() and display.figure_ is display.ax_.figure
    plt.close("all")


def test_samples_repeat_with_their_seed(predictive):
    one, two, other = (predictive.sample(50, seed=s) for s in (1, 1, 2))
    assert torch.equal(one, two)
    assert not torch.equal(one, other)
    assert torch.equal(one[:20], predictive.sample(20, seed=1))
    assert not torch.equal(predictive.sample(50), predictive.sample(50))
    for wrong in (0, -1, 2.5):
        with pytest.raises((ValueError, TypeError), match="n_observations"):
            predictive.sample(wrong)


def test_errors_of_the_mean(predictive):
    error = predictive.mean_error
    is_class = isinstance(predictive, ClassificationPredictive)
    assert error.shape == (predictive.probs if is_class else predictive.mean).shape
    assert bool((error >= 0).all())
    if predictive.n_draws == 0:
        assert not error.any()
    elif predictive.n_draws == 1:
        assert bool(error.isinf().all())
    else:
        assert bool(error.isfinite().all()) and bool(error.any())


def test_repr_is_short_and_names_the_kind(predictive):
    text = repr(predictive)
    assert text.startswith(f"{type(predictive).__name__}: ")
    assert f"{ROWS} rows" in text
    assert len(text.splitlines()) <= 5


# Regressions


def test_shapes_and_types(regression):
    shape, dtype = regression.mean.shape, regression.mean.dtype
    y = some_y(regression)
    found = [getattr(regression, attribute) for attribute in MOMENTS]
    found += [regression.cdf(y), regression.crps(y), *regression.interval(0.5)]
    for tensor in found:
        assert tensor.shape == shape and tensor.dtype == dtype
    assert regression.log_prob(y).shape == (ROWS,)
    assert regression.log_prob(y).dtype == dtype
    assert regression.quantile([0.1, 0.9]).shape == (2, *shape)
    assert regression.quantile(0.1).dtype == dtype
    assert regression.sample(7).shape == (7, *shape)
    assert regression.sample(7).dtype == dtype
    assert not any(t.requires_grad for t in found)


def test_variance_is_what_is_not_known_and_noise(regression):
    total = regression.epistemic_variance + regression.noise_variance
    assert_close(regression.variance, total)
    assert_close(regression.std, total.sqrt())
    assert bool((regression.epistemic_variance >= 0).all())


def test_columns(regression):
    frame = regression.to_frame()
    suffix = "_0" if regression.mean.numel() > ROWS else ""
    assert next(iter(frame.columns)) == f"mean{suffix}"
    assert {f"{attribute}{suffix}" for attribute in MOMENTS} <= set(frame.columns)
    assert len(frame) == ROWS


def test_quantiles_are_ordered_and_make_intervals(regression):
    found = regression.quantile(LEVELS)
    assert bool((found.diff(dim=0) > 0).all())
    lower, upper = regression.interval(0.9)
    assert_close(torch.stack([lower, upper]), found[[0, 4]])
    assert_close(regression.quantile(0.3), found[1])
    assert_close(regression.quantile((0.3,)), found[[1]])


def test_quantile_is_the_inverse_of_the_cdf(continuous):
    for level in LEVELS:
        found = continuous.cdf(continuous.quantile(level))
        assert_close(found, torch.full_like(found, level), atol=2e-6, rtol=1e-5)
    y = some_y(continuous)
    level = continuous.cdf(y).reshape(-1)[0].item()
    back = continuous.quantile(level).reshape(-1)[0]
    assert_close(back, y.reshape(-1)[0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", ["conformal mixture", "conformal student"])
def test_conformal_cdf_steps_over_the_level_at_its_quantile(kind):
    predictive = REGRESSIONS[kind]()
    for level in LEVELS:
        above = predictive.cdf(predictive.quantile(level) + 1e-9)
        assert bool((above >= level - 1e-9).all())
        below = predictive.cdf(predictive.quantile(level) - 1e-9)
        assert bool((below <= level + 1e-9).all())


def test_inside_is_inside_the_interval(regression):
    for row in range(7):
        y = regression.mean + (row - 3) * 0.6 * regression.std
        lower, upper = regression.interval(0.8)
        expected = (lower <= y) & (y <= upper)
        assert torch.equal(regression.inside(y, 0.8), expected)
        both = regression.inside(y, [0.4, 0.8])
        assert both.shape == (2, *y.shape) and torch.equal(both[1], expected)


def test_density_is_the_slope_of_the_cdf(one_output):
    y, step = some_y(one_output), 1e-4 * one_output.std
    slope = (one_output.cdf(y + step) - one_output.cdf(y - step)) / (2 * step)
    assert_close(one_output.log_prob(y).exp(), slope.reshape(-1), rtol=1e-5, atol=1e-7)


def grid_of(predictive: RegressionPredictive, number: int) -> torch.Tensor:
    """Points from 12 standard deviations below to as many above; points first."""
    steps = torch.linspace(-12, 12, number, dtype=torch.float64)
    steps = steps.reshape(-1, *[1] * predictive.mean.dim())
    return predictive.mean + steps * predictive.std


def test_density_integrates_to_one(one_output):
    grid = grid_of(one_output, 4001)
    density = torch.stack([one_output.log_prob(y).exp() for y in grid])
    total = torch.trapezoid(density, grid.reshape(4001, ROWS), dim=0)
    assert_close(total, torch.ones_like(total), atol=1e-4, rtol=0)


@pytest.mark.parametrize("kind", SEVERAL)
def test_joint_density_integrates_to_one(kind):
    predictive, number = REGRESSIONS[kind]()[:1], 301
    grid = grid_of(predictive, number)[:, 0].double()  # shape: (points, 2)
    total = 0.0
    for first in grid[:, 0]:
        y = torch.stack([first.expand(number), grid[:, 1]], 1).to(predictive.mean)
        rows = predictive[[0] * number]
        total += float(torch.trapezoid(rows.log_prob(y).double().exp(), grid[:, 1]))
    step = float(grid[1, 0] - grid[0, 0])
    assert total * step == pytest.approx(1.0, abs=1e-4)


def test_crps_is_its_integral(one_output):
    grid = grid_of(one_output, 6001)
    y = some_y(one_output)
    below = torch.stack([one_output.cdf(x) for x in grid])
    gap = (below - (grid >= y).double()).square()
    expected = torch.trapezoid(gap, grid, dim=0)
    scale = float(one_output.std.max())
    assert_close(one_output.crps(y), expected, atol=3e-3 * scale, rtol=0)


def test_samples_have_the_mean_and_the_quantiles(name, regression):
    drawn = regression.sample(N_SAMPLES, seed=3).double()
    if name != "moments beside draws":  # samples are of the draws
        assert_mean_is(drawn, regression.mean.double())
    if name.startswith("conformal"):
        return  # samples are those of the wrapped predictive
    for level in (0.1, 0.5, 0.9):
        below = (drawn <= regression.quantile(level).double()).double().mean(0)
        error = math.sqrt(level * (1 - level) / N_SAMPLES)
        assert bool(((below - level).abs() < 5 * error).all())


@pytest.mark.parametrize("kind", ["mixture of two outputs", "correlated moments"])
def test_samples_of_a_row_have_its_covariance(kind):
    predictive = REGRESSIONS[kind]()
    drawn = predictive.sample(N_SAMPLES, seed=3).double()
    gaps = drawn - predictive.mean.double()
    products = gaps[..., 0] * gaps[..., 1]
    assert_mean_is(products, predictive.covariance[:, 0, 1].double())
    rows = gaps[:, 0, 0] * gaps[:, 1, 0]
    assert_mean_is(rows, 0.0)  # rows are sampled on their own


@pytest.mark.parametrize("scale", [3.0, -0.5])
def test_rescale(regression, scale):
    shift, y = 7.0, some_y(regression)
    found, size = regression.rescale(scale, shift), abs(scale)
    exact = {"rtol": 1e-5, "atol": 1e-5}
    assert type(found) is type(regression)
    assert_close(found.mean, scale * regression.mean + shift, **exact)
    assert_close(found.variance, scale**2 * regression.variance, **exact)
    assert_close(found.noise_variance, scale**2 * regression.noise_variance, **exact)
    assert_close(found.mean_error, size * regression.mean_error, **exact)
    moved = scale * y + shift
    n_outputs = regression.mean[0].numel()
    density = regression.log_prob(y) - n_outputs * math.log(size)
    assert_close(found.log_prob(moved), density, **exact)
    assert_close(found.crps(moved), size * regression.crps(y), **exact)
    for level in (0.2, 0.5, 0.9):
        own = level if scale > 0 else 1.0 - level
        expected = scale * regression.quantile(own) + shift
        assert_close(found.quantile(level), expected, **exact)
    assert_close(
        found.rescale(1 / scale, -shift / scale).mean, regression.mean, **exact
    )
    with pytest.raises(ValueError, match="scale must not be 0"):
        regression.rescale(0.0)


def test_with_precision(name, regression):
    if "student" in name or name.startswith("conformal"):
        with pytest.raises(NoAnswerError):
            regression.with_precision(5.0)
        return
    found = regression.with_precision(5.0)
    assert type(found) is type(regression)
    assert_close(found.mean, regression.mean)
    assert_close(found.epistemic_variance, regression.epistemic_variance)
    assert_close(found.noise_variance, torch.full_like(found.mean, 0.2))
    y = some_y(regression)
    again = found.with_precision(1.0).with_precision(5.0)
    assert_close(again.log_prob(y), found.log_prob(y))
    twice, straight = found.scale_precision(2.0), regression.with_precision(10.0)
    assert_close(twice.log_prob(y), straight.log_prob(y))
    with pytest.raises(ValueError, match="precision"):
        regression.with_precision(0.0)


def test_scaling_the_precision_scales_the_noise(name, regression):
    if "student" in name or name.startswith("conformal"):
        with pytest.raises(NoAnswerError):
            regression.scale_precision(4.0)
        return
    if name == "moments without noise":
        with pytest.raises(ValueError, match="no observation noise"):
            regression.scale_precision(4.0)
        return
    found = regression.scale_precision(4.0)
    assert_close(found.noise_variance, regression.noise_variance / 4.0)
    assert_close(found.epistemic_variance, regression.epistemic_variance)


def test_nothing_is_broadcast(regression):
    for ask in (regression.log_prob, regression.cdf, regression.crps):
        with pytest.raises(ShapeError, match="y must have the shape"):
            ask(torch.zeros(ROWS, 1, 1).double())


@pytest.mark.parametrize("kind", NOT_KEPT)
def test_without_draws_moments_are_known_and_the_rest_is_refused(kind):
    predictive = NOT_KEPT[kind]()
    assert_close(
        predictive.variance,
        predictive.epistemic_variance + predictive.noise_variance,
    )
    y = some_y(predictive)
    for ask in (
        lambda: predictive.draws,
        lambda: predictive.log_prob(y),
        lambda: predictive.crps(y),
        lambda: predictive.sample(3),
    ):
        with pytest.raises(DrawsNotKeptError, match="keep_draws=True"):
            ask()
    assert_close(predictive.rescale(2.0).std, 2 * predictive.std)
    assert_close(predictive.with_precision(1.0).noise_variance, torch.ones_like(y))


@pytest.mark.parametrize("kind", NOT_KEPT)
def test_without_draws_intervals_are_those_of_a_gaussian_and_say_so(kind):
    predictive = NOT_KEPT[kind]()
    law = torch.distributions.Normal(predictive.mean, predictive.std)
    y = some_y(predictive)
    with pytest.warns(CaveatWarning, match="quantile: the draws were not kept"):
        lower, upper = predictive.interval(0.9)
    tail = torch.tensor(0.05, dtype=lower.dtype)
    assert_close(lower, law.icdf(tail), rtol=1e-4, atol=1e-5)
    assert_close(upper, law.icdf(1 - tail), rtol=1e-4, atol=1e-5)
    with pytest.warns(CaveatWarning, match="cdf: the draws were not kept"):
        assert_close(predictive.cdf(y), law.cdf(y), rtol=1e-4, atol=1e-5)
    with pytest.warns(CaveatWarning, match="keep_draws=True"):
        inside = predictive.inside(predictive.mean, 0.5)
    assert inside.all()


# Classifications


def test_probabilities(classification):
    probs = classification.probs
    assert_close(probs.sum(-1), torch.ones_like(probs[..., 0]))
    assert_close(classification.log_probs.exp(), probs)
    assert torch.equal(classification.label, probs.argmax(-1))
    assert classification.label.dtype == torch.int64
    assert_close(classification.entropy, torch.special.entr(probs).sum(-1))


def test_measures_of_uncertainty(classification):
    for measure in MEASURES:
        found = getattr(classification, measure)
        assert found.shape == classification.probs.shape[:-1]
        assert found.dtype == classification.probs.dtype
        assert bool((found >= 0).all())
    total = classification.expected_entropy + classification.mutual_information
    assert_close(total, classification.entropy)
    assert bool((classification.variation_ratio <= 1).all())
    if classification.n_draws == 0:
        assert not classification.mutual_information.any()
        largest = classification.probs.amax(-1)
        assert_close(classification.variation_ratio, 1 - largest)


def test_log_prob_is_that_of_the_label(classification):
    labels = classification.probs.argmin(-1)
    expected = classification.log_probs.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    assert torch.equal(classification.log_prob(labels), expected)
    with pytest.raises(ShapeError, match="y must have the shape"):
        classification.log_prob(torch.zeros(ROWS, 9, dtype=torch.int64))


def test_sampled_labels_have_the_probabilities(classification):
    drawn = classification.sample(N_SAMPLES, seed=3)
    assert drawn.shape == (N_SAMPLES, *classification.probs.shape[:-1])
    assert drawn.dtype == torch.int64
    probs = classification.probs.double()
    for label in range(3):
        share = (drawn == label).double().mean(0)
        error = (probs[..., label] * (1 - probs[..., label]) / N_SAMPLES).sqrt()
        assert bool(((share - probs[..., label]).abs() <= 5 * error + 1e-12).all())


def test_columns_of_a_classification(classification):
    frame = classification.to_frame()
    suffix = "_0" if classification.entropy.ndim > 1 else ""
    expected = {f"{measure}{suffix}" for measure in [*MEASURES, "label"]}
    assert expected <= set(frame.columns)


@pytest.mark.parametrize("kind", ["conformal", "conformal, random"])
def test_sets_go_with_their_rows(kind):
    predictive = CLASSIFICATIONS[kind]()
    assert predictive.sets.shape == predictive.probs.shape
    assert predictive.sets.dtype == torch.bool
    assert torch.equal(predictive[[2, 0]].sets, predictive.sets[[2, 0]])
    assert "sets_0" in predictive.to_frame()
    assert predictive.level == 0.7


# The waist


def test_parts_made_in_different_ways_are_not_joined():
    """What all rows share must be the same, or the first part would speak for all."""
    one, two = REGRESSIONS["conformal mixture"](), REGRESSIONS["conformal mixture"]()
    joined = type(one).concatenate([one, two])  # made alike: no matter that it is twice
    assert len(joined) == 2 * ROWS
    other = one.rescale(2.0)
    assert_close(type(one).concatenate([one, other]).mean[ROWS:], other.mean)
    draws = random_draws(9, ROWS, 1)
    sampled = caveat.GaussianPredictive.from_draws(draws, precision=1.0)
    zero = torch.zeros(ROWS, 1)
    exact = sampled.with_moments(zero, zero, method="exact", mean_error=zero)
    with pytest.raises(ShapeError, match="agree in the"):
        caveat.GaussianPredictive.concatenate([sampled, exact])


def concrete_kinds() -> set[str]:
    found = {type(make()).__name__ for make in REGRESSIONS.values()}
    return found | {type(make()).__name__ for make in CLASSIFICATIONS.values()}


def test_nobody_outside_asks_for_a_concrete_kind():
    """Downstream may ask for the side of a predictive, and for nothing else."""
    package = Path(caveat.__file__).parent
    kinds, offences = concrete_kinds(), []
    for path in package.rglob("*.py"):
        if path.is_relative_to(package / "predictive"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id in ("isinstance", "issubclass"):
                named = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
                offences += [f"{path.name}:{node.lineno}"] if named & kinds else []
    assert not offences


def test_the_sides_are_abstract():
    for side in (Predictive, RegressionPredictive, ClassificationPredictive):
        with pytest.raises(TypeError, match="abstract"):
            side(n_draws=1)
