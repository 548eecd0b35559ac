"""What closed forms cost, by the count of what they do."""

import torch
from torch import nn

from caveat import MCDropout
from caveat.sampling.closed_form.cost import is_nearly_free
from caveat.sampling.closed_form.last_layer import last_layer_of
from caveat.sampling.endings import find_ending
from caveat.sampling.inputs import Batch
from caveat.sampling.rewriting import without_writes


def free(model: nn.Module, x: torch.Tensor) -> bool:
    batch = Batch.of((x,), {}, axis=0, model=model)
    tape = MCDropout(model, seed=0)._sampler.session(batch).tape.copy()
    without_writes(tape)
    ending = find_ending(tape, tape.outputs[0].number)
    return is_nearly_free(tape, last_layer_of(ending))


def mlp(width: int, rate: float) -> nn.Sequential:
    layers: list[nn.Module] = [nn.Linear(3, width), nn.ReLU()]
    for _ in range(2):
        layers += [nn.Dropout(rate), nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Dropout(rate), nn.Linear(width, 1))


def test_cost_falls_with_the_width_of_the_layers_before():
    x = torch.randn(4, 3)
    assert not free(mlp(16, 0.05), x)
    assert free(mlp(1024, 0.05), x)


def test_units_that_could_be_left_out_are_a_cost():
    x = torch.randn(4, 3)
    assert free(mlp(1024, 0.1), x)  # a tenth of a layer of two
    assert not free(mlp(1024, 0.5), x)  # half of it
