"""Members trained one at a time by the compiled kernel, some steps a call.

Order of rows, noise and rates are those of a cohort, so that both roads give the same
networks up to rounding. Before the kernel is used for a kind of network, a few steps of
it are compared with torch's.
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from caveat._progress import ProgressBar
from caveat._threads import Stopped, side_by_side
from caveat.errors import CaveatWarning
from caveat.training.building import NoLibraryError
from caveat.training.cohort import Cohort, rates_at, shared_out
from caveat.training.kernel import (
    ACTIVATION_NAMES,
    NOISE_NAMES,
    OBJECTIVE_KINDS,
    FloatArray,
    Kernel,
    KernelNetwork,
    Run,
    aligned,
    distrust,
    kernel,
    padded_rows,
    point_at,
)
from caveat.training.members import Architecture, Member, Rows
from caveat.training.objectives import Likelihood, SoftmaxCrossEntropy
from caveat.training.spec import NetworkSpec
from caveat.training.stack import Stack, corrections, layers, per_layer
from caveat.training.stacked import StackedNetworks
from caveat.training.stopping import Watch
from caveat.training.streams import (
    RowOrder,
    drop_levels,
    first_weights,
    gaussian_stds,
    training_noise,
)

_WORK = 2e8  # products of a call, so that it is over in some hundredths of a second
_MOST_STEPS = 512  # of a call
_MOST_NORMALS = 2**21  # numbers prepared for a call
_WIDEST = 2**18  # parameters up to which the kernel is faster than torch
_CHECKED = 3  # steps compared with torch
_CHECK_RATE = 1e-3
_TOLERANCE = 1e-2  # of how far the weights have moved


class PaddedRows(NamedTuple):
    """Rows in the layout of the kernel."""

    x: FloatArray
    y: FloatArray

    @classmethod
    def of(cls, rows: Rows, lanes: int) -> "PaddedRows":
        y = np.ascontiguousarray(rows.y.detach().numpy())
        return cls(padded_rows(rows.x.detach().numpy(), lanes), y)


def refusal(
    members: Sequence[Member], data: Sequence[Rows], watch: Watch | None
) -> str | None:
    """Why the kernel cannot train these members, if so; they have been checked."""
    try:
        own = kernel()
    except NoLibraryError as error:
        return str(error)
    spec = members[0].spec
    architecture = _architecture(spec, data)
    held = [] if watch is None else watch.rows
    if spec.noise not in NOISE_NAMES:
        return "it knows masks and Gaussian factors on units only"
    if type(spec.objective) not in OBJECTIVE_KINDS:
        return f"it does not know the objective {type(spec.objective).__name__}"
    if spec.activation not in ACTIVATION_NAMES:
        return f"it does not know the activation {spec.activation!r}"
    if len(architecture.shapes) > own.most_layers:
        return f"it has no room for more than {own.most_layers} weight layers"
    if architecture.n_parameters > _WIDEST:
        return "torch is faster for networks as wide as these"
    if not all(_is_plain(rows, spec.objective) for rows in (*data, *held)):
        return "rows must be float32 on the CPU, with class numbers in range"
    return _doubt(own, spec, data)


def train_compiled(
    members: Sequence[Member],
    data: Sequence[Rows],
    watch: Watch | None,
    n_threads: int,
    bar: ProgressBar,
) -> StackedNetworks:
    """Train members which :func:`refusal` does not refuse, side by side."""
    own = kernel()
    spec = members[0].spec
    architecture = _architecture(spec, data)
    rows = [PaddedRows.of(part, own.lanes) for part in data]
    held: dict[int, PaddedRows] = {}
    if watch is not None:
        held = {id(part): PaddedRows.of(part, own.lanes) for part in watch.rows}

    def trained(index: int, stopped: Stopped) -> tuple[FloatArray, int]:
        member = members[index]
        run = MemberRun(own, architecture, member, rows[member.data])
        if watch is not None:
            run.watch(held[id(watch.rows[index])], watch.every, watch.patience)
        while not run.is_over and not stopped():
            bar.advance(run.advance())
        return run.result()

    order = sorted(range(len(members)), key=lambda i: -members[i].n_steps(data))
    done = side_by_side(trained, order, n_threads)
    back = np.argsort(order)
    parameters = torch.from_numpy(np.stack([done[i][0] for i in back]))
    finite = parameters.isfinite().all(1).tolist()
    return StackedNetworks(
        tuple(members),
        tuple(m.name for m, good in zip(members, finite, strict=True) if not good),
        torch.tensor([done[i][1] for i in back]),
        architecture,
        parameters,
    )


class MemberRun:
    """The training of one member.

    Parameters
    ----------
    own : Kernel
    architecture : Architecture
    member : Member
    rows : PaddedRows
        That it learns from.
    """

    def __init__(
        self, own: Kernel, architecture: Architecture, member: Member, rows: PaddedRows
    ) -> None:
        spec, schedule = member.spec, member.spec.schedule
        self._network: KernelNetwork = own.network(
            architecture,
            schedule.batch_size,
            rows.y.shape[1],
            OBJECTIVE_KINDS.index(type(spec.objective)),
        )
        self._schedule = schedule
        self.total = schedule.n_steps(len(rows.x))
        self.is_over = False
        self._order = RowOrder(len(rows.x), schedule, member.seed)
        self._rng = training_noise([member])[0]
        self._units = schedule.batch_size * sum(architecture.fan_ins)
        products = 6 * schedule.batch_size * architecture.n_parameters
        self._at_once = int(np.clip(_WORK // products, 1, _MOST_STEPS))
        self._run = Run(least=np.inf, total=self.total)
        self._own = self._memory(architecture, member)
        self._keep(("weights", "mean", "square", "best", "decay", "work"), self._own)
        self._rows = rows
        self._keep(("x", "y"), rows)
        self._set_noise(member)

    def _memory(self, architecture: Architecture, member: Member) -> list[FloatArray]:
        """Weights, both moments, the best weights, decay, work space."""
        network = self._network
        first = first_weights(architecture, member.seed)
        penalties = 2 * torch.tensor([member.l2_penalties])
        biases = 2 * torch.tensor([member.bias_l2_penalty])
        decay = per_layer(penalties, biases, architecture)[0].numpy()
        moments = [aligned(network.n_packed) for _ in range(3)]
        work = aligned(network.n_work)
        return [network.packed(first), *moments, network.packed(decay), work]

    def _keep(self, names: Sequence[str], arrays: Sequence[NDArray[np.generic]]) -> None:
        point_at(self._run, names, arrays)

    def _set_noise(self, member: Member) -> None:
        name = str(member.spec.noise) if any(member.drop_rates) else "quiet"
        self._run.noise = NOISE_NAMES.index(name)
        self._normals = name == "gaussian"
        if name == "bernoulli":
            thresholds, scales = drop_levels([member.drop_rates])
            state = self._rng.bit_generator.state["state"]["state"]
            self._masks = (thresholds[0].astype(np.int32), scales[0], state.copy())
            self._keep(("thresholds", "scales", "state"), self._masks)
        elif self._normals:
            self._stds = gaussian_stds([member.drop_rates])[0]
            self._keep(("scales",), (self._stds,))
            self._at_once = min(self._at_once, max(1, _MOST_NORMALS // self._units))

    def watch(self, rows: PaddedRows, every: int, patience: int) -> None:
        """Look at rows held out, and keep the weights that were best there."""
        self._held = rows
        self._keep(("held_x", "held_y"), rows)
        self._run.n_held = len(rows.x)
        self._run.every, self._run.patience = every, patience

    @property
    def step(self) -> int:
        """Steps done."""
        return int(self._run.step)

    def advance(self, most: int = _MOST_STEPS) -> int:
        """Train for some steps; how many were taken off the list of those to do."""
        run, before = self._run, self.step
        size = min(self._at_once, most, self.total - before)
        steps = before + np.arange(size)
        places, share = shared_out(self._order.take(size))
        factor, epsilon = corrections((steps + 1).astype(np.float64))
        rates = rates_at(
            steps, self.total, self._schedule.learning_rate, self._schedule.decay
        )
        rates *= factor.astype(np.float32)
        arrays: list[NDArray[np.generic]]
        arrays = [places, share, rates, epsilon.astype(np.float32)]
        self._keep(("places", "share", "rates", "epsilons"), arrays)
        if self._normals:
            arrays.append(self._rng.standard_normal(size * self._units, np.float32))
            self._keep(("normals",), arrays[-1:])
        run.n_steps = size
        self._network.train(run)
        given_up = bool(run.every) and run.misses >= run.patience
        self.is_over = given_up or self.step == self.total
        return (self.total if self.is_over else self.step) - before

    def result(self) -> tuple[FloatArray, int]:
        """Flat parameters, and the steps after which they were reached."""
        run = self._run
        weights, _, _, best, *_ = self._own
        if run.every and run.looks:
            return self._network.flat(best), int(run.when)
        return self._network.flat(weights), self.total

    def state(self) -> tuple[FloatArray, FloatArray]:
        """Parameters and Adam's second moments, flat."""
        weights, _, square, *_ = self._own
        return self._network.flat(weights), self._network.flat(square)

    def loss(self, rows: PaddedRows) -> float:
        """Mean loss of rows without noise."""
        return self._network.loss(self._own[0], self._own[5], *rows)


# Comparing with torch

_TRUSTED: set[tuple[object, ...]] = set()
_DIFFERS = """the compiled kernel trains other networks than torch does: a few steps
lead apart by {gap:.2g} of their way. Fleets are trained by torch from now on, which is
slower. Please report it, with your compiler and processor."""


def _doubt(own: Kernel, spec: NetworkSpec, data: Sequence[Rows]) -> str | None:
    """Compare a few steps with torch's; a kernel that differs is used no more."""
    sizes = (data[0].x.shape[1], data[0].y.shape[1])
    key = (id(own), spec.shared, *sizes)
    if key in _TRUSTED:
        return None
    gap = disagreement(own, spec, *sizes)
    if gap <= _TOLERANCE:
        _TRUSTED.add(key)
        return None
    warnings.warn(_DIFFERS.format(gap=gap), CaveatWarning, stacklevel=4)
    reason = "its numbers differed from torch's"
    distrust(reason)
    return reason


@torch.no_grad()
def disagreement(own: Kernel, spec: NetworkSpec, n_inputs: int, n_targets: int) -> float:
    """How far a few steps of the kernel and of torch lead apart, as a share of the way.

    Weights whose gradient is rounding error go either way, by a whole step of Adam: each
    counts by the size of its gradients. The loss without noise is compared, too.

    Parameters
    ----------
    own : Kernel
    spec : NetworkSpec
        What is shared by a fleet counts; rows, rates and penalties are made up.
    n_inputs, n_targets : int
        Of a row.

    Returns
    -------
    float
    """
    member, rows = _example(spec, n_inputs, n_targets)
    cohort = Cohort([member], [rows])
    for _ in cohort.chunks(_CHECKED):
        if cohort.step == _CHECKED:
            break
    padded = PaddedRows.of(rows, own.lanes)
    run = MemberRun(own, cohort.stack.architecture, member, padded)
    while run.advance(_CHECKED) and run.step < _CHECKED:
        pass
    found, square = map(torch.from_numpy, run.state())
    expected = cohort.parameters()[0]
    weight = square.sqrt()
    way = weight.max() * _CHECK_RATE * _CHECKED
    gap = float((weight * (found - expected).abs()).max() / way)
    return max(gap, abs(run.loss(padded) / _loss(cohort.stack, expected, rows) - 1))


def _example(
    spec: NetworkSpec, n_inputs: int, n_targets: int
) -> tuple[Member, Rows]:
    """A network of the spec's kind with noise everywhere, and rows for it."""
    schedule = replace(
        spec.schedule,
        epochs=_CHECKED,
        learning_rate=_CHECK_RATE,
        early_stopping=None,
    )
    spec = replace(spec, drop_rate=0.3, input_drop_rate=0.2, schedule=schedule)
    rng = np.random.default_rng(0)
    size = schedule.batch_size + 1  # with keep_last, a batch that is nearly empty
    y = rng.normal(size=(size, n_targets))
    if isinstance(spec.objective, SoftmaxCrossEntropy):
        y = rng.integers(spec.objective.n_classes, size=(size, 1))
    penalties = tuple(1e-3 * (1 + place) for place in range(len(spec.drop_rates)))
    member = Member("example", spec, penalties, 2e-3, seed=1)
    return member, Rows.of(rng.normal(size=(size, n_inputs)), y)


def _loss(stack: Stack, flat: Tensor, rows: Rows) -> float:
    outputs = stack.outputs(layers(flat[None], stack.architecture), rows.x[None])
    return float(stack.objective.loss(outputs, rows.y[None]).mean())


def _is_plain(rows: Rows, objective: Likelihood) -> bool:
    """Whether rows are as the kernel takes them."""
    tensors = (rows.x, rows.y)
    if any(t.dtype != torch.float32 or t.device.type != "cpu" for t in tensors):
        return False
    if not isinstance(objective, SoftmaxCrossEntropy):
        return True
    classes = rows.y.trunc()
    return bool(((classes >= 0) & (classes < objective.n_classes)).all())


def _architecture(spec: NetworkSpec, data: Sequence[Rows]) -> Architecture:
    return Architecture.of(spec, data[0].x.shape[1], data[0].y.shape[1])
