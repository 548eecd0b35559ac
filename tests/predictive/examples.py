"""Small predictives that several tests ask."""

import torch

from caveat.predictive import GaussianAccumulator, GaussianPredictive

ANSWERS = [
    "probs",
    "log_probs",
    "mean_error",
    "label",
    "entropy",
    "expected_entropy",
    "mutual_information",
    "variation_ratio",
    "argmax_variation_ratio",
    "logits_mean",
    "logits_std",
]


def random_draws(*shape: int, seed: int = 0, dtype=torch.float64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=dtype)


def random_logits(*shape: int, seed: int = 0, dtype=torch.float64) -> torch.Tensor:
    return 3 * random_draws(*shape, seed=seed, dtype=dtype)


def without_draws(draws: torch.Tensor, precision) -> GaussianPredictive:
    gathered = GaussianAccumulator(precision=precision, keep_draws=False)
    gathered.add(draws)
    return gathered.result()
