"""What every predictive does: choose rows, join rows, leave for NumPy and pandas."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from caveat import _optional
from caveat.errors import (
    InputTypeError,
    MissingExtraError,
    ParameterError,
    RowIndexError,
    ShapeError,
)
from caveat.predictive import CategoricalPredictive, GaussianPredictive, Predictive
from tests.predictive.examples import random_draws, random_logits, without_draws


def gaussian(rows: int = 6, n_draws: int = 9, event=(2,)) -> GaussianPredictive:
    tau = torch.arange(1.0, rows + 1).double().reshape(-1, *[1] * len(event))
    draws = random_draws(n_draws, rows, *event)
    return GaussianPredictive.from_draws(draws, precision=tau)


def categorical(rows: int = 6, n_draws: int = 9) -> CategoricalPredictive:
    return CategoricalPredictive.from_logits(random_logits(n_draws, rows, 3))


def assert_rows(part: Predictive, whole: Predictive, rows: list[int]) -> None:
    assert type(part) is type(whole) and len(part) == len(rows)
    expected = whole.to_numpy()
    for name, array in part.to_numpy().items():
        assert np.array_equal(array, expected[name][rows]), name
    assert torch.equal(part.draws, whole.draws[:, rows])


MASK = [True, False, False, True, True, False]


@pytest.mark.parametrize("make", [gaussian, categorical])
@pytest.mark.parametrize(
    ("index", "rows"),
    [
        (slice(3, 5), [3, 4]),
        (slice(None, None, 2), [0, 2, 4]),
        (slice(None, None, -1), [5, 4, 3, 2, 1, 0]),
        (slice(4, 4), []),
        (2, [2]),
        (-1, [5]),
        (np.int64(1), [1]),
        (MASK, [0, 3, 4]),
        (torch.tensor(MASK), [0, 3, 4]),
        (np.array(MASK), [0, 3, 4]),
        ([False] * 6, []),
        ([4, 0, 0, -1], [4, 0, 0, 5]),
        (torch.tensor([1, 2]), [1, 2]),
        ([], []),
    ],
)
def test_choosing_rows(make, index, rows):
    assert_rows(make()[index], make(), rows)


def test_an_empty_choice_still_answers():
    none = gaussian()[:0]
    assert none.log_prob(torch.zeros(0, 2)).shape == (0,)
    assert none.quantile([0.1, 0.5, 0.9]).shape == (3, 0, 2)
    assert none.covariance.shape == (0, 2, 2)
    assert repr(none) == "GaussianPredictive: 0 rows of outputs (2,), 9 draws (kept)"
    assert len(none.to_frame()) == 0
    empty = categorical()[:0]
    assert empty.log_prob(torch.zeros(0, dtype=torch.int64)).shape == (0,)


def test_chosen_rows_keep_their_precision_and_density():
    predictive, y = gaussian(), random_draws(6, 2, seed=4)
    for row, one in enumerate(predictive):
        assert_close(one.log_prob(y[[row]]), predictive.log_prob(y)[[row]])
        assert_close(one.covariance, predictive.covariance[[row]])


@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        ((0, 1), InputTypeError, r"Only rows can be chosen.*predictive.mean\[:, 0\]"),
        (None, InputTypeError, "Only rows"),
        (True, InputTypeError, "Only rows"),
        (1.5, InputTypeError, "Rows must be chosen by one axis"),
        ([[0, 1]], InputTypeError, r"Got shape \(1, 2\)"),
        ("mean", InputTypeError, "Rows cannot be chosen by 'mean'"),
        ([True], ShapeError, "one bool per row. Got 1 for 6 rows"),
        (6, RowIndexError, r"must lie in .* Got 6"),
        ([0, 6], RowIndexError, r"must lie in \[-6, 6\)"),
    ],
)
def test_wrong_choices(index, error, message):
    with pytest.raises(error, match=message):
        gaussian()[index]


@pytest.mark.parametrize("make", [gaussian, categorical])
def test_joining_the_parts_gives_the_whole(make):
    whole = make()
    joined = type(whole).concatenate([whole[:2], whole[2:3], whole[3:]])
    assert_rows(joined, whole, list(range(6)))


def test_joining_without_draws():
    draws = random_draws(9, 6, 2)
    whole = without_draws(draws, 2.0)
    parts = [without_draws(draws[:, :4], 2.0), without_draws(draws[:, 4:], 2.0)]
    joined = GaussianPredictive.concatenate(parts)
    assert_close(joined.covariance, whole.covariance)


def test_joining_what_does_not_fit():
    join = Predictive.concatenate
    with pytest.raises(ShapeError, match=r"agree in the n_draws. Got 9 and 8"):
        join([gaussian(), gaussian(n_draws=8)])
    with pytest.raises(ShapeError, match=r"shape of mean .* Got \[2\] and \[3\]"):
        join([gaussian(), gaussian(event=(3,))])
    with pytest.raises(ShapeError, match="agree in the kept tensors"):
        join([gaussian(), without_draws(random_draws(9, 6, 2), 1.0)])
    with pytest.raises(
        InputTypeError, match="Got CategoricalPredictive beside Gaussian"
    ):
        join([gaussian(), categorical()])
    with pytest.raises(InputTypeError, match="Got int"):
        join([1])
    with pytest.raises(ParameterError, match="at least one"):
        GaussianPredictive.concatenate([])


def test_numpy_arrays_are_copies():
    predictive = gaussian()
    arrays = predictive.to_numpy()
    assert set(arrays) == {
        "mean",
        "std",
        "variance",
        "epistemic_variance",
        "noise_variance",
        "mean_error",
    }
    arrays["mean"][:] = 0
    assert (predictive.mean != 0).all()


def test_a_table_has_a_line_per_row():
    frame = gaussian().to_frame()
    assert len(frame) == 6 and list(frame.columns[:2]) == ["mean_0", "mean_1"]
    assert np.array_equal(frame["mean_1"], gaussian().mean[:, 1])
    one = gaussian(event=(1,)).to_frame()
    assert list(one.columns[:3]) == ["mean", "std", "variance"]
    deep = gaussian(event=(2, 2)).to_frame()
    assert np.array_equal(deep["std_1_0"], gaussian(event=(2, 2)).std[:, 1, 0])
    classes = categorical().to_frame()
    assert list(classes.columns[:4]) == ["label", "probs_0", "probs_1", "probs_2"]


def test_a_missing_pandas_is_named(monkeypatch):
    def fail(name):
        raise ImportError(name)

    monkeypatch.setattr(_optional, "import_module", fail)
    with pytest.raises(MissingExtraError, match=r"pandas.*\n.*caveat\[report\]"):
        gaussian().to_frame()


def test_repr_is_short():
    lines = repr(gaussian(1000, 50)).splitlines()
    assert lines[0] == "GaussianPredictive: 1000 rows of outputs (2,), 50 draws (kept)"
    assert len(lines) == 3
    assert "not kept" in repr(without_draws(torch.zeros(3, 2), 1.0))
    lines = repr(categorical()).splitlines()
    assert lines[0] == "CategoricalPredictive: 6 rows, 3 classes, 9 draws (kept)"
    assert len(lines) == 4
    image = CategoricalPredictive.from_logits(torch.zeros(2, 1, 4, 4, 3))
    assert "1 row of (4, 4), 3 classes" in repr(image)


def test_the_base_is_abstract():
    with pytest.raises(TypeError, match="abstract"):
        Predictive(n_draws=1)


def test_a_frame_has_intervals_and_the_names_of_rows():
    draws = torch.randn(50, 3, 1, generator=torch.Generator().manual_seed(0))
    predictive = GaussianPredictive.from_draws(draws, precision=4.0)
    frame = predictive.to_frame(level=0.9, index=["a", "b", "c"])
    assert list(frame.index) == ["a", "b", "c"]
    assert list(predictive.to_frame(index=iter("abc")).index) == ["a", "b", "c"]
    lower, upper = predictive.interval(0.9)
    assert frame["lower"].tolist() == lower[:, 0].tolist()
    assert frame["upper"].tolist() == upper[:, 0].tolist()
    assert "lower" not in predictive.to_frame()
    wide = GaussianPredictive.from_draws(draws.expand(50, 3, 2), precision=4.0)
    assert {"lower_0", "upper_1"} < set(wide.to_frame(level=0.5))
    with pytest.raises(ShapeError, match=r"each of the 3 rows\. Got 2"):
        predictive.to_frame(index=["a", "b"])
    with pytest.raises(ParameterError, match="classes is for the names"):
        predictive.to_frame(classes=["a"])


def test_a_frame_has_the_names_of_classes():
    logits = torch.tensor([[[9.0, 0.0, 0.0], [0.0, 0.0, 9.0]]]).expand(4, 2, 3)
    predictive = CategoricalPredictive.from_logits(logits)
    frame = predictive.to_frame(classes=["cat", "dog", "eel"])
    assert frame["label"].tolist() == ["cat", "eel"]
    assert frame["probs_dog"].tolist() == predictive.probs[:, 1].tolist()
    assert frame["mean_error_eel"].tolist() == predictive.mean_error[:, 2].tolist()
    plain = predictive.to_frame()
    assert plain["label"].tolist() == [0, 2] and "probs_1" in plain
    assert len(frame.columns) == len(plain.columns)
    with pytest.raises(ParameterError, match=r"3 different names.*Got 2, 2 diff"):
        predictive.to_frame(classes=["cat", "dog"])
    with pytest.raises(ParameterError, match="level is for the intervals"):
        predictive.to_frame(level=0.9)


def test_observations_may_be_arrays():
    predictive = GaussianPredictive.from_draws(torch.zeros(2, 3), precision=1.0)
    y = torch.tensor([0.0, 1.0, 2.0])
    for given in (y.numpy(), [0, 1, 2], [0.0, 1.0, 2.0], np.arange(3)):
        for ask in ("log_prob", "cdf", "crps"):
            found, expected = (getattr(predictive, ask)(v) for v in (given, y))
            assert torch.equal(found, expected)
    classes = CategoricalPredictive.from_logits(torch.randn(2, 3, 4))
    labels = torch.tensor([0, 3, 1])
    for given in (labels.numpy(), [0, 3, 1]):
        assert torch.equal(classes.log_prob(given), classes.log_prob(labels))
