"""Recurrent networks one layer at a time, so that the dropout between them can be seen.

``nn.LSTM``, ``nn.GRU`` and ``nn.RNN`` hand all layers, the rate and the flag to one
operation. Run with one layer each and no dropout, they compute the same; between the
layers stands the mask.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

# (x, rate, fires in eval, batch sizes of a packed sequence) -> x with dropout
DropBetween = Callable[[Tensor, float, bool, Tensor | None], Tensor]


def is_recurrent(func: Any, args: Sequence[Any]) -> bool:
    """Whether these arguments ask for dropout between layers."""
    _, num_layers, dropout = _options(args)[1:4]
    return bool(num_layers > 1 and dropout > 0.0)


def layer_by_layer(func: Any, args: Sequence[Any], drop: DropBetween) -> Any:
    """Run ``func`` (``torch.lstm`` and its kin) layer by layer with ``drop`` between.

    ``args`` are those of the operation: (input, hx, params, has_biases, num_layers,
    dropout, train, bidirectional, batch_first) or, packed, (data, batch_sizes, hx,
    params, has_biases, num_layers, dropout, train, bidirectional).
    """
    packed = isinstance(args[3], list | tuple)
    x, batch_sizes = args[0], args[1] if packed else None
    hx = args[2] if packed else args[1]
    params, has_biases, num_layers, dropout, train, bidirectional = _options(args)
    batch_first = [] if packed else [args[-1]]
    directions = 2 if bidirectional else 1
    per_layer = len(params) // num_layers
    states: list[tuple[Tensor, ...]] = []
    for layer in range(num_layers):
        if layer:
            x = drop(x, dropout, train, batch_sizes)
        mine = list(params[layer * per_layer : (layer + 1) * per_layer])
        start = _state_of_layer(hx, layer, directions)
        head = [x, batch_sizes, start] if packed else [x, start]
        x, *state = func(
            *head, mine, has_biases, 1, 0.0, False, bidirectional, *batch_first
        )
        states.append(tuple(state))
    return (x, *(torch.cat(parts) for parts in zip(*states, strict=True)))


def _options(args: Sequence[Any]) -> tuple[Any, bool, int, float, bool, bool]:
    first = 3 if isinstance(args[3], list | tuple) else 2
    params, has_biases, num_layers, dropout, train, bidirectional = args[
        first : first + 6
    ]
    return params, has_biases, num_layers, dropout, train, bidirectional


def _state_of_layer(hx: Any, layer: int, directions: int) -> Any:
    part = slice(layer * directions, (layer + 1) * directions)
    if isinstance(hx, list | tuple):
        return [state[part] for state in hx]
    return hx[part]
