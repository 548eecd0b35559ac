"""Generators as arrays, so that a run can be stored without pickle and continued."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def states_of(generators: Sequence[np.random.Generator]) -> NDArray[np.str_]:
    """The states of PCG64 generators as JSON, one string each."""
    return np.array([json.dumps(g.bit_generator.state) for g in generators])


def restore(generators: Sequence[np.random.Generator], states: NDArray[Any]) -> None:
    """Set generators to states that :func:`states_of` gave."""
    for generator, state in zip(generators, states.tolist(), strict=True):
        generator.bit_generator.state = json.loads(state)
