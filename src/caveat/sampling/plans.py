"""What a model needs to be sampled: learned from a few small passes, and remembered.

A plan is made from two or three rows, without drawing anything. It holds for inputs
of the same kind as long as the model goes the same way: a pass that reaches a module
or a site that the plan has not seen widens it (:func:`widened`).
"""

import sys
import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

from torch import Tensor, nn

from caveat._torch import pytree
from caveat.errors import CaveatError, CaveatWarning, NoStochasticSiteError
from caveat.sampling.caches import kind_of_call
from caveat.sampling.copying import ModelCopy
from caveat.sampling.fingerprint import fingerprint
from caveat.sampling.flags import Flags, Glance, find_flags
from caveat.sampling.inputs import Batch
from caveat.sampling.noise import Law, Layout, NoiseSpec
from caveat.sampling.passes import Omega, Pass, SiteCall
from caveat.sampling.registry import registry_version
from caveat.sampling.rows import TURNED, find_layout
from caveat.sampling.running import Switches, run_pass
from caveat.sampling.tokens import Tokens, find_tokens

_NO_SITE = """{name} has no stochastic site, so all draws would be identical.
Looked for: nn.Dropout and its kin, functional and in-place dropout, dropout inside
recurrent layers, attention and nn.Transformer*, any other random operation of torch,
and registered modules, in training and in evaluation mode.{rates}
If the model was exported or fused, pass it from before that step. If it was trained
without dropout there is no distribution to recover: train it with dropout, or see
docs/gotchas.md."""

_ALL_ZERO = "\nFound {n} dropout site(s), all with rate 0: {paths}."

_MIXED_ROWS = """The rows of {name} are not independent of each other on axis {axis}:
the output of a row changes with the rows beside it. Either another axis is the batch
(say so: MCDropout(model, batch_dim=1)), or the model mixes rows. Every element gets a
mask of its own, so each prediction is right, but a draw is not one function of x, and
the numbers depend on the batch."""

_UNPROBED = """{name} cannot be run on two or three rows ({error}), so it is not known
where the rows lie inside it. Every element gets a mask of its own: each prediction is
right, but a draw is not one function of x, and the numbers depend on the batch."""

_UNSEEN = """{name} draws noise for this batch that it does not draw for two of its rows
alone, so it is not known where the rows lie at {paths}. There every element gets a mask
of its own: each prediction is right, but a draw is not one function of x, and the
numbers depend on the batch."""

_UNREACHED = """{name} has dropout that only fires in training mode, where the model
returns something else: {paths}. It is not part of the prediction and stays off."""


_NO_TOKENS = """{name} is given a cache of earlier tokens, but it is not known
{unknown}. So masks there start anew in every call: each
prediction is right, but several calls with a cache are not one function draw. Pass
whole sequences to have one."""

_NOT_THE_USER = ("caveat.", "torch.")


@dataclass(frozen=True)
class Plan:
    """How to sample a model.

    Attributes
    ----------
    switches : Switches
        How to set its copy.
    sites : tuple of SiteCall
        The sites seen, in order.
    names : frozenset of str
        Names of the sites that draw.
    reached : frozenset of str
        Paths of the modules that have run.
    layouts : dict
        Where the rows lie at each site, by name; missing if not known.
    tokens : Tokens
        Where the tokens of a sequence lie, for calls with a key-value cache.
    rows_mix : bool
        Rows influence each other, so a batch must not be split.
    note : str or None
        What the user should be warned of.
    verdicts : dict
        Which replay programs, by source, gave what the model gave.
    """

    switches: Switches
    sites: tuple[SiteCall, ...]
    names: frozenset[str]
    reached: frozenset[str]
    layouts: dict[str, Layout]
    tokens: Tokens = field(default_factory=Tokens)
    rows_mix: bool = False
    note: str | None = None
    verdicts: dict[str, bool] = field(default_factory=dict, compare=False)

    def covers(self, run: Pass) -> bool:
        """Whether a pass went only where the plan has been."""
        return run.names <= self.names and run.reached <= self.reached


@dataclass(frozen=True)
class _Remembered:
    """Plans of a model by kind of input, made when it looked like ``state``."""

    state: Any
    by_kind: dict[Any, Plan] = field(default_factory=dict)


_plans: "WeakKeyDictionary[nn.Module, _Remembered]" = WeakKeyDictionary()
_lock = threading.Lock()


def plan_for(model: nn.Module, batch: Batch) -> Plan:
    """The plan of ``model`` for inputs like ``batch``, made once and remembered.

    Raises :class:`NoStochasticSiteError` if nothing would be random; then nothing is
    remembered.
    """
    state, key = _state(model), _key(batch)
    plan = _recalled(model, state, key)
    if plan is None:
        plan = _made(model, batch)
        if not batch.part:  # a part may be all but random
            _require_sites(model, plan)
        _remember(model, state, key, plan)
    _warn(plan)
    return plan


def widened(model: nn.Module, batch: Batch, plan: Plan, omega: Omega) -> Plan:
    """The plan after a pass that went where it had not been: with this noise."""

    def look(switches: Switches) -> Glance:
        output, run = run_pass(model, batch, omega, switches, record=False)
        return Glance(output, tuple(run.sites), run.reached, {})

    flags = _flags(model, plan.switches, look)
    known = {site.name for site in plan.sites}
    new = tuple(site for site in flags.glance.sites if site.name not in known)
    wider = replace(
        plan,
        switches=flags.switches,
        sites=plan.sites + new,
        names=plan.names | flags.glance.names,
        reached=plan.reached | flags.reached,
    )
    fresh = wider.names - plan.names
    if fresh and not plan.rows_mix:
        wider = _with_tokens(model, batch, _placed(model, batch, wider, fresh))
    _remember(model, _state(model), _key(batch), wider)
    if wider.note != plan.note:
        _warn(wider)
    return wider


def _placed(model: nn.Module, batch: Batch, plan: Plan, fresh: frozenset[str]) -> Plan:
    """Look for the rows at ``fresh`` sites; say so if two rows do not get there."""
    seen: frozenset[str] = frozenset()
    layouts: dict[str, Layout] = {}
    try:
        glances = _two_looks(model, batch, plan.switches)
        seen = frozenset(glances[0].tensors)
        layouts = _layouts(*glances, guess=batch.rows == 1) or {}
    except CaveatError:
        raise
    except Exception:  # the model cannot run so few rows
        pass
    found = {name: layouts[name] for name in fresh & layouts.keys()}
    plan = replace(plan, layouts={**plan.layouts, **found})
    unseen = {
        site.path or "(the model)" for site in plan.sites if site.name in fresh - seen
    }
    if not unseen or batch.rows == 1:
        return plan
    name, paths = type(model).__name__, ", ".join(sorted(unseen)[:6])
    return replace(plan, note=_UNSEEN.format(name=name, paths=paths))


def _state(model: nn.Module) -> Any:
    return registry_version(), fingerprint(model)


def _warn(plan: Plan) -> None:
    if plan.note is not None:
        warnings.warn(plan.note, CaveatWarning, stacklevel=_levels_to_the_user())


def _levels_to_the_user() -> int:
    """How many frames above the caller are ours, or torch's."""
    frame, levels = sys._getframe(1), 1
    while frame.f_back and _module(frame).startswith(_NOT_THE_USER):
        frame, levels = frame.f_back, levels + 1
    return levels


def _module(frame: FrameType) -> str:
    return frame.f_globals.get("__name__", "")


def _key(batch: Batch) -> Any:
    a, b = batch.two_rows()
    return kind_of_call(batch), a == b, batch.rows == 1


def _recalled(model: nn.Module, state: Any, key: Any) -> Plan | None:
    with _lock:
        held = _plans.get(model)
    return None if held is None or held.state != state else held.by_kind.get(key)


def _remember(model: nn.Module, state: Any, key: Any, plan: Plan) -> None:
    with _lock:
        held = _plans.get(model)
        if held is None or held.state != state:
            held = _plans[model] = _Remembered(state)
        held.by_kind[key] = plan


def _require_sites(model: nn.Module, plan: Plan) -> None:
    """Raise if nothing would be random."""
    if plan.names or plan.switches.host_generators:
        return
    sites, rates = plan.sites, ""
    if sites:
        paths = ", ".join(sorted({site.path or "(the model)" for site in sites})[:6])
        rates = _ALL_ZERO.format(n=len(sites), paths=paths)
    raise NoStochasticSiteError(_NO_SITE.format(name=type(model).__name__, rates=rates))


def _made(model: nn.Module, batch: Batch) -> Plan:
    name = type(model).__name__
    guess = batch.rows == 1
    try:
        flags = _probed(model, _two_rows(batch))
        layouts = _layouts(*_two_looks(model, batch, flags.switches), guess=guess)
        if layouts and flags.switches.host_generators:
            # Host numbers may skip layers in one pass and not in the next.
            plain = _layouts(*_two_looks(model, batch, Switches()), guess=guess)
            layouts = {**(plain or {}), **layouts}
    except CaveatError:
        raise
    except Exception as error:  # the model cannot run so few rows
        flags = _probed(model, batch)
        problem = f"{type(error).__name__}: {error}".split("\n", 1)[0]
        note = _UNPROBED.format(name=name, error=problem)
        return replace(_plan(name, flags, {}), rows_mix=True, note=note)
    if layouts is None:
        note = _MIXED_ROWS.format(name=name, axis=batch.axis)
        return replace(_plan(name, flags, {}), rows_mix=True, note=note)
    return _with_tokens(model, batch, _plan(name, flags, layouts))


def _with_tokens(model: nn.Module, batch: Batch, plan: Plan) -> Plan:
    """The plan, with the place of tokens if earlier ones are in a cache."""

    def look(batch: Batch) -> Glance:
        return _look(model, batch, plan.switches)

    found = find_tokens(_two_rows(batch), plan.layouts, look)
    note = plan.note
    if found.unknown is not None:
        name = type(model).__name__
        unknown = _NO_TOKENS.format(name=name, unknown=found.unknown)
        note = unknown if note is None else f"{note}\n{unknown}"
    layouts = {**plan.layouts, **found.layouts}
    return replace(plan, layouts=layouts, tokens=found.tokens, note=note)


def _two_rows(batch: Batch) -> Batch:
    return batch.take(batch.two_rows())


def _two_looks(
    model: nn.Module, batch: Batch, switches: Switches
) -> tuple[Glance, Glance]:
    """The model on two rows, and on them in another order and number."""
    rows = batch.two_rows()
    turned = batch.take([rows[i] for i in TURNED])
    return _look(model, batch.take(rows), switches), _look(model, turned, switches)


def _layouts(left: Glance, right: Glance, *, guess: bool) -> dict[str, Layout] | None:
    """Where the rows lie at each site; None if the output does not follow them."""
    if not _moves_with_rows(left.output, right.output):
        return None
    found = {
        site: find_layout(tensor, right.tensors.get(site), guess=guess)
        for site, tensor in left.tensors.items()
    }
    return {site: layout for site, layout in found.items() if layout is not None}


def _plan(name: str, flags: Flags, layouts: dict[str, Layout]) -> Plan:
    note = None
    if flags.unreached:
        note = _UNREACHED.format(name=name, paths=", ".join(flags.unreached))
    sites, names = flags.glance.sites, flags.glance.names
    return Plan(flags.switches, sites, names, flags.reached, layouts, note=note)


def _probed(model: nn.Module, batch: Batch) -> Flags:
    return _flags(model, Switches(), lambda switches: _look(model, batch, switches))


def _flags(model: nn.Module, switches: Switches, look: Any) -> Flags:
    everything = frozenset(ModelCopy(model).modules)
    return find_flags(type(model).__name__, everything, switches, look)


def _look(model: nn.Module, batch: Batch, switches: Switches) -> Glance:
    omega = _ProbeOmega()
    output, run = run_pass(model, batch, omega, switches, record=False)
    return Glance(output, tuple(run.sites), run.reached, omega.tensors, run.arguments)


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


def _moves_with_rows(two: Any, three: Any) -> bool:
    """Whether every output tensor with rows moves as the rows of the input do."""
    pairs = zip(pytree.tree_leaves(two), pytree.tree_leaves(three), strict=False)
    return all(
        find_layout(left, right, guess=True) is not None
        for left, right in pairs
        if isinstance(left, Tensor) and left.shape != right.shape
    )
