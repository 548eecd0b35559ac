"""The factors of stacked networks for a range of draws, remembered for the next call.

A fitted estimator asks for the same ω at every prediction.
"""

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple, final

import torch
from torch import Tensor

from caveat.sampling.factors import unit_factors
from caveat.training.members import Architecture, Member
from caveat.training.networks import noise_sites
from caveat.training.stack import Factors

_KEPT = 2**25  # bytes of factors that are remembered


class Address(NamedTuple):
    """Which factors are meant."""

    seed: int
    draws: range
    dtype: torch.dtype


def factors_of(
    members: Sequence[Member],
    seeds: Sequence[int],
    architecture: Architecture,
    draws: range,
    dtype: torch.dtype,
) -> Factors:
    """Per weight layer, factors (members, draws, units); None where all are 1.

    Parameters
    ----------
    members : sequence of Member
        With noise on units.
    seeds : sequence of int
        Of the masks of each.
    architecture : Architecture
        Of all.
    draws : range
        Numbers of the draws.
    dtype : torch.dtype
        Of the factors.

    Returns
    -------
    list of Tensor or None
    """
    sites = [noise_sites(member.spec) for member in members]
    found: list[Tensor | None] = []
    for layer, units in enumerate(architecture.fan_ins):
        if not any(own[layer] for own in sites):
            found.append(None)
            continue
        factors = torch.ones(len(members), len(draws), units, dtype=dtype)
        for own, seed, into in zip(sites, seeds, factors, strict=True):
            site = own[layer]
            if site is not None:
                into.copy_(
                    unit_factors(
                        site.module,
                        site.path,
                        units,
                        seed=seed,
                        draws=draws,
                        dtype=dtype,
                    )
                )
        found.append(factors)
    return found


@final
class FactorMemory:
    """The factors of the last seed, up to a number of bytes; safe in threads.

    A copy, also a pickled one, remembers nothing.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[Address, Factors] = {}
        self._size = 0

    def get(self, address: Address) -> Factors | None:
        """The factors, if they are remembered."""
        with self._lock:
            return self._kept.get(address)

    def put(self, address: Address, factors: Factors) -> None:
        """Remember factors, if there is room; those of another seed are forgotten."""
        size = sum(f.nbytes for f in factors if f is not None)
        with self._lock:
            if any(_differ(known, address) for known in self._kept):
                self._kept, self._size = {}, 0
            if address not in self._kept and self._size + size <= _KEPT:
                self._kept[address] = factors
                self._size += size

    def __reduce__(self) -> tuple[Any, ...]:
        return FactorMemory, ()


def _differ(left: Address, right: Address) -> bool:
    return (left.seed, left.dtype) != (right.seed, right.dtype)
