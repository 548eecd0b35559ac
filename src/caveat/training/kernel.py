"""The compiled kernel as Python sees it, and whether there is one.

``kernel.c`` trains one perceptron with noise on its units. It is compiled on first use
(``building.py``); without it fleets are trained by torch, with the same numbers up to
rounding.
"""

import ctypes
import os
import threading
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from caveat.training.activations import LEAK
from caveat.training.building import NoLibraryError, library
from caveat.training.members import Architecture
from caveat.training.objectives import (
    LOG_PRECISION_LIMIT,
    GaussianWithPrecision,
    SoftmaxCrossEntropy,
    SquaredError,
)

SOURCE = Path(__file__).with_name("kernel.c")
SWITCH = "CAVEAT_KERNEL"  # the environment variable that says "off"

# By their numbers in kernel.c.
ACTIVATION_NAMES = (
    *("relu", "tanh", "cos", "sin", "leaky_relu", "elu"),
    *("sigmoid", "softplus", "silu", "gelu", "identity"),
)
OBJECTIVE_KINDS: tuple[type, ...] = (
    SquaredError,
    GaussianWithPrecision,
    SoftmaxCrossEntropy,
)
NOISE_NAMES = ("quiet", "bernoulli", "gaussian")

_VERSION = 2
OFF = ("0", "off", "false", "no")
_ALIGNED = 64  # bytes

FloatArray = NDArray[np.float32]


class KernelStatus(NamedTuple):
    """How fleets are trained in this process.

    Attributes
    ----------
    is_compiled : bool
        Whether the compiled kernel is there.
    reason : str
        If not, why.
    """

    is_compiled: bool
    reason: str = ""


class _Network(ctypes.Structure):
    _fields_ = (
        ("n_layers", ctypes.c_int64),
        ("widths", ctypes.c_void_p),
        ("batch", ctypes.c_int64),
        ("n_targets", ctypes.c_int64),
        ("activation", ctypes.c_int64),
        ("objective", ctypes.c_int64),
        ("leak", ctypes.c_float),
        ("log_precision_limit", ctypes.c_float),
        ("beta", ctypes.c_float),
    )


class KernelRun(ctypes.Structure):
    """What ``caveat_train`` is told, field by field as in ``kernel.c``."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("weights", "mean", "square", "best")),
        *((name, ctypes.c_void_p) for name in ("decay", "work", "x", "y", "places")),
        *((name, ctypes.c_void_p) for name in ("share", "rates", "epsilons")),
        ("noise", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("state", "normals", "thresholds")),
        ("scales", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("n_steps", "step", "total")),
        *((name, ctypes.c_int64) for name in ("every", "patience")),
        *((name, ctypes.c_void_p) for name in ("held_x", "held_y")),
        ("n_held", ctypes.c_int64),
        ("least", ctypes.c_double),
        *((name, ctypes.c_int64) for name in ("looks", "misses", "when")),
    )


class Kernel:
    """The functions of the compiled library.

    Parameters
    ----------
    functions : ctypes.CDLL
        The library.
    """

    def __init__(self, functions: ctypes.CDLL) -> None:
        self._functions = functions
        for name in ("caveat_version", "caveat_lanes", "caveat_most_layers"):
            getattr(functions, name).restype = ctypes.c_int64
        functions.caveat_train.restype = ctypes.c_int64
        functions.caveat_loss.restype = ctypes.c_double
        if functions.caveat_version() != _VERSION:
            raise NoLibraryError("the library is of another version")
        self.lanes = int(functions.caveat_lanes())
        self.most_layers = int(functions.caveat_most_layers())

    def network(
        self,
        architecture: Architecture,
        batch_size: int,
        n_targets: int,
        objective: int,
        beta: float = 0.0,
    ) -> "KernelNetwork":
        """A geometry; parameters are those of :class:`KernelNetwork`."""
        shape = architecture, batch_size, n_targets
        return KernelNetwork(self._functions, *shape, objective, beta)

    def activate(self, name: str, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Values and slopes of a non-linearity."""
        slopes, values = z.copy(), np.empty_like(z)
        self._functions.caveat_activate(
            ctypes.c_int64(ACTIVATION_NAMES.index(name)),
            ctypes.c_float(LEAK),
            ctypes.c_int64(z.size),
            address(slopes),
            address(values),
        )
        return values, slopes


class KernelNetwork:
    """A geometry, as the kernel is told of it.

    Parameters
    ----------
    functions : ctypes.CDLL
    architecture : Architecture
    batch_size, n_targets : int
        Rows of a step, and targets of a row.
    objective : int
        Its place in ``OBJECTIVE_KINDS``.
    beta : float
        Of a noise head.

    Attributes
    ----------
    n_packed, n_work : int
        Numbers of a set of packed parameters, and of the work space.
    """

    def __init__(
        self,
        functions: ctypes.CDLL,
        architecture: Architecture,
        batch_size: int,
        n_targets: int,
        objective: int,
        beta: float = 0.0,
    ) -> None:
        widths = (architecture.n_inputs, *architecture.hidden, architecture.n_outputs)
        self._functions = functions
        self._widths = np.array(widths, dtype=np.int64)
        self._n_parameters = architecture.n_parameters
        self._struct = _Network(
            len(widths) - 1,
            address(self._widths),
            batch_size,
            n_targets,
            ACTIVATION_NAMES.index(architecture.activation),
            objective,
            LEAK,
            LOG_PRECISION_LIMIT,
            beta,
        )
        packed, work = ctypes.c_int64(), ctypes.c_int64()
        functions.caveat_sizes(self._address, ctypes.byref(packed), ctypes.byref(work))
        self.n_packed, self.n_work = packed.value, work.value

    @property
    def _address(self) -> Any:
        return ctypes.byref(self._struct)

    def packed(self, flat: FloatArray) -> FloatArray:
        """Parameters in the layout of the kernel."""
        into = aligned(self.n_packed)
        self.pack(flat, into)
        return into

    def pack(self, flat: FloatArray, into: FloatArray) -> None:
        """The same, written into memory that is there."""
        own = np.ascontiguousarray(flat, dtype=np.float32)
        self._functions.caveat_pack(
            self._address, address(own), address(into), ctypes.c_int64(0)
        )

    def flat(self, packed: FloatArray) -> FloatArray:
        """Parameters one after the other: W1, b1, W2, b2, …"""
        into = np.empty(self._n_parameters, dtype=np.float32)
        self._functions.caveat_pack(
            self._address, address(into), address(packed), ctypes.c_int64(1)
        )
        return into

    def train(self, run: KernelRun) -> int:
        """Some steps; how many were done. Other threads go on meanwhile."""
        return int(self._functions.caveat_train(self._address, ctypes.byref(run)))

    def loss(
        self, packed: FloatArray, work: FloatArray, x: FloatArray, y: FloatArray
    ) -> float:
        """Mean loss of padded rows without noise."""
        arrays = (address(a) for a in (packed, work, x, y))
        return float(
            self._functions.caveat_loss(self._address, *arrays, ctypes.c_int64(len(x)))
        )


_LOCK = threading.Lock()
_FOUND: list[Kernel | str] = []  # the one of this process, or why there is none


def kernel() -> Kernel:
    """The compiled kernel, built if need be.

    Raises
    ------
    NoLibraryError
        If it is switched off, or cannot be had.
    """
    if os.environ.get(SWITCH, "").strip().lower() in OFF:
        raise NoLibraryError(f"it is switched off by {SWITCH}")
    with _LOCK:
        if not _FOUND:
            _FOUND.append(_loaded())
    found = _FOUND[0]
    if isinstance(found, str):
        raise NoLibraryError(found)
    return found


def _loaded() -> Kernel | str:
    try:
        return Kernel(library(SOURCE))
    except (NoLibraryError, AttributeError, OSError, ValueError) as error:
        return str(error)  # whatever it is, torch trains


def distrust(reason: str) -> None:
    """Do without the kernel from now on, in this process."""
    with _LOCK:
        _FOUND[:] = [reason]


def kernel_status() -> KernelStatus:
    """Whether fleets are trained by the compiled kernel, and if not, why.

    The kernel is compiled by the system's C compiler when it is first needed, which
    takes a second or two, and kept in the user's cache. ``CAVEAT_KERNEL=off`` switches
    it off. What it does not cover is trained by torch all the same: very wide networks,
    objectives of one's own, other noise than on units.

    Returns
    -------
    KernelStatus
    """
    try:
        kernel()
    except NoLibraryError as error:
        return KernelStatus(False, str(error))
    return KernelStatus(True)


def aligned(count: int) -> FloatArray:
    """Zeros that start at a line of the cache."""
    size = np.dtype(np.float32).itemsize
    room = np.zeros(count + _ALIGNED // size, dtype=np.float32)
    start = -room.__array_interface__["data"][0] % _ALIGNED // size
    return room[start : start + count]


def padded_rows(x: FloatArray, lanes: int) -> FloatArray:
    """Rows with zeros up to a multiple of ``lanes`` columns; x itself if it is so."""
    n_rows, width = x.shape
    room = -(-width // lanes) * lanes
    if room == width and x.flags.c_contiguous:
        return x
    into = aligned(n_rows * room).reshape(n_rows, room)
    into[:, :width] = x
    return into


def address(array: NDArray[Any]) -> ctypes.c_void_p:
    """Where the numbers of an array lie, for as long as it lives."""
    assert array.flags.c_contiguous
    return ctypes.c_void_p(array.__array_interface__["data"][0])
