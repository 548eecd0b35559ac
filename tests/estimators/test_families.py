"""Estimators with noise of any family."""

import numpy as np
import pytest
import torch

import caveat
from caveat import noise
from caveat.estimators import DropoutClassifier, DropoutRegressor, Prior, Schedule

X = np.linspace(-2, 2, 80)[:, None]
Y = np.sin(2 * X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=80)
FAMILIES = [
    noise.Bernoulli(0.05),
    noise.Concrete(0.1),
    noise.FactorisedGaussian(),
    noise.LowRank(rank=1),
    noise.Components((0.1, 0.9), std=0.05),
]


def regressor(family, *, epochs=120, **changes):
    settings = {"precision": 50.0, "activation": "tanh", "prior": Prior(0.1)}
    settings |= {"schedule": Schedule(epochs, batch_size=8)}
    settings |= {"n_draws": 100, "random_state": 0}
    return DropoutRegressor((20,), noise=family, **(settings | changes))


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: type(f).__name__)
def test_a_family_is_learned_saved_and_loaded(family, tmp_path):
    state = torch.get_rng_state()
    model = regressor(family).fit(X, Y)
    assert torch.equal(torch.get_rng_state(), state)
    mean, std = model.predict(X, return_std=True)
    assert np.mean((mean - Y) ** 2) < 0.3 * np.var(Y)
    assert (model.predictive(X).epistemic_variance > 0).all()
    assert model.weight_decays_ == ()
    caveat.save(model, tmp_path / "m")
    again = caveat.load(tmp_path / "m")
    assert again.noise == family
    for found, expected in zip(
        again.predict(X, return_std=True), (mean, std), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_concrete_reports_a_learned_rate():
    model = regressor(noise.Concrete(0.3), n_members=2).fit(X, Y)
    rates = [float(net[-1].noise.drop_rate.detach()) for net in model.networks_]
    assert len(set(rates)) == 2 and all(rate < 0.3 for rate in rates)


def test_precision_is_validated_as_with_any_noise():
    model = regressor(noise.Concrete(), precision=None, epochs=40).fit(X, Y)
    assert 1.0 < model.precision_ < 1000.0


def test_a_classifier_too():
    labels = np.where(X[:, 0] > 0, "right", "left")
    model = DropoutClassifier(
        (20,),
        noise=noise.DropConnect(0.1),
        schedule=Schedule(epochs=60),
        random_state=0,
    ).fit(X, labels)
    assert model.score(X, labels) > 0.9


def test_an_unknown_noise_is_refused():
    with pytest.raises(ValueError, match=r"caveat\.noise\.Concrete"):
        regressor("poisson").fit(X, Y)
