"""Many perceptrons as one: stacked weights, batched products, derivatives by hand.

All parameters of a network lie in one row of a matrix (networks, parameters); the
weights and biases of a layer are views into it. So the optimiser is a few operations
on one matrix, and each network can have its own rate and decay.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from caveat.training.activations import activation
from caveat.training.members import Architecture
from caveat.training.objectives import Objective

Layers = list[tuple[Tensor, Tensor]]
Factors = Sequence[Tensor | None]

_FIRST, _SECOND, _EPSILON = 0.9, 0.999, 1e-8  # of Adam


def layers(flat: Tensor, architecture: Architecture) -> Layers:
    """Weights (networks, inputs, outputs) and biases (networks, 1, outputs), views."""
    found, start = [], 0
    for inputs, outputs in architecture.shapes:
        middle, stop = start + inputs * outputs, start + (inputs + 1) * outputs
        weight = flat[:, start:middle].unflatten(1, (inputs, outputs))
        found.append((weight, flat[:, middle:stop].unsqueeze(1)))
        start = stop
    return found


def per_layer(values: Tensor, biases: Tensor, architecture: Architecture) -> Tensor:
    """A matrix like the parameters, filled by layer.

    Shapes: values (networks, weight layers), biases (networks,).
    """
    flat = torch.empty(len(values), architecture.n_parameters)
    for place, (weight, bias) in enumerate(layers(flat, architecture)):
        weight.copy_(values[:, place, None, None].expand_as(weight))
        bias.copy_(biases[:, None, None].expand_as(bias))
    return flat


class Stack:
    """The forward and the backward pass of stacked networks.

    Parameters
    ----------
    architecture : Architecture
    objective : Objective
    """

    def __init__(self, architecture: Architecture, objective: Objective) -> None:
        self.architecture = architecture
        self.objective = objective
        self._activation = activation(architecture.activation)

    def outputs(
        self, parameters: Layers, x: Tensor, factors: Factors | None = None
    ) -> Tensor:
        """Outputs (networks, rows, outputs) of x (networks, rows, inputs)."""
        h = x
        for place, (weight, bias) in enumerate(parameters):
            if place:
                self._activation.function(h, h)
            if factors is not None and (factor := factors[place]) is not None:
                h = h * factor
            h = torch.baddbmm(bias, h, weight)
        return h

    def gradient(
        self, parameters: Layers, into: Layers, work: "Workspace", factors: Factors
    ) -> None:
        """Write the gradient of each network's mean loss on the rows in ``work``."""
        h = work.x
        for place, (weight, bias) in enumerate(parameters):
            if place:
                z, h = work.sums[place - 1], work.units[place]
                self._activation.function(z, h)
                self._activation.slope(z, h, z)
            factor = factors[place]
            if factor is not None:
                h = torch.mul(h, factor, out=work.units[place])
            work.noisy[place] = h
            torch.baddbmm(bias, h, weight, out=work.sums[place])
        back = self.objective.gradient(work.sums[-1], work.y).mul_(work.share)
        for place in range(len(parameters) - 1, -1, -1):
            grad_weight, grad_bias = into[place]
            torch.bmm(work.noisy[place].transpose(1, 2), back, out=grad_weight)
            torch.sum(back, 1, keepdim=True, out=grad_bias)
            if place:
                weight, slope = parameters[place][0], work.sums[place - 1]
                back = torch.bmm(back, weight.transpose(1, 2), out=work.units[place])
                factor = factors[place]
                if factor is not None:
                    back.mul_(factor)
                back.mul_(slope)


class Workspace:
    """The memory of a step, used again and again, and the rows it is about.

    Attributes
    ----------
    x, y : Tensor, shape (networks, rows, inputs or targets)
    share : Tensor, shape (networks, rows, 1)
        The weight of a row in its network's mean loss: one over the number of rows,
        zero for places left empty.
    units, noisy : list of Tensor
        Input of each weight layer, before and after the noise.
    sums : list of Tensor
        Output of each weight layer; during the backward pass the slopes there.
    """

    def __init__(self, architecture: Architecture, networks: int, rows: int) -> None:
        def empty(width: int) -> Tensor:
            return torch.empty(networks, rows, width)

        self._n_inputs = architecture.n_inputs
        self.units = [empty(width) for width in architecture.fan_ins]
        self.sums = [empty(width) for _, width in architecture.shapes]
        self.noisy = list(self.units)

    def load(self, table: Tensor, places: Tensor, share: Tensor) -> None:
        """Gather rows (inputs, targets) of a table, places (networks, rows)."""
        rows = table.index_select(0, places.reshape(-1))
        rows = rows.view(*places.shape, -1)
        self.x, self.y = rows[..., : self._n_inputs], rows[..., self._n_inputs :]
        self.share = share


class Adam:
    """Adam with a rate per network; its decay is the gradient of an L2 penalty.

    Parameters
    ----------
    parameters : Tensor, shape (networks, parameters)
        Updated in place.
    decay : Tensor, of the same shape
        Twice the L2 penalty of each parameter.
    done : int
        Steps that were done before, to go on with.

    Attributes
    ----------
    mean, square : Tensor, of the same shape
        The running means of gradients and of their squares; zeros, to be overwritten
        by whoever goes on.
    """

    def __init__(self, parameters: Tensor, decay: Tensor, *, done: int = 0) -> None:
        self._parameters = parameters
        self._decay = decay
        self.mean = torch.zeros_like(parameters)
        self.square = torch.zeros_like(parameters)
        self._step = done

    def step(self, gradient: Tensor, rates: Tensor) -> None:
        """One step of the first ``len(gradient)`` networks.

        Parameters
        ----------
        gradient : Tensor, shape (networks, parameters)
            Of the loss without the penalty; overwritten.
        rates : Tensor, shape (networks, 1)
            Learning rates.
        """
        self._step += 1
        count = len(gradient)
        weights, mean = self._parameters[:count], self.mean[:count]
        square = self.square[:count]
        gradient.addcmul_(weights, self._decay[:count])
        mean.lerp_(gradient, 1 - _FIRST)
        square.mul_(_SECOND).addcmul_(gradient, gradient, value=1 - _SECOND)
        factor, epsilon = corrections(self._step)
        scale = torch.sqrt(square, out=gradient).add_(epsilon)
        weights.sub_(torch.div(mean, scale, out=scale).mul_(rates * factor))


def corrections(step: Any) -> tuple[Any, Any]:
    """What Adam's moments, which start at zero, make of a rate and its epsilon.

    Parameters
    ----------
    step : int or array of int
        From 1 on.

    Returns
    -------
    factor : float or array
        On the learning rate.
    epsilon : float or array
        Beside the root of the second moment.
    """
    unbiased = (1 - _SECOND**step) ** 0.5
    return unbiased / (1 - _FIRST**step), _EPSILON * unbiased
