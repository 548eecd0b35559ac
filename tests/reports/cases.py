"""Predictions whose calibration is known exactly, by construction."""

import numpy as np
import torch

from caveat.predictive import CategoricalPredictive, GaussianPredictive


def normal_quantiles(n_rows):
    """Observations that a standard normal distribution describes as well as can be."""
    levels = (torch.arange(n_rows, dtype=torch.float64) + 0.5) / n_rows
    shuffled = torch.randperm(n_rows, generator=torch.Generator().manual_seed(0))
    return torch.special.ndtri(levels)[shuffled]


def standard(n_rows):
    """Standard normal predictions: of the same spread for all rows."""
    zero = torch.zeros(n_rows, dtype=torch.float64)
    return GaussianPredictive.point(zero, precision=1.0)


def regression(n_rows=300, n_draws=40, seed=0):
    """Draws, with spreads that differ, and observations as they say."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n_rows, 3, generator=generator, dtype=torch.float64)
    std = 0.2 + x[:, 0].abs()
    noise = torch.randn(n_draws, n_rows, generator=generator, dtype=torch.float64)
    centre = 3.0 * x[:, 1]
    predictive = GaussianPredictive.from_draws(
        (centre + 0.3 * std * noise)[..., None], precision=std.pow(-2)[:, None]
    )
    y = predictive.sample(1, seed=seed)[0].reshape(-1)
    return predictive, y.numpy(), x.numpy()


def with_confidence(probs, right):
    """Two classes; of each row the first has ``probs``, and is ``right`` or not."""
    probs = torch.as_tensor(probs, dtype=torch.float64)
    logits = torch.stack([probs.log(), (1.0 - probs).log()], -1)
    labels = np.where(np.asarray(right, dtype=bool), 0, 1)
    return CategoricalPredictive.point(logits), labels


def shares(n_rows, share):
    """True for exactly this share of the rows, in an order that tells nothing."""
    hits = np.arange(n_rows) < round(n_rows * share)
    return np.random.default_rng(0).permutation(hits)


def classification(n_rows=300, n_draws=20, n_classes=4, seed=0):
    """Draws of logits, and labels as their average probabilities say."""
    generator = torch.Generator().manual_seed(seed)
    centre = 2.0 * torch.randn(n_rows, n_classes, generator=generator)
    noise = torch.randn(n_draws, n_rows, n_classes, generator=generator)
    predictive = CategoricalPredictive.from_logits(centre + 0.5 * noise)
    return predictive, predictive.sample(1, seed=seed)[0].numpy(), centre.numpy()
