"""Recurrent networks one layer at a time, so that the dropout between them can be seen.

``nn.LSTM``, ``nn.GRU`` and ``nn.RNN`` hand all layers, the rate and the flag to one
operation. Run with one layer each and no dropout, they compute the same; between the
layers stands the mask.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from caveat._torch import OpOverload
from caveat.sampling.passes import Pass
from caveat.sampling.rules.dropout import times

_aten = torch.ops.aten

# (x, rate, fires in eval, batch sizes of a packed sequence) -> x with dropout
DropBetween = Callable[[Tensor, float, bool, Tensor | None], Tensor]


def drops_between_layers(args: Sequence[Any]) -> bool:
    """Whether these arguments ask for dropout between layers."""
    _, num_layers, dropout = _options(args)[1:4]
    return bool(num_layers > 1 and dropout > 0.0)


def layer_by_layer(
    func: Any, args: Sequence[Any], drop: DropBetween, **options: Any
) -> Any:
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
            *head,
            mine,
            has_biases,
            1,
            0.0,
            False,
            bidirectional,
            *batch_first,
            **options,
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


def drop_between_layers(
    run: Pass, x: Tensor, rate: float, fires: bool, batch_sizes: Tensor | None
) -> Tensor:
    """What one recurrent layer hands to the next."""
    kind = "recurrent dropout"
    if batch_sizes is None:
        drawn = run.mask(kind, rate, x, fires=fires)
        return x if drawn is None else times(run, x, drawn)
    # The rows of a packed sequence are (step, row) pairs: address them as such.
    steps, rows = len(batch_sizes), 1 if run.omega.shared else int(batch_sizes[0])
    shape = (steps, rows, x.shape[1])
    drawn = run.mask(kind, rate, x, fires=fires, shape=shape, has_rows=False)
    if drawn is None:
        return x
    place = torch.repeat_interleave(torch.arange(steps), batch_sizes)
    if rows > 1:
        place = place * rows + torch.cat([torch.arange(int(n)) for n in batch_sizes])
    with run.recorder:
        return x * drawn.noise.flatten(0, 1).index_select(0, place.to(x.device))


def _recurrent(run: Pass, func: OpOverload, *args: Any, **options: Any) -> Any:
    if not drops_between_layers(args):
        return run.recorder.run(func, *args, **options)

    with run.recorder:
        return layer_by_layer(func, args, partial(drop_between_layers, run), **options)


RULES: dict[OpOverload, Callable[..., Any]] = {
    overload: _recurrent
    for packet in (
        _aten.lstm,
        _aten.gru,
        _aten.rnn_tanh,
        _aten.rnn_relu,
        _aten.quantized_lstm,
        _aten.quantized_gru,
    )
    for overload in (packet.input, packet.data)
}
