"""Logistic regression for the pool: all classes, whichever the rows hold."""

import warnings
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from caveat.estimators.tables.ridge import relevance

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

INVERSE_PENALTIES = (0.003, 0.03, 0.3, 3.0, 30.0)  # C in standard units
_FEW, _FEW_CLASSES = 300, 12  # weights, classes up to which Newton is the fastest
_ROUNDS = 300
_HALF = 0.5  # a row of each class, as if it had been seen


@dataclass(frozen=True, eq=False)
class Logistic:
    """Logits that are linear in the columns.

    Attributes
    ----------
    mean, scale : array, shape (columns,)
        Standard units of the columns.
    weights : array, shape (columns, classes)
    intercept : array, shape (classes,)
    """

    mean: Array
    scale: Array
    weights: Array
    intercept: Array

    @classmethod
    def fit(
        cls,
        x: Array,
        labels: Labels,
        *,
        n_classes: int,
        weight: Array,
        inverse_penalty: float,
        sparse: bool = False,
    ) -> Self:
        """Of rows x (rows, columns) with class numbers and weights (rows,).

        ``sparse`` gives columns of little weight a prior closer to 0 (by a linear
        regression of the classes).
        """
        total = weight.sum()
        mean = weight @ x / total
        scale = np.sqrt(weight @ np.square(x - mean) / total)
        scale = np.where(scale > 1e-9, scale, 1.0)
        if sparse:
            z = (x - mean) / scale * np.sqrt(weight)[:, None]
            scale = scale / relevance(z, np.eye(n_classes)[labels], weight)
        prior = class_logits(labels, n_classes, weight)
        found = cls(mean, scale, np.zeros((x.shape[1], n_classes)), prior)
        present = np.unique(labels[weight > 0])
        if len(present) < 2:
            return found
        model = _model(inverse_penalty, x.shape[1], len(present))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", RuntimeWarning)
            warnings.filterwarnings("ignore", "The number of unique classes")
            model.fit((x - mean) / scale, labels, sample_weight=weight)
        return found._with(model, present)

    def _with(self, model: LogisticRegression, present: Labels) -> Self:
        """Classes that the rows lack keep the logit of their prior."""
        coef, intercept = model.coef_, model.intercept_
        if len(present) == 2:
            coef = np.vstack([-0.5 * coef, 0.5 * coef])
            intercept = np.concatenate([-0.5 * intercept, 0.5 * intercept])
        weights, levels = self.weights.copy(), self.intercept.copy()
        weights[:, present] = coef.T
        shift = self.intercept[present].mean() - intercept.mean()
        levels[present] = intercept + shift
        return type(self)(self.mean, self.scale, weights, levels)

    def logits(self, x: Array) -> Array:
        """Of rows, shape (rows, classes)."""
        return (x - self.mean) / self.scale @ self.weights + self.intercept


def _model(inverse_penalty: float, columns: int, classes: int) -> LogisticRegression:
    few = columns * classes <= _FEW and classes <= _FEW_CLASSES
    solver = "newton-cholesky" if few else "lbfgs"
    return LogisticRegression(C=inverse_penalty, solver=solver, max_iter=_ROUNDS)


def class_logits(labels: Labels, n_classes: int, weight: Array) -> Array:
    """Log frequencies of the classes, each as if seen half a time more."""
    counts = np.bincount(labels, weights=weight, minlength=n_classes) + _HALF
    return np.asarray(np.log(counts / counts.sum()))
