"""Rows absorbed by a compiled loop (``rows.c``) where there is one, else by numpy.

A step is some eighty small operations, so in numpy most of its time is Python's. Both
roads have the same formulas and give the same networks up to rounding.
"""

import ctypes
import os
import threading
import warnings
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from caveat._progress import ProgressBar
from caveat.errors import CaveatWarning
from caveat.training.building import NoLibraryError, library
from caveat.training.kernel import OFF, SWITCH, address
from caveat.training.pbp.absorbing import absorbed
from caveat.training.pbp.gamma import Gamma
from caveat.training.pbp.layers import Weights
from caveat.training.pbp.networks import PBPNetworks, initial

Array = NDArray[np.float64]

SOURCE = Path(__file__).with_name("rows.c")
MOST_LAYERS = 32  # as in rows.c

_AT_ONCE = 2**14  # rows of a call, some hundredths of a second: then Ctrl-C is heard
_APART = 1e-8  # relative difference of the two roads after a few rows

_LOCK = threading.Lock()
_FOUND: list[ctypes.CDLL | None] = []  # what the first look for it found


def all_absorbed(
    networks: PBPNetworks, x: Array, y: Array, bar: ProgressBar
) -> PBPNetworks:
    """The networks after many rows each, one after the other.

    Parameters
    ----------
    networks : PBPNetworks
        Before.
    x : array, shape (rows, networks, inputs + 1)
        Rows in their order, ending with a 1 for the bias.
    y : array, shape (rows, networks)
        Their targets.
    bar : ProgressBar
        Told of every row of every network.

    Returns
    -------
    PBPNetworks
        New arrays.
    """
    functions = _functions() if len(networks.layers) <= MOST_LAYERS else None
    if functions is None:
        return by_numpy(networks, x, y, bar)
    return by_kernel(functions, networks, x, y, bar)


def by_numpy(
    networks: PBPNetworks, x: Array, y: Array, bar: ProgressBar
) -> PBPNetworks:
    """As :func:`all_absorbed`, for all networks of a row at once."""
    with np.errstate(all="ignore"):  # what is not finite is looked for
        for row, target in zip(x, y, strict=True):
            networks = absorbed(networks, row, target)
            bar.advance(len(networks))
    return networks


def by_kernel(
    functions: ctypes.CDLL, networks: PBPNetworks, x: Array, y: Array, bar: ProgressBar
) -> PBPNetworks:
    """As :func:`all_absorbed`, one network after the other in C."""
    widths = [w.mean.shape[2] - 1 for w in networks.layers] + [1]
    sizes = np.array(widths, dtype=np.int64)
    mean = _packed([w.mean for w in networks.layers])
    variance = _packed([w.variance for w in networks.layers])
    gamma = np.stack(networks.noise, 1)
    shape = ctypes.c_int64(len(networks.layers)), address(sizes)
    work = np.zeros(functions.pbp_work_size(*shape))
    for number in range(len(networks)):
        own_x = np.ascontiguousarray(x[:, number])
        own_y = np.ascontiguousarray(y[:, number])
        state = [address(a[number]) for a in (mean, variance, gamma)]
        for start in range(0, len(x), _AT_ONCE):
            part_x, part_y = (a[start : start + _AT_ONCE] for a in (own_x, own_y))
            count = ctypes.c_int64(len(part_x))
            functions.pbp_absorb(
                *shape, *state, address(part_x), address(part_y), count, address(work)
            )
            bar.advance(len(part_x))
    layers = tuple(
        Weights(m, v)
        for m, v in zip(
            _unpacked(mean, widths), _unpacked(variance, widths), strict=True
        )
    )
    return replace(networks, layers=layers, noise=Gamma(*gamma.T.copy()))


def _packed(layers: list[Array]) -> Array:
    """(networks, weights), each layer by inputs and then outputs."""
    return np.concatenate([a.swapaxes(1, 2).reshape(len(a), -1) for a in layers], 1)


def _unpacked(flat: Array, widths: list[int]) -> list[Array]:
    found, start = [], 0
    for n_in, n_out in pairwise(widths):
        end = start + (n_in + 1) * n_out
        own = flat[:, start:end].reshape(len(flat), n_in + 1, n_out)
        found.append(np.ascontiguousarray(own.swapaxes(1, 2)))
        start = end
    return found


def _functions() -> ctypes.CDLL | None:
    """The compiled loop, if there is one that agrees with numpy."""
    if os.environ.get(SWITCH, "").strip().lower() in OFF:
        return None
    with _LOCK:
        if not _FOUND:
            _FOUND.append(_loaded())
        return _FOUND[0]


def _loaded() -> ctypes.CDLL | None:
    try:
        functions = library(SOURCE)
        functions.pbp_work_size.restype = ctypes.c_int64
        functions.pbp_absorb.restype = None
    except (NoLibraryError, AttributeError, OSError):
        return None
    if not agrees(functions):
        warnings.warn(
            "The compiled loop of probabilistic backpropagation does not agree with "
            "numpy on this machine, so numpy is used, which is slower. Please report "
            "this with your processor and compiler.",
            CaveatWarning,
            stacklevel=2,
        )
        return None
    return functions


def agrees(functions: ctypes.CDLL) -> bool:
    """Whether both roads lead to the same networks, on a few rows of an example."""
    generator = np.random.default_rng(0)
    networks = initial(3, (7, 5), [np.random.default_rng(k) for k in range(2)])
    x, y = generator.normal(size=(6, 2, 4)), generator.normal(size=(6, 2))
    x[..., -1] = 1.0
    quiet = ProgressBar("", None, False)
    ours = by_kernel(functions, networks, x, y, quiet)
    theirs = by_numpy(networks, x, y, quiet)
    pairs = list(zip(_arrays(ours), _arrays(theirs), strict=True))
    return all(np.allclose(a, b, rtol=_APART, atol=_APART) for a, b in pairs)


def _arrays(networks: PBPNetworks) -> list[Array]:
    weights = [a for w in networks.layers for a in (w.mean, w.variance)]
    return [*weights, *networks.noise]
