"""Models of known doubt and known errors, to make cascades of."""

import numpy as np
import torch

from caveat.decisions import Stage
from caveat.predictive import CategoricalPredictive, GaussianPredictive


def rows_of(n_rows, n_models, seed=0):
    """Rows (rows, 2 · models): for each model its doubt, and whether it errs.

    Errors are more likely where doubt is high, and later models err less.
    """
    generator = np.random.default_rng(seed)
    columns = []
    for k in range(n_models):
        doubt = generator.random(n_rows).round(2)
        columns += [doubt, generator.random(n_rows) < doubt / (k + 1)]
    return np.stack(columns, 1).astype(float)


class Model:
    """Says 1 or, where it errs, 0; the truth is 1 everywhere."""

    def __init__(self, k):
        self.k, self.seen = k, []

    def predictive(self, x):
        self.seen.append(len(x))
        doubt, errs = torch.from_numpy(np.asarray(x)[:, 2 * self.k : 2 * self.k + 2]).T
        sure = 0.95 - 0.4 * doubt
        right = torch.where(errs > 0, 1 - sure, sure)
        return CategoricalPredictive.from_logits(
            torch.stack([1 - right, right], -1).log()[None]
        )


def stages(n_models, costs=None):
    costs = costs or [10.0**k for k in range(n_models)]
    return [Stage(Model(k), cost=c, name=f"m{k}") for k, c in enumerate(costs)]


def constant(value):
    """A regression that says ``value`` and doubts by the first column."""

    def predict(x):
        doubt = torch.as_tensor(np.asarray(x)[:, 0])
        draws = torch.stack([value - doubt, value + doubt])
        return GaussianPredictive.from_draws(draws, precision=1e6)

    return predict
