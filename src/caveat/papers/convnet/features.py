"""Why averaged weights fail in a convnet: pooling takes maxima of noisy numbers."""

import torch
from torch import Tensor, nn

from caveat.papers.lenet import Labelled, as_input
from caveat.sampling import MCDropout

_N_IMAGES = 500
_N_DRAWS = 20


def feature_growth(net: nn.Sequential, test: Labelled) -> list[float]:
    """How much larger pooled features are, on average over masks, than without masks.

    The expected maximum of noisy numbers is larger than the maximum of their
    expectations, so the pass with averaged weights feeds each layer numbers that are
    smaller than those it was trained on.

    Parameters
    ----------
    net : nn.Sequential
        With dropout before its pooling.
    test : Labelled
        Images, of which a few hundred are used.

    Returns
    -------
    list of float
        After each pooling, from the input on: the ratio of root mean squares.
    """
    x = as_input(test.image[:_N_IMAGES])
    ends = [k + 1 for k, layer in enumerate(net) if isinstance(layer, nn.MaxPool2d)]
    return [_growth(nn.Sequential(*list(net)[:end]), x) for end in ends]


@torch.inference_mode()
def _growth(head: nn.Sequential, x: Tensor) -> float:
    drawn = MCDropout(head, seed=0).draws(x, n_draws=_N_DRAWS).mean(0)
    standard = head(x)
    return float((drawn.square().mean() / standard.square().mean()).sqrt())
