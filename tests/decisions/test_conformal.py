"""Intervals and sets hold the truth as often as they say, over many data sets."""

import math

import numpy as np
import pytest
import torch

from caveat.decisions import (
    AdaptiveSets,
    Guarantee,
    LeastAmbiguous,
    QuantileResidual,
    ScaledResidual,
    conformal,
)
from caveat.errors import InputTypeError, ParameterError, ShapeError
from caveat.predictive import (
    CategoricalPredictive,
    GaussianPredictive,
    StudentPredictive,
)

N_SETS, N_KNOWN, N_NEW = 150, 49, 40


def regression(x: np.ndarray) -> StudentPredictive:
    """A bad model: biased, too sure, and with the wrong shape."""
    mean = torch.tensor(0.5 + 0.8 * x)
    scale = 0.1 + 0.1 * mean.abs()
    return StudentPredictive.of(mean, scale, noise_scale=0.1, df=6.0)


def outcome(x: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    return x + generator.gamma(2.0, size=x.shape) * (0.2 + np.abs(x))


def classifier(x: np.ndarray) -> CategoricalPredictive:
    """Four classes, twice as sure as it should be."""
    logits = torch.tensor(2 * x * np.arange(4)[:, None]).T
    return CategoricalPredictive.from_logits(logits[None])


def label(x: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    probs = torch.tensor(x * np.arange(4)[:, None]).T.softmax(-1)
    u = generator.random((len(x), 1))
    return (probs.cumsum(-1).numpy() < u).sum(1)


def assert_coverage(covered: np.ndarray, exact: float) -> None:
    """Mean over data sets; the error is measured between them."""
    error = covered.std(ddof=1) / math.sqrt(len(covered))
    assert abs(covered.mean() - exact) < 5 * error


@pytest.mark.parametrize("score", [None, QuantileResidual(), QuantileResidual(0.5)])
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_intervals_keep_their_level(score, level):
    generator = np.random.default_rng(5)
    covered = []
    for _ in range(N_SETS):
        x = generator.normal(size=N_KNOWN + N_NEW)
        y = outcome(x, generator)
        known = regression(x[:N_KNOWN])
        found = conformal(known, y[:N_KNOWN], level=level, score=score)
        lower, upper = found.interval(regression(x[N_KNOWN:]))
        covered.append(((lower <= y[N_KNOWN:]) & (y[N_KNOWN:] <= upper)).mean())
    assert_coverage(np.array(covered), math.ceil(50 * level) / 50)


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_sets_keep_their_level(level):
    generator = np.random.default_rng(6)
    scores = [LeastAmbiguous(), AdaptiveSets(), AdaptiveSets(seed=3)]
    covered = np.zeros((3, N_SETS))
    for turn in range(N_SETS):
        x = generator.normal(size=N_KNOWN + N_NEW)
        y = label(x, generator)
        known, new = classifier(x[:N_KNOWN]), classifier(x[N_KNOWN:])
        for k, score in enumerate(scores):
            found = conformal(known, y[:N_KNOWN], level=level, score=score)
            inside = found.sets(new)[np.arange(N_NEW), y[N_KNOWN:]]
            covered[k, turn] = inside.mean()
    exact = math.ceil(50 * level) / 50
    assert_coverage(covered[0], exact)
    assert_coverage(covered[2], exact)
    error = covered[1].std() / math.sqrt(N_SETS)
    assert covered[1].mean() > exact - 5 * error  # the top class is always in


def test_the_model_alone_does_not():
    """The test above can fail: the predictive's own intervals are far too narrow."""
    generator = np.random.default_rng(5)
    x = generator.normal(size=500)
    lower, upper = regression(x).interval(0.9)
    y = outcome(x, generator)
    assert ((lower.numpy() <= y) & (y <= upper.numpy())).mean() < 0.5


def test_scaled_residuals_by_hand():
    draws = torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 2.0]], dtype=torch.float64)
    predictive = GaussianPredictive.from_draws(draws, precision=1.0)
    found = conformal(predictive, [1.0, -3.0, 1.0], level=0.75)  # 3rd of 3
    assert found.guarantee.limit == pytest.approx(3.0)
    lower, upper = found.interval(predictive)
    np.testing.assert_allclose(lower, [-3, -3, 1 - 3 * math.sqrt(2)])
    np.testing.assert_allclose(upper, [3, 3, 1 + 3 * math.sqrt(2)])


def test_quantile_residuals_by_hand():
    zeros = torch.zeros(1, 3, dtype=torch.float64)
    predictive = GaussianPredictive.from_draws(zeros, precision=1.0)
    inner = float(predictive.interval(0.5)[1][0])
    score = QuantileResidual(0.5)
    found = conformal(predictive, [0.1, 1.0, -2.0], level=0.5, score=score)
    assert found.guarantee.limit == pytest.approx(1.0 - inner, abs=1e-5)  # 2nd of 3
    lower, upper = found.interval(predictive)
    np.testing.assert_allclose([lower, upper], [[-1.0] * 3, [1.0] * 3], atol=1e-5)
    narrow = conformal(predictive, [0.0, 0.0, 0.0], level=0.5, score=score)
    lower, upper = narrow.interval(predictive)
    assert (lower <= upper).all()


def test_least_ambiguous_sets_by_hand():
    probs = torch.tensor([[0.7, 0.2, 0.1]] * 4, dtype=torch.float64)
    predictive = CategoricalPredictive.from_logits(probs.log()[None])
    found = conformal(predictive, [0, 0, 0, 1], level=0.8)  # the worst of four
    assert found.guarantee.limit == pytest.approx(0.8)
    assert found.sets(predictive)[0].tolist() == [True, True, False]
    strict = conformal(predictive, [0, 0, 0, 1], level=0.6)
    assert strict.sets(predictive)[0].tolist() == [True, False, False]


def test_adaptive_sets_by_hand():
    probs = torch.tensor([[0.1, 0.6, 0.3]] * 4, dtype=torch.float64)
    predictive = CategoricalPredictive.from_logits(probs.log()[None])
    score = AdaptiveSets()
    found = conformal(predictive, [1, 1, 2, 2], level=0.8, score=score)
    assert found.guarantee.limit == pytest.approx(0.9)  # 0.6 + 0.3
    assert found.sets(predictive)[0].tolist() == [False, True, True]
    sure = torch.tensor([[0.95, 0.04, 0.01]], dtype=torch.float64)
    other = CategoricalPredictive.from_logits(sure.log()[None])
    assert found.sets(other)[0].tolist() == [True, False, False]


def test_random_sets_repeat_themselves():
    x = np.random.default_rng(0).normal(size=80)
    predictive = classifier(x)
    y = label(x, np.random.default_rng(1))
    one, two, three = (
        conformal(predictive, y, score=AdaptiveSets(seed=s)).sets(predictive)
        for s in (1, 1, 2)
    )
    assert (one == two).all() and (one != three).any()


def test_random_sets_of_single_rows_keep_their_level():
    """Rows that a server sees one by one must not all have the same u."""
    generator = np.random.default_rng(7)
    x = generator.normal(size=2000)
    y = label(x, generator)
    known, new = classifier(x[:1000]), classifier(x[1000:])
    for seed in range(4):
        found = conformal(known, y[:1000], level=0.8, score=AdaptiveSets(seed=seed))
        single = np.concatenate([found.sets(new[i : i + 1]) for i in range(1000)])
        assert (single == found.sets(new)).all()
        inside = single[np.arange(1000), y[1000:]].mean()
        assert abs(inside - 0.8) < 5 * math.sqrt(0.8 * 0.2 * 2 / 1000)


@pytest.mark.parametrize("score", [ScaledResidual(), QuantileResidual(0.5)])
def test_intervals_hold_the_row_that_they_end_at(score):
    """Whole numbers tie: with the limit lost to rounding, so are all that share it."""
    for seed in range(150):
        generator = np.random.default_rng(seed)
        y = generator.poisson(generator.uniform(0.5, 5), 50).astype(float)
        means = torch.full((50,), generator.normal(), dtype=torch.float64)
        known = GaussianPredictive.point(means, precision=generator.uniform(0.2, 3))
        found = conformal(known, y, level=0.8, score=score)
        lower, upper = found.interval(known)
        assert ((lower <= y) & (y <= upper)).sum() >= found.guarantee.rank
        assert found.apply(known).inside(torch.tensor(y), 0.8).sum() >= 41


def test_range_of_one_calibration_set():
    generator = np.random.default_rng(0)
    scores = np.sort(generator.random((4000, 99)))
    found = Guarantee.of(scores[0], 0.9)
    low, high = found.coverage_range(0.9)
    coverage = scores[:, found.rank - 1]  # of uniform scores
    inside = ((low < coverage) & (coverage < high)).mean()
    assert abs(inside - 0.9) < 5 * math.sqrt(0.09 / 4000)
    assert f"{low:.1%} to {high:.1%}" in found.promise


def test_too_few_rows_for_the_level():
    predictive = regression(np.zeros(18))
    with pytest.raises(ParameterError, match=r"at least 19 calibration rows. Got 18"):
        conformal(predictive, np.zeros(18), level=0.95)


def test_a_student_without_variance_needs_quantiles():
    predictive = StudentPredictive.of(
        torch.zeros(30), torch.ones(30), noise_scale=0.5, df=1.5
    )
    with (
        pytest.warns(UserWarning, match="no variance"),
        pytest.raises(ParameterError, match="QuantileResidual"),
    ):
        conformal(predictive, np.zeros(30))
    found = conformal(predictive, np.linspace(-3, 3, 30), score=QuantileResidual())
    assert np.isfinite(found.interval(predictive)).all()


def test_bad_input():
    predictive = regression(np.zeros(30))
    with pytest.raises(ParameterError, match="level"):
        conformal(predictive, np.zeros(30), level=1.0)
    with pytest.raises(ParameterError, match="finite"):
        conformal(predictive, np.full(30, np.nan))
    with pytest.raises(ShapeError, match="30"):
        conformal(predictive, np.zeros(3))
    with pytest.raises(ParameterError, match="at least one row"):
        conformal(predictive[:0], [])
    with pytest.raises(InputTypeError, match="IntervalScore"):
        conformal(predictive, np.zeros(30), score=LeastAmbiguous())
    with pytest.raises(InputTypeError, match="SetScore"):
        conformal(classifier(np.zeros(30)), [0] * 30, score=ScaledResidual())
    with pytest.raises(ParameterError, match="level"):
        QuantileResidual(0.0)
    with pytest.raises(InputTypeError, match="seed"):
        AdaptiveSets(seed=0.5)


def test_one_output_and_one_label_per_row():
    two = GaussianPredictive.from_draws(torch.zeros(1, 30, 2), precision=1.0)
    with pytest.raises(ShapeError, match="one output per row"):
        conformal(two, np.zeros((30, 2)))
    several = CategoricalPredictive.from_logits(torch.zeros(1, 30, 2, 3))
    with pytest.raises(ShapeError, match="one label per row"):
        conformal(several, np.zeros((30, 2), dtype=int))


def test_what_was_calibrated_on_other_predictions_is_refused():
    regression = GaussianPredictive.from_draws(torch.zeros(2, 20, 1), precision=1.0)
    intervals = conformal(regression, torch.linspace(-1, 1, 20))
    two = GaussianPredictive.from_draws(torch.zeros(2, 4, 2), precision=1.0)
    with pytest.raises(ShapeError, match="one output per row"):
        intervals.apply(two)
    classes = CategoricalPredictive.from_logits(torch.zeros(2, 20, 3))
    sets = conformal(classes, [0, 1] * 10)
    more = CategoricalPredictive.from_logits(torch.zeros(2, 4, 5))
    for ask in (sets.sets, sets.apply):
        with pytest.raises(ShapeError, match="calibrated on 3 classes"):
            ask(more)


def test_the_other_kind_of_predictive_is_refused():
    numbers, labels = regression(np.zeros(9)), classifier(np.zeros(9))
    intervals = conformal(numbers, np.arange(9.0), level=0.5)
    with pytest.raises(InputTypeError, match="for regression"):
        intervals.interval(labels)
    sets = conformal(labels, np.arange(9) % 4, level=0.5)
    with pytest.raises(InputTypeError, match="Got StudentPredictive"):
        sets.sets(numbers)
