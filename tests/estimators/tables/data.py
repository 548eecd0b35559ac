"""Small tables, and a budget that a test can afford."""

import numpy as np

from caveat.estimators.tables.budget import Budget
from caveat.estimators.tables.nets import Recipe

CHEAP = Budget(
    (
        Recipe("networks", "encoded", (16,), 0.1, 1e-3, 400),
        Recipe("networks on pieces", "pieces", (16,), 0.1, 1e-3, 200),
    ),
    most_folds=3,
)

CHEAPEST = Budget((Recipe("networks", "encoded", (4,), 0.1, 1e-3, 10),), most_folds=2)


def a_line(n_rows=120, n_columns=3, noise=0.5, seed=0):
    """X and a linear y with Gaussian noise."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, n_columns))
    return x, x @ np.arange(1.0, n_columns + 1) + noise * rng.normal(size=n_rows)


def only_noise(n_rows=150, n_columns=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, n_columns)), rng.normal(size=n_rows)
