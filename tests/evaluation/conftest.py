"""Predictives that tests of evaluation share."""

from collections.abc import Iterator

import matplotlib.pyplot as plt
import pytest
import torch

from caveat.predictive import CategoricalPredictive, GaussianPredictive


@pytest.fixture(autouse=True)
def closed_figures() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.fixture
def classifier(generator: torch.Generator) -> CategoricalPredictive:
    logits = 2 * torch.randn(9, 400, 4, generator=generator, dtype=torch.float64)
    return CategoricalPredictive.from_logits(logits)


@pytest.fixture
def labels(
    classifier: CategoricalPredictive, generator: torch.Generator
) -> torch.Tensor:
    """Drawn from the probabilities, which are therefore right."""
    return torch.multinomial(classifier.probs, 1, generator=generator).squeeze(1)


@pytest.fixture
def regression(generator: torch.Generator) -> GaussianPredictive:
    draws = torch.randn(7, 300, 1, generator=generator, dtype=torch.float64)
    return GaussianPredictive.from_draws(draws, precision=4.0)


@pytest.fixture
def outcomes(
    regression: GaussianPredictive, generator: torch.Generator
) -> torch.Tensor:
    """Drawn from the mixtures, which are therefore right."""
    which = torch.randint(7, (300,), generator=generator)
    centre = regression.draws[which, torch.arange(300), 0]
    return centre + 0.5 * torch.randn(300, generator=generator, dtype=torch.float64)
