"""LeNet with 20 and 50 filters and 500 units, and dropout at none to all of its layers.

As in the Caffe files released with paper 001: pixels times 1/256, no non-linearity
after the convolutions but the pooling, one ReLU. ``lenet`` has no dropout,
``lenet_dropout`` one after the ReLU, ``lenet_all_dropout`` also one after each
convolution, before its pooling. Dropping outputs of a layer is dropping inputs of the
next, so every weight layer but the first has its Bernoulli weights.
"""

import math

import torch
from torch import nn

DROP_RATE = 0.5
DROPOUT = ("none", "end", "everywhere")


def make_lenet(dropout: str, generator: torch.Generator) -> nn.Sequential:
    """The network with its first weights, for images (rows, 1, 28, 28).

    The weights are the same wherever the dropout is (one of ``DROPOUT``). In evaluation
    mode, channels last in memory.
    """
    early = DROP_RATE if dropout == "everywhere" else 0.0
    late = DROP_RATE if dropout != "none" else 0.0
    return lenet_with(early, late, generator)


def lenet_with(early: float, late: float, generator: torch.Generator) -> nn.Sequential:
    """The same with rates of one's own: behind both convolutions, and behind the ReLU.

    A rate of 0 is no dropout there.
    """
    after_filters = [nn.Dropout(early)] if early else []
    after_units = [nn.Dropout(late)] if late else []
    net = nn.Sequential(
        *[nn.Conv2d(1, 20, 5), *after_filters, nn.MaxPool2d(2)],
        *[nn.Conv2d(20, 50, 5), *after_filters, nn.MaxPool2d(2)],
        *[nn.Flatten(), nn.Linear(800, 500), nn.ReLU(), *after_units],
        nn.Linear(500, 10),
    )
    for layer in net:
        if isinstance(layer, nn.Conv2d | nn.Linear):
            _fill(layer, generator)
    net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return net.eval()


@torch.no_grad()
def _fill(layer: nn.Conv2d | nn.Linear, generator: torch.Generator) -> None:
    """Caffe's ``xavier``, uniform with variance 1 / fan-in; biases 0."""
    limit = math.sqrt(3.0 / layer.weight[0].numel())
    layer.weight.uniform_(-limit, limit, generator=generator)
    if layer.bias is not None:
        layer.bias.zero_()
