"""What a trained network says by one pass or many draws, and how good that is."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from caveat.papers.lenet.images import as_input
from caveat.sampling import MCDropout

BATCH = 1_000


@torch.inference_mode()
def standard_log_probs(net: nn.Sequential, image: Tensor) -> Tensor:
    """Log probabilities, float64, of the pass with dropout off: averaged weights."""
    logits = [net(as_input(part)) for part in image.split(BATCH)]
    return torch.cat(logits).double().log_softmax(-1)


def drawn_logits(
    net: nn.Sequential, image: Tensor, *, n_draws: int, seed: int = 0
) -> Tensor:
    """Logits (draws, images, 10) of passes with one mask each for all images.

    Draws are independent, so that any group of them is as good as any other.
    """
    mc = MCDropout(net, seed=seed, stratified=False)
    draws: Tensor = mc.draws(as_input(image), n_draws=n_draws, batch_size=BATCH)
    return draws


def grouped(log_probs: Tensor, size: int) -> Iterator[Tensor]:
    """Averages of disjoint groups of draws: several answers of ``size`` draws each.

    From log probabilities (draws, images, classes): the log of the averaged
    probabilities (images, classes). Draws that are left over are not used.
    """
    for group in log_probs.split(size):
        if len(group) == size:
            yield group.logsumexp(0) - torch.tensor(float(size)).log()


@dataclass(frozen=True)
class LabelScore:
    """How good some log probabilities are."""

    error: float  # share of images with a wrong label
    log_likelihood: float  # mean log probability of the true class
    log_likelihood_se: float  # its standard error over images

    @classmethod
    def of(cls, log_probs: Tensor, label: Tensor) -> "LabelScore":
        """Of log probabilities (images, classes)."""
        error = (log_probs.argmax(-1) != label).double().mean()
        own = log_probs.gather(-1, label[:, None]).double()
        spread_of_mean = own.std() / math.sqrt(len(label))
        return cls(float(error), float(own.mean()), float(spread_of_mean))
