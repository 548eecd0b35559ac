"""What a fleet is told: a recipe for all its networks, and each network's own part."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from caveat import _validation as validation
from caveat.errors import ParameterError, ShapeError
from caveat.noise import GaussianNoise, Noise
from caveat.theory import HALF_SQUARED_ERROR, bias_l2_penalty, l2_penalty
from caveat.training.activations import activation
from caveat.training.objectives import Objective, SquaredError
from caveat.training.schedules import schedule


@dataclass(frozen=True)
class Architecture:
    """A multi-layer perceptron, with noise on the input of every weight layer.

    Parameters
    ----------
    n_inputs, n_outputs : int
    hidden : tuple of int
        Widths of the hidden layers; empty for a linear model.
    activation : str
        See ``caveat.training.activations``.
    """

    n_inputs: int
    hidden: tuple[int, ...]
    n_outputs: int
    activation: str = "relu"

    def __post_init__(self) -> None:
        for width in (self.n_inputs, *self.hidden, self.n_outputs):
            validation.positive_int("width", width)
        activation(self.activation)

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """(inputs, outputs) of each weight layer."""
        return list(pairwise((self.n_inputs, *self.hidden, self.n_outputs)))

    @property
    def fan_ins(self) -> list[int]:
        """Units on which the noise of each weight layer acts."""
        return [inputs for inputs, _ in self.shapes]

    @property
    def n_parameters(self) -> int:
        return sum((inputs + 1) * outputs for inputs, outputs in self.shapes)


@dataclass(frozen=True)
class Member:
    """One network of a fleet.

    Parameters
    ----------
    name : str
        By which it is reported.
    drop_rates : tuple of float
        Of the input of each weight layer, the first being that of the features.
    l2_penalties : tuple of float
        lambda of each weight layer, in (mean loss) + lambda |W|².
    bias_l2_penalty : float
        lambda of the biases.
    data : int
        Which of the fleet's data sets it learns from.
    learning_rate : float
        Peak of the schedule.
    epochs : int
    seed : int
        Of its first weights, its order of rows and its noise. Two members that differ
        in nothing else learn different networks.
    lengthscale, kl_share : float
        For noise whose KL is more than a decay: l of the prior, and the factor
        1/(tau N) on the KL beside the mean loss.
    """

    name: str
    drop_rates: tuple[float, ...]
    l2_penalties: tuple[float, ...]
    bias_l2_penalty: float = 0.0
    data: int = 0
    learning_rate: float = 1e-2
    epochs: int = 400
    seed: int = 0
    lengthscale: float = 1.0
    kl_share: float = 1.0

    @classmethod
    def from_prior(
        cls,
        name: str,
        drop_rates: Sequence[float],
        *,
        precision: float,
        lengthscale: float,
        n_train: int,
        data: int = 0,
        learning_rate: float = 1e-2,
        **rest: int,
    ) -> Self:
        """A member whose penalties are those of the prior N(0, 1/l²) (E13, E14).

        Parameters
        ----------
        name, drop_rates, data, learning_rate
            As for the class.
        precision : float
            tau in the units of the (standardised) targets; 1 for a log-likelihood.
        lengthscale : float
            l.
        n_train : int
            Rows of the data set.
        **rest : int
            ``epochs`` and ``seed``.

        Returns
        -------
        Member
        """
        penalties = tuple(
            l2_penalty(
                precision=precision,
                lengthscale=lengthscale,
                keep_prob=1.0 - validation.drop_rate(rate, where=name),
                n_train=n_train,
                loss=HALF_SQUARED_ERROR,
                inverted=True,
            )
            for rate in drop_rates
        )
        bias = bias_l2_penalty(
            precision=precision,
            lengthscale=lengthscale,
            n_train=n_train,
            loss=HALF_SQUARED_ERROR,
        )
        return cls(
            name,
            tuple(drop_rates),
            penalties,
            bias,
            data,
            learning_rate,
            lengthscale=lengthscale,
            kl_share=1.0 / (precision * n_train),
            **rest,
        )


@dataclass(frozen=True)
class Recipe:
    """What all networks of a fleet have in common.

    Parameters
    ----------
    architecture : Architecture
    objective : Objective
        The loss, by default half the squared error.
    batch_size : int
    keep_last : bool
        Whether an epoch ends with a smaller batch of the rows left over, or leaves
        them out (the next epoch has another order).
    schedule : str
        Of the learning rate; see ``caveat.training.schedules``.
    noise : str or Noise
        ``"bernoulli"``: units are dropped and the rest scaled by 1/keep_prob;
        ``"gaussian"``: multiplied by N(1, drop_rate/keep_prob), of the same variance.
        A family of ``caveat.noise`` acts before every weight layer whose drop rate is
        not 0; networks are then trained one by one.
    """

    architecture: Architecture
    objective: Objective = field(default_factory=SquaredError)
    batch_size: int = 32
    keep_last: bool = True
    schedule: str = "cosine"
    noise: str | Noise = "bernoulli"

    def __post_init__(self) -> None:
        validation.positive_int("batch_size", self.batch_size)
        schedule(self.schedule)
        if self.noise not in ("bernoulli", "gaussian") and not isinstance(
            self.noise, Noise
        ):
            raise ParameterError(
                "noise must be 'bernoulli', 'gaussian' or a family such as "
                f"caveat.noise.Concrete(). Got {self.noise!r}."
            )


@dataclass(frozen=True)
class Rows:
    """Training or validation rows as a network sees them: standardised, float32."""

    x: Tensor  # shape: (rows, inputs)
    y: Tensor  # shape: (rows, targets)

    def __post_init__(self) -> None:
        if self.x.ndim != 2 or self.y.ndim != 2 or len(self.x) != len(self.y):
            raise ShapeError(
                "x and y must have the shapes (rows, inputs) and (rows, targets). "
                f"Got {tuple(self.x.shape)} and {tuple(self.y.shape)}."
            )

    @classmethod
    def of(cls, x: ArrayLike, y: ArrayLike) -> Self:
        """From arrays; y may be one-dimensional.

        Parameters
        ----------
        x : array-like, shape (rows, inputs)
            Standardised.
        y : array-like, shape (rows,) or (rows, targets)
            Standardised, or class numbers.

        Returns
        -------
        Rows
        """
        targets = np.asarray(y, dtype=np.float32)
        if targets.ndim == 1:
            targets = targets[:, None]
        inputs = np.ascontiguousarray(x, dtype=np.float32)
        return cls(torch.from_numpy(inputs), torch.from_numpy(targets.copy()))

    def __len__(self) -> int:
        return len(self.x)


def network(
    recipe: Recipe, member: Member, layers: Sequence[tuple[Tensor, Tensor]]
) -> nn.Sequential:
    """An ordinary PyTorch network with the given weights and the member's noise.

    Parameters
    ----------
    recipe : Recipe
        Of the fleet.
    member : Member
        Whose drop rates it has.
    layers : sequence of (weight, bias)
        Weights as (inputs, outputs).

    Returns
    -------
    nn.Sequential
        In evaluation mode, holding copies.
    """
    modules: list[nn.Module] = []
    for place, (weight, bias) in enumerate(layers):
        if place:
            modules.append(activation(recipe.architecture.activation).module())
        if member.drop_rates[place]:
            modules.append(_noise_module(recipe.noise, member.drop_rates[place]))
        modules.append(linear_layer(weight, bias))
    return nn.Sequential(*modules).eval()


def linear_layer(weight: Tensor, bias: Tensor) -> nn.Linear:
    """A layer with copies of a weight (inputs, outputs) and a bias."""
    layer: nn.Linear = nn.utils.skip_init(nn.Linear, *weight.shape)
    with torch.no_grad():
        layer.weight.copy_(weight.T)
        layer.bias.copy_(bias.reshape(-1))
    return layer


def _noise_module(noise: str | Noise, drop_rate: float) -> nn.Module:
    if noise == "bernoulli":
        return nn.Dropout(drop_rate)
    return GaussianNoise(drop_rate / (1.0 - drop_rate))
