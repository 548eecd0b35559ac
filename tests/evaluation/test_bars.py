"""Bars of class probabilities, with draws and without."""

import numpy as np
import pytest
import torch
from matplotlib import pyplot as plt

from caveat.errors import ParameterError, ShapeError
from caveat.evaluation import ClassBarsDisplay, SoftmaxScatterDisplay
from caveat.predictive import CategoricalPredictive


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture
def drawn(generator):
    return CategoricalPredictive.from_logits(torch.randn(30, 4, 9, generator=generator))


def test_bars_are_probabilities_and_lines_quantiles_of_draws(drawn):
    display = drawn.plot("bars", classes=[2, 5], level=0.8)
    np.testing.assert_allclose(display.probs, drawn.probs[:, [2, 5]])
    heights = [bar.get_height() for bar in display.ax_.patches]
    np.testing.assert_allclose(heights, display.probs.T.reshape(-1))
    of_draws = drawn.draws.double().softmax(-1)[..., 5].numpy()
    np.testing.assert_allclose(display.ends[0, :, 1], np.quantile(of_draws, 0.1, 0))
    np.testing.assert_allclose(display.ends[1, :, 1], np.quantile(of_draws, 0.9, 0))
    hatches = {bar.get_hatch() for bar in display.ax_.patches}
    assert len(hatches) == 2  # told apart in grey


def test_the_seven_most_probable_by_default(drawn):
    display = drawn.plot("bars")
    peaks = drawn.probs.amax(0)
    left_out = [k for k in range(9) if k not in display.classes]
    assert len(display.classes) == 7
    assert peaks[left_out].max() <= peaks[list(display.classes)].min()


def test_without_draws_there_are_bars(drawn):
    assert isinstance(drawn.plot(), SoftmaxScatterDisplay)
    point = CategoricalPredictive.point(drawn.draws[0])
    display = point.plot()
    assert isinstance(display, ClassBarsDisplay) and display.ends is None


def test_tokens_of_a_row(generator):
    tokens = CategoricalPredictive.from_logits(
        torch.randn(5, 3, 6, 4, generator=generator)
    )
    display = tokens.plot(row=2)
    np.testing.assert_allclose(display.probs, tokens.probs[2])
    np.testing.assert_allclose(tokens.plot().probs, tokens.probs[0])
    with pytest.raises(ShapeError, match="row="):
        ClassBarsDisplay.from_predictive(tokens)


def test_what_is_refused(drawn):
    with pytest.raises(ParameterError, match="at most 24"):
        drawn[[0] * 25].plot("bars")
    with pytest.raises(ParameterError, match="below 9"):
        drawn.plot("bars", classes=[9])
    with pytest.raises(ParameterError, match="kind"):
        drawn.plot("pie")
