"""InferenceData of ours, read by arviz itself."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch

import caveat
from caveat.errors import InputTypeError, ShapeError
from caveat.predictive import CategoricalPredictive, GaussianPredictive

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    arviz = pytest.importorskip("arviz")
import caveat.arviz

pytestmark = pytest.mark.filterwarnings("ignore")  # arviz's own


def normal(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def test_a_regression_is_drawn_beside_what_was_observed():
    predictive = GaussianPredictive.from_draws(normal(50, 9, 1), precision=1.0)
    y = np.linspace(-1, 1, 9)
    found = caveat.arviz.from_predictive(predictive, y, n_observations=200)
    assert found.posterior_predictive["y"].shape == (1, 200, 9)
    expected = predictive.sample(200, seed=0)[..., 0].numpy()
    np.testing.assert_array_equal(found.posterior_predictive["y"][0], expected)
    np.testing.assert_array_equal(found.observed_data["y"], y)
    log_probs = predictive.log_prob(torch.as_tensor(y)[:, None].float())
    np.testing.assert_allclose(found.log_likelihood["y"][0, 0], log_probs, rtol=1e-5)
    axes = arviz.plot_ppc(found, num_pp_samples=5)
    assert axes is not None
    with pytest.raises(ShapeError):
        caveat.arviz.from_predictive(predictive, y[:3])


def test_classes():
    predictive = CategoricalPredictive.from_logits(normal(20, 6, 3))
    found = caveat.arviz.from_predictive(predictive, [0, 1, 2, 0, 1, 2], name="kind")
    assert found.posterior_predictive["kind"].dims == ("chain", "draw", "row")
    assert set(np.unique(found.posterior_predictive["kind"])) <= {0, 1, 2}


def test_a_linear_posterior_has_names():
    x = pd.DataFrame(normal(60, 2).numpy(), columns=["a", "b"])
    y = 2 * x["a"] + 0.1 * normal(3, 60).numpy()[2]
    posterior = caveat.BayesianDropoutRegression(0.1).fit(x, y).posterior_
    found = caveat.arviz.from_posterior(posterior, names=["a", "b"], n_draws=4000)
    table = arviz.summary(found, kind="stats", round_to=8)
    drawn = found.posterior["weights"].sel(feature="a").to_numpy()
    assert table.loc["weights[a]", "mean"] == pytest.approx(drawn.mean(), abs=1e-6)
    exact = posterior.weight_distribution([0])
    gap = abs(drawn.mean() - float(np.ravel(exact.loc)[0]))
    assert gap < 5 * drawn.std() / drawn.size**0.5
    with pytest.raises(InputTypeError, match="posterior_"):
        caveat.arviz.from_posterior(x)
    with pytest.raises(InputTypeError, match="Predictive"):
        caveat.arviz.from_predictive(x)


def test_a_frame_of_polars():
    polars = pytest.importorskip("polars")
    predictive = GaussianPredictive.from_draws(normal(50, 3, 1), precision=1.0)
    frame = predictive.to_frame(level=0.9, index=["a", "b", "c"], backend="polars")
    assert isinstance(frame, polars.DataFrame)
    pandas = predictive.to_frame(level=0.9, index=["a", "b", "c"])
    assert frame.columns == ["index", *pandas.columns]
    np.testing.assert_array_equal(frame["mean"], pandas["mean"])
    classes = CategoricalPredictive.from_logits(normal(20, 4, 2))
    labels = classes.to_frame(classes=["no", "yes"], backend="polars")["label"]
    assert set(labels.to_list()) <= {"no", "yes"}
