"""Logistic regressions of the pool."""

import numpy as np
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from caveat.estimators.tables.logistic import Logistic, _model, class_logits


def rows(n_rows=150, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, 4))
    return x, (x[:, :n_classes] + rng.gumbel(size=(n_rows, n_classes))).argmax(1)


def test_it_is_that_of_scikit_learn():
    for n_classes in (2, 3):
        x, labels = rows(n_classes=n_classes)
        z = (x - x.mean(0)) / x.std(0)
        expected = LogisticRegression(C=0.3).fit(z, labels).predict_proba(z)
        found = Logistic.fit(
            x, labels, n_classes=n_classes, weight=np.ones(150), inverse_penalty=0.3
        )
        assert np.allclose(softmax(found.logits(x), 1), expected, atol=2e-3)


def test_a_class_that_no_row_has():
    x, labels = rows()
    keep = labels != 1
    found = Logistic.fit(
        x[keep],
        labels[keep],
        n_classes=3,
        weight=np.ones(int(keep.sum())),
        inverse_penalty=0.3,
    )
    probs = softmax(found.logits(x), 1)
    assert np.isfinite(probs).all() and 0 < probs[:, 1].max() < 0.2


def test_one_class_alone_gives_frequencies():
    x, _ = rows(20)
    labels, weight = np.zeros(20, dtype=np.int64), np.ones(20)
    found = Logistic.fit(x, labels, n_classes=2, weight=weight, inverse_penalty=1.0)
    expected = class_logits(labels, 2, weight)
    assert np.allclose(found.logits(x), expected)
    assert np.isclose(np.exp(expected).sum(), 1.0)


def test_sparse_finds_the_columns_that_count():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 300))
    labels = (x[:, 0] - x[:, 1] > 0).astype(np.int64)
    new = rng.normal(size=(300, 300))
    truth = new[:, 0] - new[:, 1] > 0

    def accuracy(sparse):
        model = Logistic.fit(
            x, labels, n_classes=2, weight=np.ones(120), inverse_penalty=0.3,
            sparse=sparse,
        )  # fmt: skip
        return ((model.logits(new)[:, 1] > model.logits(new)[:, 0]) == truth).mean()

    assert accuracy(True) > 0.85 > 0.8 > accuracy(False)


def test_newton_is_for_few_classes():
    """Its Hessian takes the square of their number: 50 classes took 7 times as long."""
    assert _model(1.0, 75, 4).solver == "newton-cholesky"
    assert _model(1.0, 6, 50).solver == _model(1.0, 64, 10).solver == "lbfgs"
