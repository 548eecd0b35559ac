"""Which rows are worth a label: scores of single rows, and choices of batches."""

from caveat.decisions.acquisition.batch_bald import BatchBALD
from caveat.decisions.acquisition.choices import (
    Acquisition,
    RandomChoice,
    TopScore,
    as_acquisition,
)
from caveat.decisions.acquisition.diverse import Diverse, disagreement
from caveat.decisions.acquisition.joint import joint_entropy
from caveat.decisions.acquisition.scores import (
    bald,
    entropy,
    epistemic_variance,
    least_confidence,
    predictive_variance,
    variation_ratio,
)

__all__ = [
    "bald",
    "entropy",
    "variation_ratio",
    "least_confidence",
    "predictive_variance",
    "epistemic_variance",
    "joint_entropy",
    "disagreement",
    "Acquisition",
    "TopScore",
    "RandomChoice",
    "BatchBALD",
    "Diverse",
    "as_acquisition",
]
