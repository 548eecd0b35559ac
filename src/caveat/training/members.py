"""What a fleet is told: its networks, each by its spec and its own part, and rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from caveat import _validation as validation
from caveat.errors import ShapeError
from caveat.theory import HALF_SQUARED_ERROR, bias_l2_penalty, l2_penalty
from caveat.training.activations import activation
from caveat.training.spec import NetworkSpec


@dataclass(frozen=True)
class Architecture:
    """The geometry of a multi-layer perceptron.

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

    @classmethod
    def of(cls, spec: NetworkSpec, n_inputs: int, n_targets: int) -> Self:
        """That of the networks of a spec, for rows of so many inputs and targets."""
        n_outputs = spec.objective.n_outputs(n_targets)
        return cls(n_inputs, spec.hidden, n_outputs, spec.activation)

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
    spec : NetworkSpec
        Its rates, learning rate and epochs are the member's own; what is in
        ``spec.shared`` must be the same for all networks of a fleet.
    l2_penalties : tuple of float
        lambda of each weight layer, in (mean loss) + lambda |W|².
    bias_l2_penalty : float
        lambda of the biases.
    data : int
        Which of the fleet's data sets it learns from.
    seed : int
        Of its first weights, its order of rows and its noise. Two members that differ
        in nothing else learn different networks.
    kl_share : float
        For noise whose KL is more than a decay: the factor 1/(tau N) on the KL beside
        the mean loss.
    """

    name: str
    spec: NetworkSpec
    l2_penalties: tuple[float, ...]
    bias_l2_penalty: float = 0.0
    data: int = 0
    seed: int = 0
    kl_share: float = 1.0

    @classmethod
    def of(
        cls,
        spec: NetworkSpec,
        name: str,
        *,
        precision: float,
        n_train: int,
        data: int = 0,
        seed: int = 0,
    ) -> Self:
        """A member whose penalties are those of the spec's prior N(0, 1/l²) (E13, E14).

        Parameters
        ----------
        spec : NetworkSpec
            Its length-scale counts, its precision does not: rows are standardised.
        name, data, seed
            As for the class.
        precision : float
            tau in the units of the (standardised) targets; 1 for a log-likelihood.
        n_train : int
            Rows of the data set.

        Returns
        -------
        Member
        """
        length = spec.lengthscale
        penalties = tuple(
            l2_penalty(
                precision=precision,
                lengthscale=length,
                keep_prob=1.0 - rate,
                n_train=n_train,
                loss=HALF_SQUARED_ERROR,
                inverted=True,
            )
            for rate in spec.drop_rates
        )
        bias = bias_l2_penalty(
            precision=precision,
            lengthscale=length,
            n_train=n_train,
            loss=HALF_SQUARED_ERROR,
        )
        share = 1.0 / (precision * n_train)
        return cls(name, spec, penalties, bias, data, seed, share)

    @property
    def drop_rates(self) -> tuple[float, ...]:
        """Of the input of each weight layer."""
        return self.spec.drop_rates

    def n_steps(self, data: Sequence["Rows"]) -> int:
        """For how many steps it is trained."""
        return self.spec.schedule.n_steps(len(data[self.data]))


@dataclass(frozen=True)
class Rows:
    """Training or validation rows as a network sees them: standardised, float32.

    Attributes
    ----------
    x : Tensor, shape (rows, inputs)
    y : Tensor, shape (rows, targets)
        Class numbers, for a classification.
    """

    x: Tensor
    y: Tensor

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
