"""Learning about a model from a few small passes, before it is sampled.

Two questions are settled on two or three rows, without drawing anything:

*Which modules must run in training mode?* Most dropout is seen whatever the flags say.
But a module may ask ``self.training`` in Python and then not even call dropout. All
flags on would find these, and would also change what some models return. So: run with
all flags on, note which module was running at each random operation that evaluation
does not reach, and switch on only these (with their parents, if they ask, too, as long
as the model still returns what it returns in evaluation).

*Where are the rows of the batch?* A mask is shared by all rows, so it must be known
which axis of each site's tensor they are on. Sizes alone would be guessing: a sequence
may be as long as the batch is wide. So: run rows (a, b) and rows (b, a, a). The axis
that grows from 2k to 3k, and whose content moves accordingly, carries the rows. If none
does, every element gets noise of its own: still the right distribution for every row,
only not one function for all.
"""

import threading
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from caveat.errors import CaveatError, CaveatWarning
from caveat.sampling.copying import ModelCopy
from caveat.sampling.guard import AutogradInside
from caveat.sampling.host import watched_host_generators
from caveat.sampling.inputs import Batch
from caveat.sampling.noise import Law, Layout, NoiseSpec
from caveat.sampling.passes import SiteCall
from caveat.sampling.registry import registry_size
from caveat.sampling.running import Switches, run_pass

_MIXED_ROWS = """The rows of {name} are not independent of each other on axis {axis}:
the output of a row changes with the rows beside it. Either another axis is the batch
(say so: MCDropout(model, batch_dim=1)), or the model mixes rows. Every element gets a
mask of its own, so each prediction is right, but a draw is not one function of x, and
the numbers depend on the batch."""

_UNPROBED = """{name} cannot be run on two or three rows ({error}), so it is not known
where the rows lie inside it. Every element gets a mask of its own: each prediction is
right, but a draw is not one function of x, and the numbers depend on the batch."""

_UNREACHED = """{name} has dropout that only fires in training mode, where the model
returns something else: {paths}. It is not part of the prediction and stays off."""


@dataclass(frozen=True)
class Plan:
    """What a model needs to be sampled.

    Attributes
    ----------
    switches : Switches
        How to set its copy.
    sites : tuple of SiteCall
        The sites seen, in order.
    layouts : dict
        Where the rows lie at each site, by name; missing if not known.
    rows_mix : bool
        Rows influence each other, so a batch must not be split.
    note : str or None
        What the user should be warned of.
    verdicts : dict
        Which replay programs, by source, gave what the model gave.
    """

    switches: Switches
    sites: tuple[SiteCall, ...]
    layouts: dict[str, Layout]
    rows_mix: bool = False
    note: str | None = None
    verdicts: dict[str, bool] = field(default_factory=dict, compare=False)

    @property
    def names(self) -> frozenset[str]:
        """Names of the sites that draw."""
        return frozenset(s.name for s in self.sites if s.draws)


_plans: "WeakKeyDictionary[nn.Module, dict[Any, Plan]]" = WeakKeyDictionary()
_plans_lock = threading.Lock()


def plan_for(model: nn.Module, batch: Batch, *, afresh: bool = False) -> Plan:
    """The plan of ``model`` for inputs like ``batch``, made once and remembered."""
    rows = batch.two_rows()
    key = (batch.signature, rows[0] == rows[1], registry_size())
    with _plans_lock:
        plan = _plans.setdefault(model, {}).get(key)
    if plan is None or afresh:
        plan = _Prober(model, batch, rows).plan()
        with _plans_lock:
            _plans[model][key] = plan
    if plan.note is not None:
        warnings.warn(plan.note, CaveatWarning, stacklevel=5)
    return plan


@dataclass
class _ProbeOmega:
    """Leaves everything as it is and keeps what the sites were given."""

    seed: int = 0
    draw: int = 0
    shared: bool = True
    tensors: dict[str, Tensor | None] = field(default_factory=dict)

    def visit(self, site: SiteCall, tensor: Tensor | None, *, has_values: bool) -> None:
        if tensor is not None:
            tensor = tensor.detach().clone() if has_values else tensor.to("meta")
        self.tensors[site.name] = tensor

    def spec(
        self, site: SiteCall, law: Law, shape: Sequence[int], like: Tensor
    ) -> tuple[NoiseSpec, Layout | None] | None:
        return None


@dataclass(frozen=True)
class _Glance:
    """What one small pass showed."""

    output: Any
    sites: tuple[SiteCall, ...]
    tensors: dict[str, Tensor | None]

    @property
    def names(self) -> frozenset[str]:
        return frozenset(s.name for s in self.sites if s.draws)

    def returns_like(self, other: "_Glance") -> bool:
        return _shape_of(self.output) == _shape_of(other.output)


class _Prober:
    def __init__(self, model: nn.Module, batch: Batch, rows: tuple[int, int]) -> None:
        self._model = model
        self._batch = batch
        self._rows = rows
        self._switches = Switches()
        self._note: str | None = None

    def plan(self) -> Plan:
        a, b = self._rows
        try:
            small = self._batch.take((a, b))
            glance = self._glance_with_flags(small)
            turned = self._glance(self._batch.take((b, a, a)), self._switches)
        except CaveatError:
            raise
        except Exception as error:  # the model cannot run so few rows
            glance = self._glance_with_flags(self._batch)
            self._note = _UNPROBED.format(name=self._name, error=_first_line(error))
            return Plan(
                self._switches, glance.sites, {}, rows_mix=True, note=self._note
            )
        layouts = {
            name: layout
            for name, tensor in glance.tensors.items()
            if (layout := find_layout(tensor, turned.tensors.get(name))) is not None
        }
        mix = not self._moves_with_rows(glance.output, turned.output)
        if mix:
            self._note = _MIXED_ROWS.format(name=self._name, axis=self._batch.axis)
            layouts = {}
        return Plan(
            self._switches, glance.sites, layouts, rows_mix=mix, note=self._note
        )

    @property
    def _name(self) -> str:
        return type(self._model).__name__

    def _glance(self, batch: Batch, switches: Switches) -> _Glance:
        omega = _ProbeOmega()
        output, run = run_pass(self._model, batch, omega, switches, record=False)
        return _Glance(output, tuple(run.sites), omega.tensors)

    def _glance_with_flags(self, batch: Batch) -> _Glance:
        """Settle the switches, and return what a pass with them shows."""
        with watched_host_generators() as host_used:
            try:
                evaluated = self._glance(batch, self._switches)
            except AutogradInside:
                self._switches = replace(self._switches, above_autograd=True)
                evaluated = self._glance(batch, self._switches)
            trained = self._all_on(batch)
        if host_used[0]:
            self._switches = replace(self._switches, host_generators=True)
        wanted = _wanted(evaluated, trained)
        return self._switch_on(batch, evaluated, wanted) if wanted else evaluated

    def _all_on(self, batch: Batch) -> tuple[SiteCall, ...]:
        """The sites of a pass with all flags on; none if the model cannot do that."""
        paths = frozenset(ModelCopy(self._model).modules)
        try:
            return self._glance(batch, replace(self._switches, on=paths)).sites
        except CaveatError:
            raise
        except Exception:
            return ()

    def _switch_on(
        self, batch: Batch, evaluated: _Glance, wanted: Sequence[SiteCall]
    ) -> _Glance:
        """Switch on owners, then one more level of their parents at a time.

        A step is kept if the model still returns what it does in evaluation.
        """
        names = {site.name for site in wanted}
        best, on = evaluated, frozenset[str]()
        for level in _levels(frozenset(site.path for site in wanted)):
            switches = replace(self._switches, on=on | level)
            glance = self._glance(batch, switches)
            if glance.returns_like(evaluated) and glance.names >= best.names:
                best, on, self._switches = glance, on | level, switches
            if names <= best.names:
                return best
        unreached = ", ".join(sorted(names - best.names))
        self._note = _UNREACHED.format(name=self._name, paths=unreached)
        return best

    def _moves_with_rows(self, small: Any, turned: Any) -> bool:
        """Whether every output tensor with rows moves as the rows of the input do."""
        pairs = zip(pytree.tree_leaves(small), pytree.tree_leaves(turned), strict=False)
        return all(
            find_layout(left, right) is not None
            for left, right in pairs
            if isinstance(left, Tensor) and left.shape != right.shape
        )


def find_layout(two: Tensor | None, three: Tensor | None) -> Layout | None:
    """Where rows lie, from a tensor for rows (a, b) and the same for (b, a, a)."""
    if two is None or three is None or two.dim() != three.dim():
        return None
    grown = [d for d in range(two.dim()) if two.shape[d] != three.shape[d]]
    if len(grown) != 1 or two.shape[grown[0]] * 3 != three.shape[grown[0]] * 2:
        return None
    axis = grown[0]
    factor = two.shape[axis] // 2
    if (
        two.is_meta
    ):  # a shape without content: rows folded with something are anyone's guess
        return Layout(axis) if factor == 1 else None
    candidates = [Layout(axis, factor)]
    if factor > 1:
        candidates.append(Layout(axis, factor, rows_first=False))
    return next((c for c in candidates if _moves(two, three, c)), None)


def _moves(two: Tensor, three: Tensor, layout: Layout) -> bool:
    left = two.reshape(layout.split(two.shape, 2))
    right = three.reshape(layout.split(three.shape, 3))
    order = torch.tensor((1, 0, 0), device=two.device)
    expected = left.index_select(layout.row_axis, order)
    if not two.is_floating_point():
        return torch.equal(expected, right)
    tolerance = max(1e-4, torch.finfo(two.dtype).eps ** 0.5)
    scale = (
        float(expected.abs().nan_to_num(posinf=0.0).max()) if expected.numel() else 0.0
    )
    return torch.allclose(
        right, expected, rtol=tolerance, atol=tolerance * scale, equal_nan=True
    )


def _shape_of(output: Any) -> Any:
    leaves, structure = pytree.tree_flatten(output)
    shapes = [tuple(v.shape) if isinstance(v, Tensor) else type(v) for v in leaves]
    return str(structure), shapes


def _wanted(evaluated: _Glance, trained: Sequence[SiteCall]) -> list[SiteCall]:
    """Sites whose owners may have to be in training mode for them to count.

    These are the ones that evaluation does not reach, and random operations other than
    dropout: they may be drawn in evaluation, too, and not used.
    """
    return [
        site
        for site in trained
        if site.draws and (site.name not in evaluated.names or not site.is_mask)
    ]


def _levels(owners: frozenset[str]) -> Iterator[frozenset[str]]:
    """The owners, then their parents, and so on up to the model itself."""
    level = owners
    while level:
        yield level
        level = frozenset(_parent(path) for path in level if path)


def _parent(path: str) -> str:
    return path.rpartition(".")[0]


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".split("\n", 1)[0]
