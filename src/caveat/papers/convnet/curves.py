"""What a LeNet says as the number of passes grows, and why averaged weights fail it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from caveat.papers.lenet import (
    Labelled,
    LabelScore,
    NetJob,
    as_input,
    drawn_logits,
    grouped,
    standard_log_probs,
)
from caveat.sampling import MCDropout

STANDARD = 0  # as ``n_draws``: one pass with averaged weights
N_GROWN = 500  # images by which the growth of features is measured
_N_DRAWS = 20


@dataclass(frozen=True)
class CurvePoint:
    """A network asked with some number of passes."""

    dropout: str
    n_steps: int
    seed: int
    n_draws: int  # T; 0 is the standard pass with averaged weights
    n_groups: int  # disjoint groups of T draws that the numbers are averages of
    n_images: int
    error: float  # share of wrong labels
    error_sd: float  # its standard deviation over groups
    log_likelihood: float  # mean log probability of the true class
    log_likelihood_se: float  # its standard error over images
    wrong: str  # the images with a wrong label, if there is one group: their numbers


@dataclass(frozen=True)
class Growth:
    """How much larger pooled features are with masks than without."""

    data: str  # name of the images
    seed: int
    pooling: int  # 1 is the first
    ratio: float  # of root mean squares: averaged over masks, and without


def curve(
    net: nn.Sequential, job: NetJob, test: Labelled, sizes: Sequence[int]
) -> Iterator[CurvePoint]:
    """The points of one network: the standard pass, then some numbers of draws."""
    standard = standard_log_probs(net, test.image)
    yield _point(job, STANDARD, [standard], test.label)
    if not sizes:
        return
    draws = drawn_logits(net, test.image, n_draws=max(sizes)).log_softmax(-1)
    for size in sizes:
        yield _point(job, size, list(grouped(draws, size)), test.label)


def _point(job: NetJob, size: int, groups: list[Tensor], label: Tensor) -> CurvePoint:
    scores = [LabelScore.of(group, label) for group in groups]
    errors = [score.error for score in scores]
    wrong = (groups[0].argmax(-1) != label).nonzero().flatten().tolist()
    return CurvePoint(
        *(job.dropout, job.n_steps, job.seed, size, len(groups), len(label)),
        float(np.mean(errors)),
        float(np.std(errors, ddof=1)) if errors[1:] else 0.0,
        float(np.mean([score.log_likelihood for score in scores])),
        float(np.mean([score.log_likelihood_se for score in scores])),
        "" if errors[1:] else " ".join(map(str, wrong)),
    )


def feature_growth(net: nn.Sequential, test: Labelled) -> list[float]:
    """How much larger pooled features are, on average over masks, than without masks.

    The expected maximum of noisy numbers is larger than the maximum of their
    expectations, so the pass with averaged weights feeds each layer numbers that are
    smaller than those it was trained on. A ratio of root mean squares after each
    pooling, from the input on.
    """
    x = as_input(test.image[:N_GROWN])
    ends = [k + 1 for k, layer in enumerate(net) if isinstance(layer, nn.MaxPool2d)]
    return [_growth(nn.Sequential(*list(net)[:end]), x) for end in ends]


@torch.inference_mode()
def _growth(head: nn.Sequential, x: Tensor) -> float:
    drawn = MCDropout(head, seed=0).draws(x, n_draws=_N_DRAWS).mean(0)
    standard = head(x)
    return float((drawn.square().mean() / standard.square().mean()).sqrt())
