"""The networks of a fleet after training: the one door to their draws."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

import torch
from torch import Tensor, nn

from caveat import _validation as validation
from caveat.errors import InputTypeError, ShapeError
from caveat.predictive.strata import Stratification
from caveat.training.members import Member
from caveat.training.spec import NetworkSpec
from caveat.training.streams import mask_seed


@dataclass(frozen=True, eq=False)
class Trained(ABC):
    """The networks of a fleet after training.

    The noise of a draw has an address (seed, site, draw), as everywhere in Caveat:
    the draws of network i are those of
    ``caveat.MCDropout(trained.network(i), seed=trained.mask_seed(i, seed))``.

    Attributes
    ----------
    members : tuple of Member
    diverged : tuple of str
        Names of the members whose weights are not finite.
    stopped : Tensor, shape (members,)
        Steps after which each was stopped early; its full number otherwise.
    losses : Tensor, shape (members, looks), or None
        Mean loss of up to 500 of the training rows with the noise off, after equal
        parts of the steps; NaN after an early end. None if it was not looked at.
    """

    members: tuple[Member, ...]
    diverged: tuple[str, ...]
    stopped: Tensor
    losses: Tensor | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        return len(self.members)

    @property
    def spec(self) -> NetworkSpec:
        """That of the first network; the others differ in what is not shared."""
        return self.members[0].spec

    @property
    def has_noise(self) -> bool:
        """Whether draws of any network differ."""
        return any(any(member.drop_rates) for member in self.members)

    @property
    def design(self) -> Stratification | None:
        """How the draws of one network are stratified, for their Monte Carlo errors.

        None for several networks, which take turns, and for other noise than masks and
        Gaussian factors on units: those count as independent, so their errors are
        larger than need be.
        """
        spec = self.spec
        if len(self) > 1 or not self.has_noise or not isinstance(spec.noise, str):
            return None
        rates = [rate for rate in self.members[0].drop_rates if rate]
        is_mask = spec.noise == "bernoulli"
        return Stratification(tuple(rate if is_mask else 0.5 for rate in rates))

    @staticmethod
    def mask_seed(index: int, seed: int = 0) -> int:
        """The seed of the masks of one network: by its place, so all differ."""
        return mask_seed(seed, index)

    @abstractmethod
    def __getitem__(self, chosen: Sequence[int]) -> Self:
        """Some of the networks, as a fleet of their own."""

    @abstractmethod
    def network(self, index: int) -> nn.Sequential:
        """One member as an ordinary PyTorch network, in evaluation mode.

        Parameters
        ----------
        index : int
            Its place in ``members``.

        Returns
        -------
        nn.Sequential
        """

    def draws(self, x: Tensor, *, n_draws: int, seed: int = 0) -> Tensor:
        """Draws of every member, each with one set of masks shared by all rows.

        Parameters
        ----------
        x : Tensor, shape (members, rows, inputs) or (rows, inputs)
            Standardised as the training rows were. The draws are computed in its
            dtype.
        n_draws : int
            At least 1.
        seed : int
            The masks depend on it and on the place of the network only.

        Returns
        -------
        Tensor, shape (draws, members, rows, outputs)
        """
        return torch.cat(list(self.blocks(x, n_draws=n_draws, seed=seed)))

    def blocks(self, x: Tensor, *, n_draws: int, seed: int = 0) -> Iterator[Tensor]:
        """The draws of :meth:`draws`, some at a time, for sums over many of them.

        Parameters
        ----------
        x, n_draws, seed
            As for :meth:`draws`.

        Yields
        ------
        Tensor, shape (some draws, members, rows, outputs)
        """
        number = validation.positive_int("n_draws", n_draws)
        yield from self._blocks(self._inputs(x), number, seed)

    def mean_outputs(self, x: Tensor) -> Tensor:
        """Outputs with the noise switched off (standard dropout).

        Parameters
        ----------
        x : Tensor
            As for :meth:`draws`.

        Returns
        -------
        Tensor, shape (members, rows, outputs)
        """
        return self._mean_outputs(self._inputs(x))

    @property
    @abstractmethod
    def n_inputs(self) -> int:
        """Columns of x."""

    @abstractmethod
    def _blocks(self, x: Tensor, n_draws: int, seed: int) -> Iterator[Tensor]: ...

    @abstractmethod
    def _mean_outputs(self, x: Tensor) -> Tensor: ...

    def _inputs(self, x: Tensor) -> Tensor:
        """Checked, and with an axis of members."""
        count = len(self.members)
        if not x.is_floating_point():
            raise InputTypeError(
                f"x must be a floating-point tensor, as networks are run in its "
                f"dtype. Got {x.dtype}; convert it by x.float()."
            )
        if x.ndim == 2:
            x = x.expand(count, *x.shape)
        if x.ndim != 3 or len(x) != count or x.shape[2] != self.n_inputs:
            raise ShapeError(
                f"x must have the shape ({count} members, rows, {self.n_inputs} "
                f"inputs) or (rows, {self.n_inputs}). Got {tuple(x.shape)}."
            )
        return x
