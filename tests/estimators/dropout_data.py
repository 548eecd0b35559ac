"""Small data sets and quick estimators for the tests of dropout networks."""

import numpy as np

from caveat.estimators import DropoutClassifier, DropoutRegressor, Schedule

QUICK = {"hidden": (10,), "n_draws": 50, "random_state": 0}


def quick_regressor(**parameters):
    return DropoutRegressor(**_quick(parameters))


def quick_classifier(**parameters):
    return DropoutClassifier(**_quick(parameters))


def _quick(parameters):
    short = {"schedule": Schedule(epochs=10)}
    return QUICK | short | parameters


def rows(n_rows=60, n_features=3, n_outputs=None, seed=0):
    """A linear function with noise of standard deviation 1/2."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, n_features))
    weights = rng.normal(size=(n_features, n_outputs or 1))
    y = x @ weights + 0.5 * rng.normal(size=(n_rows, n_outputs or 1))
    return (x, y) if n_outputs else (x, y[:, 0])


def labelled(n_rows=90, labels=("a", "b", "c"), seed=0):
    """Classes around points of a circle of radius 3, with standard deviation 1."""
    rng = np.random.default_rng(seed)
    numbers = np.arange(n_rows) % len(labels)
    turns = 2 * np.pi * np.arange(len(labels)) / len(labels)
    centres = 3 * np.stack([np.cos(turns), np.sin(turns)], 1)
    return centres[numbers] + rng.normal(size=(n_rows, 2)), np.array(labels)[numbers]
