"""Displays compute the right things and draw them where they are told to."""

from collections.abc import Iterator

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from caveat.errors import (
    DrawsNotKeptError,
    InputTypeError,
    ParameterError,
    ShapeError,
)
from caveat.evaluation import PredictiveDisplay, SoftmaxScatterDisplay
from caveat.predictive import (
    CategoricalAccumulator,
    CategoricalPredictive,
    GaussianPredictive,
    StudentPredictive,
)


@pytest.fixture(autouse=True)
def closed_figures() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.fixture
def regression() -> GaussianPredictive:
    draws = torch.randn(20, 5, 1, generator=torch.Generator().manual_seed(0))
    return GaussianPredictive.from_draws(draws, precision=4.0)


@pytest.fixture
def logits() -> torch.Tensor:
    return 3 * torch.randn(20, 6, 4, generator=torch.Generator().manual_seed(0))


def test_predictive_display_is_sorted_and_in_units(
    regression: GaussianPredictive,
) -> None:
    x = [4.0, 0.0, 3.0, 1.0, 2.0]
    display = PredictiveDisplay.from_predictive(regression, x, scale=-2.0, offset=10.0)
    order = np.argsort(x)
    mean, std = regression.mean[:, 0].numpy(), regression.std[:, 0].numpy()
    np.testing.assert_array_equal(display.x, np.sort(x))
    np.testing.assert_allclose(display.mean, 10 - 2 * mean[order], rtol=1e-6)
    np.testing.assert_allclose(display.std, 2 * std[order], rtol=1e-6)


def test_predictive_display_shades_end_at_two_standard_deviations(
    regression: GaussianPredictive,
) -> None:
    display = PredictiveDisplay.from_predictive(regression, range(5))
    assert len(display.ax_.collections) == 4
    for shade, width in zip(display.ax_.collections, (2, 1.5, 1, 0.5), strict=True):
        outline = shade.get_paths()[0].vertices
        top = max(display.mean + width * display.std)
        assert np.asarray(outline)[:, 1].max() == pytest.approx(top)


def test_displays_draw_where_they_are_told(
    regression: GaussianPredictive, logits: torch.Tensor
) -> None:
    figure = Figure()
    left, right = figure.subplots(1, 2)
    first = PredictiveDisplay.from_predictive(regression, range(5), ax=left)
    predictive = CategoricalPredictive.from_logits(logits)
    second = SoftmaxScatterDisplay.from_predictive(predictive, ax=right)
    assert first.ax_ is left and second.ax_ is right
    assert first.figure_ is second.figure_ is figure
    assert second.plot(left) is second and second.ax_ is left
    assert plt.get_fignums() == []  # nothing behind the user's back


def test_displays_leave_the_style_alone(regression: GaussianPredictive) -> None:
    before = dict(mpl.rcParams)
    PredictiveDisplay.from_predictive(regression, range(5))
    assert dict(mpl.rcParams) == before


def test_scatter_holds_inputs_and_outputs_of_the_softmax(logits: torch.Tensor) -> None:
    predictive = CategoricalPredictive.from_logits(logits)
    display = SoftmaxScatterDisplay.from_predictive(predictive, classes=[3, 1])
    np.testing.assert_allclose(display.logits, logits[..., [3, 1]])
    expected = logits.double().softmax(-1)[..., [3, 1]]
    np.testing.assert_allclose(display.probs, expected)
    offsets = np.asarray(display.ax_.collections[0].get_offsets())
    np.testing.assert_allclose(offsets[:, 1], display.probs[..., 0].reshape(-1))
    assert (np.abs(offsets[:, 0].reshape(20, 6) - np.arange(6)) < 0.5).all()


def test_scatter_shows_the_predicted_classes_by_default(logits: torch.Tensor) -> None:
    predictive = CategoricalPredictive.from_logits(logits)
    display = SoftmaxScatterDisplay.from_predictive(predictive)
    assert display.classes == tuple(sorted(set(predictive.label.tolist())))


def test_the_other_order_is_refused(regression: GaussianPredictive) -> None:
    with pytest.raises(InputTypeError, match="RegressionPredictive"):
        PredictiveDisplay.from_predictive(range(5), regression)


def test_one_place_per_row(regression: GaussianPredictive) -> None:
    with pytest.raises(ShapeError, match="5"):
        PredictiveDisplay.from_predictive(regression, range(4))


def test_bands_are_intervals_of_the_levels(regression: GaussianPredictive) -> None:
    x = [4.0, 0.0, 3.0, 1.0, 2.0]
    display = PredictiveDisplay.from_predictive(
        regression, x, level=[0.5, 0.9], scale=-2.0, offset=1.0
    )
    assert len(display.ax_.collections) == 2
    for (low, high), level in zip(display.bands, (0.9, 0.5), strict=True):
        lower, upper = (v[np.argsort(x), 0].numpy() for v in regression.interval(level))
        np.testing.assert_allclose(low, 1 - 2 * upper, rtol=1e-5)
        np.testing.assert_allclose(high, 1 - 2 * lower, rtol=1e-5)
    outline = np.asarray(display.ax_.collections[0].get_paths()[0].vertices)[:, 1]
    assert outline.max() == pytest.approx(display.bands[0][1].max())


def test_a_fan_is_the_first_draws(regression: GaussianPredictive) -> None:
    x = [4.0, 0.0, 3.0, 1.0, 2.0]
    display = regression.plot(x, fan=3, scale=2.0)
    *fan, mean = display.ax_.lines
    order = np.argsort(x)
    for line, draw in zip(fan, regression.draws, strict=False):
        np.testing.assert_allclose(line.get_ydata(), 2 * draw[order, 0], rtol=1e-6)
    assert len(fan) == 3
    np.testing.assert_allclose(mean.get_ydata(), display.mean)
    with pytest.raises(ParameterError, match="20 draws"):
        regression.plot(x, fan=21)


def test_a_figure_of_its_own_says_what_is_seen(regression: GaussianPredictive) -> None:
    ax = regression.plot(level=[0.5, 0.9], fan=2).ax_
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("row", "y")
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["0.9 interval", "0.5 interval", "2 draws", "predictive mean"]
    wide, narrow = (p.get_alpha() for p in ax.get_legend().get_patches())
    assert wide < narrow  # as the bands are that lie on each other
    own = plt.figure().subplots()
    regression.plot(ax=own)
    assert own.get_legend() is None and own.get_xlabel() == ""
    classes = CategoricalPredictive.from_logits(torch.randn(20, 3, 4)).plot()
    assert "probability" in classes.ax_.get_ylabel()
    assert len(classes.ax_.get_legend().get_texts()) == 4


def test_a_single_row_is_seen(regression: GaussianPredictive) -> None:
    display = regression[:1].plot(fan=2)
    low, high = display.bands[0]
    outline = np.asarray(display.ax_.collections[0].get_paths()[0].vertices)
    assert np.ptp(outline[:, 0]) > 0
    assert [outline[:, 1].min(), outline[:, 1].max()] == pytest.approx([*low, *high])
    assert all(np.ptp(line.get_xdata()) > 0 for line in display.ax_.lines)
    assert all(tick == int(tick) for tick in display.ax_.get_xticks())


@pytest.mark.parametrize("kind", ["pandas", "polars", "numpy"])
def test_rows_stand_at_dates(regression: GaussianPredictive, kind: str) -> None:
    days = np.arange("2020-01-01", "2020-01-06", dtype="datetime64[D]")
    library = pytest.importorskip(kind)
    x = days if kind == "numpy" else library.Series(days)
    ax = regression.plot(x).ax_
    ax.figure.canvas.draw()
    assert all(label.get_text().startswith("01-0") for label in ax.get_xticklabels())


def test_points_have_the_names_of_their_classes(logits: torch.Tensor) -> None:
    predictive = CategoricalPredictive.from_logits(logits)
    names = [f"kind {k}" for k in range(logits.shape[-1])]
    display = predictive.plot("draws", classes=[1, 0], names=names)
    texts = display.ax_.get_legend().get_texts()
    assert [text.get_text() for text in texts] == ["kind 1", "kind 0"]
    with pytest.raises(ParameterError, match="different names"):
        predictive.plot("draws", names=["one"])


def test_several_outputs_have_colours_and_dashes() -> None:
    draws = torch.randn(3, 5, 2, generator=torch.Generator().manual_seed(0))
    predictive = GaussianPredictive.from_draws(draws, precision=1.0)
    display = predictive.plot(fan=2)
    means = [k for k in display.ax_.lines if k.get_label().startswith("output")]
    for number, line in enumerate(means):
        np.testing.assert_allclose(line.get_ydata(), predictive.mean[:, number])
    assert len({k.get_color() for k in means}) == len(means) == 2
    assert len({k.get_linestyle() for k in means}) == 2
    one = predictive.plot(output=1)
    np.testing.assert_allclose(one.mean, predictive.mean[:, 1])
    for wrong in (2, -1, [], 0.5):
        with pytest.raises(ParameterError, match="from 0 to 1"):
            predictive.plot(output=wrong)


def test_too_many_outputs_are_to_be_chosen_from() -> None:
    predictive = GaussianPredictive.from_draws(torch.randn(3, 5, 8), precision=1.0)
    with pytest.raises(ShapeError, match="output=0"):
        PredictiveDisplay.from_predictive(predictive, range(5))


def test_no_rows_and_no_places(regression: GaussianPredictive) -> None:
    with pytest.raises(ParameterError, match="at least one row"):
        regression[:0].plot()
    with pytest.raises(ParameterError, match="finite"):
        regression.plot([0.0, 1.0, 2.0, 3.0, np.nan])


@pytest.mark.filterwarnings("ignore:A Student-t with 2 degrees")
def test_tails_without_a_standard_deviation_need_a_level() -> None:
    value = torch.ones(3, dtype=torch.float64)
    predictive = StudentPredictive.of(value, value, noise_scale=1.0, df=1.5)
    with pytest.raises(ParameterError, match="level="):
        predictive.plot()
    assert len(predictive.plot(level=0.9).ax_.collections) == 1


@pytest.mark.parametrize("classes", [[], [4], [-1]])
def test_classes_exist(logits: torch.Tensor, classes: list[int]) -> None:
    predictive = CategoricalPredictive.from_logits(logits)
    with pytest.raises(ParameterError, match="from 0 to 3"):
        SoftmaxScatterDisplay.from_predictive(predictive, classes=classes)


def test_scatter_needs_one_label_per_row() -> None:
    predictive = CategoricalPredictive.from_logits(torch.randn(3, 5, 2, 4))
    with pytest.raises(ShapeError, match="one label per row"):
        SoftmaxScatterDisplay.from_predictive(predictive)


def test_scatter_needs_the_draws(logits: torch.Tensor) -> None:
    accumulator = CategoricalAccumulator(0, False)
    accumulator.add(logits)
    with pytest.raises(DrawsNotKeptError):
        SoftmaxScatterDisplay.from_predictive(accumulator.result())
