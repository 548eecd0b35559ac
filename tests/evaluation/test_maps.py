"""Outputs that are pictures: the maps hold the numbers of the predictive."""

import numpy as np
import pytest
import torch
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from caveat.errors import ParameterError, ShapeError
from caveat.evaluation import MapDisplay, PredictiveDisplay
from caveat.evaluation.axes import COLOURS
from caveat.predictive import CategoricalPredictive, GaussianPredictive


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture
def pixels(generator):
    return CategoricalPredictive.from_logits(
        torch.randn(9, 2, 6, 8, 3, generator=generator)
    )


@pytest.fixture
def field(generator):
    draws = torch.randn(9, 2, 1, 6, 8, generator=generator)
    return GaussianPredictive.from_draws(draws, precision=4.0)


def test_maps_of_classes(pixels):
    display = pixels.plot(row=1, names=["sea", "land", "sky"])
    assert isinstance(display, MapDisplay) and len(display.axes_) == 3
    np.testing.assert_array_equal(display.maps["label"], pixels.label[1])
    np.testing.assert_array_equal(display.maps["entropy"], pixels.entropy[1])
    shown = display.axes_[2].images[0]
    np.testing.assert_array_equal(shown.get_array(), pixels.mutual_information[1])
    assert shown.get_clim() == display.axes_[1].images[0].get_clim()  # one scale
    assert display.names == ["sea", "land", "sky"]
    colours = display.axes_[0].images[0].cmap
    assert [to_hex(colours(k)).upper() for k in range(3)] == list(COLOURS[:3])


def test_maps_of_numbers(field):
    display = field.plot()
    assert isinstance(display, MapDisplay)
    np.testing.assert_array_equal(display.maps["mean"], field.mean[0, 0])
    np.testing.assert_array_equal(display.maps["standard deviation"], field.std[0, 0])
    own = field.epistemic_variance[0, 0].sqrt()
    np.testing.assert_array_equal(display.maps["of it, epistemic"], own)


def test_a_single_output_of_a_picture_is_a_line(field):
    assert isinstance(field.plot(output=3), PredictiveDisplay)
    assert isinstance(field.plot([0.0, 1.0], output=3), PredictiveDisplay)


def test_more_classes_than_colours_are_shades(generator):
    many = CategoricalPredictive.from_logits(
        torch.randn(3, 1, 6, 8, 20, generator=generator)
    )
    display = many.plot()
    assert display.axes_[0].images[0].cmap.N == 20


def test_where_it_is_told_to(pixels):
    axes = Figure().subplots(1, 3)
    assert pixels.plot(ax=axes).axes_ == list(axes)
    with pytest.raises(ParameterError, match="3 axes"):
        pixels.plot(ax=axes[:2])
    assert plt.get_fignums() == []


def test_what_is_no_picture(generator):
    flat = GaussianPredictive.from_draws(
        torch.randn(4, 2, 3, generator=generator), precision=1.0
    )
    with pytest.raises(ShapeError, match="height"):
        MapDisplay.from_predictive(flat)
    with pytest.raises(ParameterError, match="below 2"):
        MapDisplay.from_predictive(flat, row=5)
    with pytest.raises(ParameterError, match="number of a row"):
        MapDisplay.from_predictive(flat, row="first")
