"""Factorised Gaussian weights of many networks, learned as one stack.

What ``noise.FactorisedGaussian`` is for one module: w = m + s ε, one ε a step for all
rows of a network. The gradient in w is that of the stack, written by hand; those in m,
log s and the precision follow from it. The prior's length-scale and the precision are
not set: both maximise the bound, layer by layer and network by network.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from caveat.errors import DivergedError, ParameterError
from caveat.noise.factorised import FactorisedLayer
from caveat.training.cohort import rates_at, shared_out
from caveat.training.families import SeparateNetworks
from caveat.training.members import Architecture, Member, Rows
from caveat.training.networks import untrained
from caveat.training.stack import Adam, Stack, Workspace, layers
from caveat.training.streams import RowOrder, first_weights, training_noise

_AT_ONCE = 64  # steps whose rows and noise are prepared together
_TINY = 1e-12


class Variational(NamedTuple):
    """Networks with their q(w), and the precision of each in standard units."""

    trained: SeparateNetworks
    precisions: Tensor


class FactorisedStack:
    """Means, log widths and log precision of stacked networks, and their bound.

    Parameters
    ----------
    stack : Stack
        Of networks with half the squared error as objective.
    means : Tensor, shape (networks, parameters)
        Before training.
    initial_std : float
        s before training.
    n_train : int
        Rows that each network learns from.
    """

    def __init__(
        self, stack: Stack, means: Tensor, initial_std: float, n_train: int
    ) -> None:
        self.stack, self.n_train = stack, n_train
        self._size = means.shape[1]
        log_stds = torch.full_like(means, math.log(initial_std))
        log_precisions = torch.zeros(len(means), 1)
        self.state = torch.cat([means, log_stds, log_precisions], 1)
        self._gradient = torch.empty_like(self.state)
        self._of_weights = torch.empty_like(means)
        self._into = layers(self._of_weights, stack.architecture)
        self._quiet = [None] * len(stack.architecture.shapes)

    @property
    def means(self) -> Tensor:
        """Of the weights, shape (networks, parameters)."""
        return self.state[:, : self._size]

    @property
    def log_stds(self) -> Tensor:
        """Of the weights, shape (networks, parameters)."""
        return self.state[:, self._size : -1]

    @property
    def log_precisions(self) -> Tensor:
        """Of the noise of the targets, shape (networks, 1)."""
        return self.state[:, -1:]

    def prior_precisions(self) -> Tensor:
        """l² of each parameter at which the KL is least, the same in a layer (E26)."""
        squares = self.means.square() + (2 * self.log_stds).exp()
        found = torch.empty_like(squares)
        pairs = zip(
            layers(squares, self.stack.architecture),
            layers(found, self.stack.architecture),
            strict=True,
        )
        for own, into in pairs:
            total = torch.stack([part.flatten(1).sum(1) for part in own]).sum(0)
            count = sum(part[0].numel() for part in own)
            for part in into:
                part.copy_((count / (total + _TINY)).reshape(-1, 1, 1).expand_as(part))
        return found

    def gradient(self, work: Workspace, epsilon: Tensor) -> Tensor:
        """Of minus the bound over N, estimated by the rows in ``work`` and one draw.

        Parameters
        ----------
        work : Workspace
            With its rows.
        epsilon : Tensor, shape (networks, parameters)
            Standard normal.

        Returns
        -------
        Tensor, shape (networks, 2 parameters + 1)
            The next call overwrites it.
        """
        stds = self.log_stds.exp()
        drawn = torch.addcmul(self.means, stds, epsilon)
        own = layers(drawn, self.stack.architecture)
        self.stack.gradient(own, self._into, work, self._quiet)
        tau, prior = self.log_precisions.exp(), self.prior_precisions()
        pull = self._of_weights * tau
        # E28 with E26: d/dm and d/dlog s of tau |y - f|²/2 + KL/N
        into, size = self._gradient, self._size
        of_means = into[:, :size]
        torch.addcmul(pull, prior, self.means, value=1 / self.n_train, out=of_means)
        spread = (prior * stds.square() - 1) / self.n_train
        torch.addcmul(spread, pull, epsilon * stds, out=into[:, size:-1])
        errors = (work.sums[-1] - work.y).square().sum(-1, keepdim=True) * work.share
        into[:, -1:] = 0.5 * (tau * errors.sum((1, 2))[:, None] - work.y.shape[-1])
        return into


def train_factorised(
    members: Sequence[Member], data: Sequence[Rows], *, initial_std: float = 0.05
) -> Variational:
    """Train networks with factorised Gaussian weights as one stack.

    Parameters
    ----------
    members : sequence of Member
        Alike in ``spec.shared`` and schedule; their noise is a ``FactorisedGaussian``.
    data : sequence of Rows
        Which members refer to, all of the same length.
    initial_std : float
        s before training.

    Returns
    -------
    Variational
    """
    spec, first = members[0].spec, data[members[0].data]
    if len({len(data[m.data]) for m in members}) > 1:
        raise ParameterError("networks of one stack need as many rows as each other.")
    shape = Architecture.of(spec, first.x.shape[1], first.y.shape[1])
    means = np.stack([first_weights(shape, m.seed) for m in members])
    stack = Stack(shape, spec.objective)
    model = FactorisedStack(stack, torch.from_numpy(means), initial_std, len(first))
    with torch.no_grad():
        _learn(model, members, data)
    if not model.state.isfinite().all():
        raise DivergedError("factorised weights are not finite: lower learning_rate")
    modules = tuple(_module(model, i, member) for i, member in enumerate(members))
    steps = torch.full((len(members),), members[0].n_steps(data))
    trained = SeparateNetworks(tuple(members), (), steps, shape, modules)
    return Variational(trained, model.log_precisions[:, 0].exp().double())


def _learn(
    model: FactorisedStack, members: Sequence[Member], data: Sequence[Rows]
) -> None:
    schedule, total = members[0].spec.schedule, members[0].n_steps(data)
    table = torch.cat([torch.cat([rows.x, rows.y], 1) for rows in data])
    lengths = [0, *(len(rows) for rows in data)]
    starts = torch.from_numpy(np.cumsum(lengths)[[m.data for m in members]])
    orders = [RowOrder(len(data[m.data]), schedule, m.seed) for m in members]
    rngs = training_noise(members)
    adam = Adam(model.state, torch.zeros_like(model.state))
    work = Workspace(model.stack.architecture, len(members), schedule.batch_size)
    size = model.means.shape[1]
    for start in range(0, total, _AT_ONCE):
        count = min(_AT_ONCE, total - start)
        places, share = map(
            torch.from_numpy,
            shared_out(np.stack([order.take(count) for order in orders], 1)),
        )
        normals = [rng.standard_normal((count, size), np.float32) for rng in rngs]
        epsilon = torch.from_numpy(np.stack(normals, 1))
        steps = np.arange(start, start + count)
        rates = rates_at(steps, total, schedule.learning_rate, schedule.decay)
        for k, rate in enumerate(rates.tolist()):
            work.load(table, places[k] + starts[:, None], share[k].unsqueeze(-1))
            adam.step(model.gradient(work, epsilon[k]), torch.tensor(rate))


def _module(model: FactorisedStack, index: int, member: Member) -> nn.Sequential:
    """A network of the stack as modules that carry its noise."""
    shape = model.stack.architecture
    module = untrained(member.spec, shape, member.seed)
    own = slice(index, index + 1)
    noisy = [layer for layer in module if isinstance(layer, FactorisedLayer)]
    pairs = zip(
        noisy,
        layers(model.means[own], shape),
        layers(model.log_stds[own], shape),
        strict=True,
    )
    for layer, (weight, bias), (log_std, log_sd_bias) in pairs:
        assert layer.bias is not None and layer.log_sd_bias is not None
        layer.weight.data = weight[0].T.contiguous()
        layer.bias.data = bias[0, 0].clone()
        layer.log_std.data = log_std[0].T.contiguous()
        layer.log_sd_bias.data = log_sd_bias[0, 0].clone()
    return module
