"""Pools for classification: never worse than simple models, calibrated."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.datasets import load_iris

from caveat.errors import CaveatWarning
from caveat.estimators.tables.budget import Budget
from caveat.estimators.tables.classification import PRIOR, fit_classification
from tests.estimators.tables.data import CHEAP, only_noise

# On noise, networks are worse than a constant, and it is said.
pytestmark = pytest.mark.filterwarnings("ignore:the networks .* are worse")


def fitted(x, labels, **settings):
    how = {
        "n_classes": int(labels.max()) + 1,
        "budget": CHEAP,
        "weight": np.ones(len(x)),
        "seed": 0,
        "progress": False,
    }
    return fit_classification(x, labels, **(how | settings))


def probabilities(found, x):
    return softmax(found.table.draws(x, n_draws=60, seed=0), -1).mean(0)


def log_likelihood(found, x, labels):
    return np.log(probabilities(found, x)[np.arange(len(x)), labels]).mean()


def test_a_coin_is_a_coin():
    x, y = only_noise(300)
    labels = (y > 0).astype(np.int64)
    found = fitted(x[:200], labels[:200])
    assert log_likelihood(found, x[200:], labels[200:]) > np.log(0.5) - 0.03
    best = max(found.candidates, key=lambda c: c.log_likelihood)
    assert best.log_likelihood < np.log(0.5) + 0.03
    assert any(c.name == PRIOR for c in found.candidates)


def test_wrong_labels_do_not_make_it_too_sure():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1300, 3))
    labels = (x[:, 0] > 0).astype(np.int64)
    wrong = rng.random(1300) < 0.15
    labels = np.where(wrong, 1 - labels, labels)
    found = fitted(x[:300], labels[:300])
    best = 0.15 * np.log(0.15) + 0.85 * np.log(0.85)
    assert log_likelihood(found, x[300:], labels[300:]) > best - 0.1


def test_a_few_rows_that_are_all_right_do_not_make_it_surer():
    """A factor on all weights costs what their sum does: it gained half a nat here."""
    x, labels = load_iris(return_X_y=True)
    rows = np.random.default_rng(2).permutation(150)[:15]
    found = fitted(x[rows], labels[rows], budget=Budget(()))
    assert found.table.weights.sum() < 1.5


def test_networks_are_used_where_columns_act_together():
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, size=(600, 2))
    labels = (x[:, 0] * x[:, 1] > 0).astype(np.int64)
    found = fitted(x[:400], labels[:400])
    assert sum(c.weight for c in found.candidates if "networks" in c.name) > 0.5
    assert (probabilities(found, x[400:]).argmax(1) == labels[400:]).mean() > 0.9


@pytest.mark.parametrize("n_rows", [2, 3, 5, 8, 40])
def test_few_rows_and_a_class_of_one_row(n_rows):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n_rows, 3))
    labels = np.zeros(n_rows, dtype=np.int64)
    labels[0] = 1
    probs = probabilities(fitted(x, labels), x)
    assert np.isfinite(probs).all() and np.allclose(probs.sum(1), 1.0)
    assert probs.max() < 1 - 1e-6


def test_weights_say_which_rows_count():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    labels = (np.arange(200) % 2).astype(np.int64)
    weight = np.where(labels == 1, 1.9, 0.1)
    probs = probabilities(fitted(x, labels, weight=weight), x)
    assert probs[:, 1].mean() == pytest.approx(0.95, abs=0.03)


def test_networks_that_add_nothing_to_frequencies_are_left_out():
    x, y = only_noise(300)
    with pytest.warns(CaveatWarning, match="worse than a constant") as told:
        found = fitted(x[:200], (y[:200] > 0).astype(np.int64))
    assert len(told) == 1  # one line for all of them
    assert not any("networks" in c.name and c.weight > 0.1 for c in found.candidates)
