"""Members trained one at a time by the compiled kernel, some steps a call.

Order of rows, noise and rates are those of a cohort, so that both roads give the same
networks up to rounding. Before the kernel is used for a kind of network, a few steps of
it are compared with torch's.
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

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
    KernelRun,
    address,
    aligned,
    distrust,
    kernel,
    padded_rows,
)
from caveat.training.looks import Looks, looked_at
from caveat.training.members import Architecture, Member, Rows
from caveat.training.objectives import Likelihood, SoftmaxCrossEntropy
from caveat.training.schedules import Schedule
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

Array = NDArray[np.float64]

_WORK = 2e8  # products of a call, so that it is over in some hundredths of a second
_MOST_STEPS = 512  # of a call
_MOST_NORMALS = 2**21  # numbers prepared for a call
_LARGEST = 2**20  # parameters up to which the kernel is known to be faster than torch
_MOST_WORK = 2**29  # parameters x rows of a step, so that Ctrl-C is soon heard
_CHECKED = 3  # steps compared with torch
_EXAMPLES = 3  # of which one must agree
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
    n_parameters, batch_size = architecture.n_parameters, spec.schedule.batch_size
    if n_parameters > _LARGEST or n_parameters * batch_size > _MOST_WORK:
        return "it is meant for smaller networks and batches"
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
    common = Common(own, spec, architecture, data[0].y.shape[1])
    rows = [PaddedRows.of(part, own.lanes) for part in data]
    held: dict[int, PaddedRows] = {}
    if watch is not None:
        held = {id(part): PaddedRows.of(part, own.lanes) for part in watch.rows}

    seen = [PaddedRows.of(looked_at(part), own.lanes) for part in data]

    def trained(index: int, stopped: Stopped) -> tuple[FloatArray, int, Array]:
        member = members[index]
        run = MemberRun(common, member, rows[member.data], seen[member.data])
        if watch is not None:
            run.watch(held[id(watch.rows[index])], watch.every, watch.patience)
        while not run.is_over and not stopped():
            bar.advance(run.advance())
        return *run.result(), run.looks.losses()

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
        losses=torch.from_numpy(np.stack([done[i][2] for i in back])),
    )


class Common:
    """What members of a fleet have in common, made once: a member may be a matter of
    half a millisecond.

    Parameters
    ----------
    own : Kernel
    spec : NetworkSpec
        Of any of them.
    architecture : Architecture
    n_targets : int
        Of a row.
    """

    def __init__(
        self, own: Kernel, spec: NetworkSpec, architecture: Architecture, n_targets: int
    ) -> None:
        schedule = spec.schedule
        self.architecture = architecture
        self.network: KernelNetwork = own.network(
            architecture,
            schedule.batch_size,
            n_targets,
            OBJECTIVE_KINDS.index(type(spec.objective)),
            beta=getattr(spec.objective, "beta", 0.0),
        )
        self.n_units = schedule.batch_size * sum(architecture.fan_ins)
        products = 6 * schedule.batch_size * architecture.n_parameters
        self.at_once = int(np.clip(_WORK // products, 1, _MOST_STEPS))
        if spec.noise == "gaussian":
            self.at_once = min(self.at_once, max(1, _MOST_NORMALS // self.n_units))
        self._kept: dict[tuple[object, ...], tuple[NDArray[Any], ...]] = {}

    def decay(self, member: Member) -> FloatArray:
        """Twice the L2 penalty of each parameter, packed."""
        key = ("decay", member.l2_penalties, member.bias_l2_penalty)
        if key not in self._kept:
            weights = 2 * torch.tensor([member.l2_penalties])
            biases = 2 * torch.tensor([member.bias_l2_penalty])
            flat = per_layer(weights, biases, self.architecture)[0].numpy()
            self._kept[key] = (self.network.packed(flat),)
        return self._kept[key][0]

    def masks(self, rates: tuple[float, ...]) -> tuple[NDArray[Any], ...]:
        """Thresholds of random bits and scales of units, per layer."""
        if ("masks", rates) not in self._kept:
            thresholds, scales = drop_levels([rates])
            own = (thresholds[0].astype(np.int32), scales[0])
            self._kept["masks", rates] = own
        return self._kept["masks", rates]

    def rates(self, schedule: Schedule, total: int, start: int) -> tuple[Any, ...]:
        """Learning rates and epsilons of the steps of a call, as Adam uses them."""
        key = ("rates", schedule.learning_rate, schedule.decay, total, start)
        if key not in self._kept:
            steps = np.arange(start, min(start + self.at_once, total))
            factor, epsilon = corrections((steps + 1).astype(np.float64))
            rates = rates_at(steps, total, schedule.learning_rate, schedule.decay)
            rates *= factor.astype(np.float32)
            self._kept[key] = (rates, epsilon.astype(np.float32))
        return self._kept[key]


class MemberRun:
    """The training of one member.

    Parameters
    ----------
    common : Common
        What it shares with others.
    member : Member
    rows : PaddedRows
        That it learns from.
    seen : PaddedRows
        Some of them, on which its loss is looked at.
    """

    def __init__(
        self, common: Common, member: Member, rows: PaddedRows, seen: PaddedRows
    ) -> None:
        self._common, self._network = common, common.network
        self._schedule = member.spec.schedule
        self.total = self._schedule.n_steps(len(rows.x))
        self.is_over = False
        self.looks, self._seen = Looks(self.total), seen
        self._order = RowOrder(len(rows.x), self._schedule, member.seed)
        self._run = KernelRun(least=np.inf, total=self.total)
        self._arrays: dict[str, NDArray[Any]] = {}
        size = self._network.n_packed
        room = aligned(4 * size + self._network.n_work)
        self._weights, mean, self._square, self._best, self._work = np.split(
            room, [size, 2 * size, 3 * size, 4 * size]
        )
        self._network.pack(
            first_weights(common.architecture, member.seed), self._weights
        )
        self._point_at(
            weights=self._weights,
            mean=mean,
            square=self._square,
            best=self._best,
            work=self._work,
            decay=common.decay(member),
            x=rows.x,
            y=rows.y,
        )
        self._set_noise(member)

    def _point_at(self, **arrays: NDArray[Any]) -> None:
        """Fields of the run, and keep the arrays."""
        for name, array in arrays.items():
            setattr(self._run, name, address(array))
        self._arrays |= arrays

    def _set_noise(self, member: Member) -> None:
        name = str(member.spec.noise) if any(member.drop_rates) else "quiet"
        self._run.noise = NOISE_NAMES.index(name)
        self._rng: np.random.Generator | None = None
        if name == "quiet":
            return
        (rng,) = training_noise([member])
        if name == "bernoulli":
            thresholds, scales = self._common.masks(member.drop_rates)
            state = rng.bit_generator.state["state"]["state"].copy()
            self._point_at(thresholds=thresholds, scales=scales, state=state)
        else:
            self._rng = rng
            self._point_at(scales=gaussian_stds([member.drop_rates])[0])

    def watch(self, rows: PaddedRows, every: int, patience: int) -> None:
        """Look at rows held out, and keep the weights that were best there."""
        self._point_at(held_x=rows.x, held_y=rows.y)
        self._run.n_held = len(rows.x)
        self._run.every, self._run.patience = every, patience

    @property
    def step(self) -> int:
        """Steps done."""
        return int(self._run.step)

    def advance(self) -> int:
        """Train for some steps; how many were taken off the list of those to do."""
        run, before = self._run, self.step
        rates, epsilons = self._common.rates(self._schedule, self.total, before)
        size = min(len(rates), self.looks.left(before) or len(rates))
        rates, epsilons = rates[:size], epsilons[:size]
        places, share = shared_out(self._order.take(size))
        self._point_at(places=places, share=share, rates=rates, epsilons=epsilons)
        if self._rng is not None:
            count = size * self._common.n_units
            self._point_at(normals=self._rng.standard_normal(count, np.float32))
        run.n_steps = size
        self._network.train(run)
        self.looks.take(self.step, lambda: self.loss(self._seen))
        given_up = bool(run.every) and run.misses >= run.patience
        self.is_over = given_up or self.step == self.total
        return (self.total if self.is_over else self.step) - before

    def result(self) -> tuple[FloatArray, int]:
        """Flat parameters, and the steps after which they were reached."""
        run = self._run
        if run.every and run.looks:
            return self._network.flat(self._best), int(run.when)
        return self._network.flat(self._weights), self.total

    def state(self) -> tuple[FloatArray, FloatArray]:
        """Parameters and Adam's second moments, flat."""
        return self._network.flat(self._weights), self._network.flat(self._square)

    def loss(self, rows: PaddedRows) -> float:
        """Mean loss of rows without noise."""
        return self._network.loss(self._weights, self._work, *rows)


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
    # A unit at the very kink of a ReLU may go either way; not so for every example.
    for seed in range(_EXAMPLES):
        gap = disagreement(own, spec, *sizes, seed=seed)
        if gap <= _TOLERANCE:
            break
    else:
        return _distrusted(gap)
    _TRUSTED.add(key)
    return None


def _distrusted(gap: float) -> str:
    warnings.warn(_DIFFERS.format(gap=gap), CaveatWarning, stacklevel=5)
    reason = "its numbers differed from torch's"
    distrust(reason)
    return reason


@torch.no_grad()
def disagreement(
    own: Kernel, spec: NetworkSpec, n_inputs: int, n_targets: int, *, seed: int = 0
) -> float:
    """How far a few steps of the kernel and of torch lead apart, as a share of the way.

    Weights whose gradient is rounding error go either way, by a whole step of Adam:
    each counts by the size of its gradients. These sizes are compared, too, as Adam
    does not care for their scale, and so is the loss without noise.

    Parameters
    ----------
    own : Kernel
        The one in question.
    spec : NetworkSpec
        What is shared by a fleet counts; rows, rates and penalties are made up.
    n_inputs, n_targets : int
        Of a row.
    seed : int
        Of rows and network.

    Returns
    -------
    float
    """
    member, rows = _example(spec, n_inputs, n_targets, seed)
    cohort = Cohort([member], [rows])
    for _ in cohort.chunks(_CHECKED):
        if cohort.step == _CHECKED:
            break
    padded = PaddedRows.of(rows, own.lanes)
    common = Common(own, member.spec, cohort.stack.architecture, n_targets)
    common.at_once = 1
    run = MemberRun(common, member, padded, padded)
    while run.step < _CHECKED:
        run.advance()
    found, square = map(torch.from_numpy, run.state())
    expected, size = cohort.parameters()[0], cohort.gradient_sizes()[0]
    loss = _loss(cohort.stack, expected, rows)
    way = size.max() * _CHECK_RATE * _CHECKED
    gaps = (
        (size * (found - expected).abs()).max() / way,
        (square.sqrt() - size).abs().max() / size.max(),
        abs(run.loss(padded) - loss) / (1 + abs(loss)),
    )
    return float(np.max([float(gap) for gap in gaps]))  # NaN if any is


def _example(
    spec: NetworkSpec, n_inputs: int, n_targets: int, seed: int
) -> tuple[Member, Rows]:
    """A network of the spec's kind with noise everywhere, and rows for it."""
    schedule = replace(
        spec.schedule,
        epochs=_CHECKED,
        learning_rate=_CHECK_RATE,
        early_stopping=None,
    )
    spec = replace(spec, drop_rate=0.3, input_drop_rate=0.2, schedule=schedule)
    rng = np.random.default_rng(seed)
    size = schedule.batch_size + 1  # with keep_last, a batch that is nearly empty
    y: NDArray[Any] = rng.normal(size=(size, n_targets))
    if isinstance(spec.objective, SoftmaxCrossEntropy):
        y = rng.integers(spec.objective.n_classes, size=(size, 1))
    penalties = tuple(1e-3 * (1 + place) for place in range(len(spec.drop_rates)))
    member = Member("example", spec, penalties, 2e-3, seed=seed)
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
