"""What a model needs to be sampled: learned from a few small passes, and remembered.

A plan is made from two or three rows, without drawing anything. It holds for inputs
of the same kind as long as the model goes the same way: a pass that reaches a module
or a site that the plan has not seen widens it (:func:`widened`).
"""

import sys
import threading
import warnings
from collections.abc import Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from caveat.errors import (
    CaveatError,
    CaveatWarning,
    NoStochasticSiteError,
    UnsupportedModelError,
)
from caveat.predictive.strata import Stratification
from caveat.sampling.adapters import silent_adapters
from caveat.sampling.caches import kind_of_call
from caveat.sampling.copying import ModelCopy
from caveat.sampling.fingerprint import Survey, survey, tensors_of
from caveat.sampling.flags import Flags, Glance, Look, ModelView, find_flags
from caveat.sampling.inputs import Batch
from caveat.sampling.lengths import changed, family_of, holds, lengths_of
from caveat.sampling.noise import Layout
from caveat.sampling.passes import Omega, Pass, SiteCall
from caveat.sampling.probing import check_repeats, find_rows, look
from caveat.sampling.registry import registry_version
from caveat.sampling.rows import two_rows
from caveat.sampling.running import Switches, run_pass
from caveat.sampling.store import TemplateStore
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
the output of a row changes with the rows beside it, or has no rows at all. Either
another axis is the batch (say so: MCDropout(model, batch_dim=1)), or the model mixes or
pools rows. Every element gets a mask of its own, so each prediction is right, but a
draw is not one function of x, and the numbers depend on the batch."""

_UNPROBED = """{name} cannot be run on two or three rows ({error}), so it is not known
where the rows lie inside it. Every element gets a mask of its own: each prediction is
right, but a draw is not one function of x, and the numbers depend on the batch."""

_UNSEEN = """{name} draws noise for this batch that it does not draw for two of its rows
alone, so it is not known where the rows lie at {paths}. There every element gets a mask
of its own: each prediction is right, but a draw is not one function of x, and the
numbers depend on the batch."""

_ASTRAY = """{name} draws noise at {paths} for rows that are packed, gathered, folded or
looped over, so that it is not known which numbers belong to which row. There every
element gets a mask of its own: each prediction is right, but a draw is not one function
of x, and the numbers depend on the batch."""

_LAZY = """{name} has lazy layers that have not been run: their weights get a shape and
numbers with the first call. Call the model once on a batch, or load its weights."""

_META = """{name} has weights on the meta device, which have a shape and no numbers.
Load its weights first (model.to_empty(device=...), then model.load_state_dict)."""

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
    outputs : tuple of Layout or None
        For each leaf of the output where its rows lie; None if it has none.
    note : str or None
        What the user should be warned of.
    verdicts : dict
        Which replay programs, by source, gave what the model gave.
    templates : TemplateStore
        Passes that were recorded, by kind of batch.
    misfits : set of str
        Sites without the size that their layout says, of which the user was warned.
    """

    switches: Switches
    sites: tuple[SiteCall, ...]
    names: frozenset[str]
    reached: frozenset[str]
    layouts: dict[str, Layout]
    tokens: Tokens = field(default_factory=Tokens)
    rows_mix: bool = False
    outputs: tuple[Layout | None, ...] = ()
    note: str | None = None
    verdicts: dict[str, bool] = field(default_factory=dict, compare=False)
    templates: TemplateStore = field(default_factory=TemplateStore, compare=False)
    misfits: set[str] = field(default_factory=set, compare=False)

    @cached_property
    def stratification(self) -> Stratification:
        """The design of stratified draws."""
        sites = [site for site in self.sites if site.draws]
        return Stratification(
            tuple(s.rate if s.is_mask and 0 < s.rate < 1 else 0.5 for s in sites)
        )

    def covers(self, run: Pass) -> bool:
        """Whether a pass went only where the plan has been."""
        return run.names <= self.names and run.reached <= self.reached

    def noting(self, *notes: str) -> "Plan":
        """The plan with more to be warned of."""
        known = () if self.note is None else (self.note,)
        return replace(self, note="\n".join((*known, *notes)) or None)


@dataclass(frozen=True)
class _Remembered:
    """Plans of a model by kind of input, made when it looked like ``state``.

    ``by_family`` has one for all lengths of sequences, and the lengths it was made for.
    """

    state: Any
    by_kind: dict[Any, Plan] = field(default_factory=dict)
    by_family: dict[Any, tuple[tuple[int, ...], Plan]] = field(default_factory=dict)


_plans: "WeakKeyDictionary[nn.Module, _Remembered]" = WeakKeyDictionary()
_lock = threading.Lock()


def plan_for(model: nn.Module, batch: Batch, seen: Survey | None = None) -> Plan:
    """The plan of ``model`` for inputs like ``batch``; warns of what it says.

    ``seen`` is a survey of the model, if one was just made. Raises
    :class:`NoStochasticSiteError` if nothing would be random.
    """
    plan = known_plan(model, batch, seen)
    _warn(plan)
    return plan


def known_plan(model: nn.Module, batch: Batch, seen: Survey | None = None) -> Plan:
    """The plan, made once and remembered, without a warning.

    If nothing would be random, nothing is remembered.
    """
    state, key = _state(seen or survey(model)), _key(batch)
    plan = _recalled(model, state, key)
    if plan is not None:
        return plan
    plan = _of_another_length(model, batch, state)
    if plan is None:
        plan = _made(model, batch)
        if not batch.part:  # a part may be all but random
            _require_sites(model, plan)
        _remember_family(model, state, batch, plan)
    _remember(model, state, key, plan)
    return plan


def _of_another_length(model: nn.Module, batch: Batch, state: Any) -> Plan | None:
    """The plan of other lengths, if one look at this one shows that it holds."""
    with _lock:
        held = _plans.get(model)
    if held is None or held.state != state or not held.by_family:
        return None
    found = held.by_family.get(_family(batch))
    if found is None:
        return None
    lengths, plan = found
    sizes = changed(lengths, lengths_of(batch))
    if sizes is None:
        return None
    try:
        seen = look(model, two_rows(batch), plan.switches)
    except CaveatError:
        raise
    except Exception:  # planning it anew tells what is wrong
        return None
    if not seen.reached <= plan.reached:
        return None
    if not holds(plan.sites, plan.layouts, seen, sizes):
        return None
    return replace(plan, templates=TemplateStore())


def _remember_family(model: nn.Module, state: Any, batch: Batch, plan: Plan) -> None:
    """Keep a plan for other lengths, if there is nothing special about it."""
    if plan.note is not None or plan.rows_mix or plan.switches.host_generators:
        return
    family = _family(batch)
    if family is None or plan.tokens.axes:
        return
    with _lock:
        held = _plans.get(model)
        if held is None or held.state != state:
            held = _plans[model] = _Remembered(state)
        held.by_family[family] = lengths_of(batch), plan


def _family(batch: Batch) -> Any:
    family = family_of(batch)
    a, b = batch.two_rows()
    return None if family is None else (family, a == b, batch.rows == 1)


def widened(model: nn.Module, batch: Batch, plan: Plan, omega: Omega) -> Plan:
    """The plan after a pass that went where it had not been: with this noise."""

    def with_noise(switches: Switches) -> Glance:
        output, run = run_pass(model, batch, omega, switches, record=False)
        return Glance(output, tuple(run.sites), run.reached, {}, run.seeded, run.moved)

    flags = _flags(model, plan.switches, with_noise, quiet=False)
    known = {site.name for site in plan.sites}
    new = tuple(site for site in flags.glance.sites if site.name not in known)
    wider = replace(
        plan,
        switches=flags.switches,
        sites=plan.sites + new,
        names=plan.names | flags.glance.names,
        reached=plan.reached | flags.reached,
        templates=TemplateStore(),
    )
    fresh = wider.names - plan.names
    if fresh and not plan.rows_mix:
        wider = _with_tokens(model, batch, _placed(model, batch, wider, fresh))
    _remember(model, _state(survey(model)), _key(batch), wider)
    if wider.note != plan.note:
        _warn(wider)
    return wider


def _placed(model: nn.Module, batch: Batch, plan: Plan, fresh: frozenset[str]) -> Plan:
    """Look for the rows at ``fresh`` sites; say so if two rows do not get there."""
    seen: frozenset[str] = frozenset()
    layouts: dict[str, Layout] = {}
    try:
        rows = find_rows(model, batch, plan.switches)
        seen, layouts = rows.seen, rows.layouts if rows.apart else {}
    except CaveatError:
        raise
    except Exception:  # the model cannot run so few rows
        pass
    found = {name: layouts[name] for name in fresh & layouts.keys()}
    plan = replace(plan, layouts={**plan.layouts, **found})
    if not fresh - seen or batch.rows == 1:
        return plan
    name, paths = type(model).__name__, _paths(plan, fresh - seen)
    return plan.noting(_UNSEEN.format(name=name, paths=paths))


def _state(seen: Survey) -> Any:
    return registry_version(), seen.fingerprint


def warn_of_misfits(model: nn.Module, plan: Plan, found: Set[str]) -> None:
    """Say, once, that rows do not lie at these sites where two rows lay."""
    fresh = frozenset(found - plan.misfits)
    if fresh:
        plan.misfits.update(fresh)
        name, paths = type(model).__name__, _paths(plan, fresh)
        _warn(plan, _ASTRAY.format(name=name, paths=paths))


def _warn(plan: Plan, note: str | None = None) -> None:
    note = plan.note if note is None else note
    if note is not None:
        warnings.warn(note, CaveatWarning, stacklevel=levels_to_the_user())


def levels_to_the_user() -> int:
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
    rates = "\n".join((rates, *silent_adapters(model)))
    raise NoStochasticSiteError(_NO_SITE.format(name=type(model).__name__, rates=rates))


def _made(model: nn.Module, batch: Batch) -> Plan:
    _check_tensors(model)
    name = type(model).__name__
    try:
        flags = _probed(model, two_rows(batch))
        known = None if flags.switches.host_generators else flags.glance
        rows = find_rows(model, batch, flags.switches, known)
        if flags.switches.host_generators and rows.apart:
            # Host numbers may skip layers in one pass and not in the next.
            plain = find_rows(model, batch, replace(flags.switches, on=frozenset()))
            rows = rows._replace(layouts={**plain.layouts, **rows.layouts})
    except CaveatError:
        raise
    except Exception as error:  # the model cannot run so few rows
        flags = _probed(model, batch)
        check_repeats(model, *(look(model, batch, flags.switches) for _ in range(2)))
        problem = f"{type(error).__name__}: {error}".split("\n", 1)[0]
        note = _UNPROBED.format(name=name, error=problem)
        return replace(_plan(flags, {}), rows_mix=True).noting(note)
    if not rows.apart:
        note = _MIXED_ROWS.format(name=name, axis=batch.axis)
        return replace(_plan(flags, {}), rows_mix=True).noting(note)
    plan = replace(_plan(flags, rows.layouts), outputs=rows.outputs)
    if rows.astray:
        paths = _paths(plan, rows.astray)
        plan = plan.noting(_ASTRAY.format(name=name, paths=paths))
    return _with_tokens(model, batch, plan)


def _with_tokens(model: nn.Module, batch: Batch, plan: Plan) -> Plan:
    """The plan, with the place of tokens if earlier ones are in a cache."""

    def view(batch: Batch) -> Glance:
        return look(model, batch, plan.switches)

    found = find_tokens(two_rows(batch), plan.layouts, view)
    layouts = {**plan.layouts, **found.layouts}
    plan = replace(plan, layouts=layouts, tokens=found.tokens)
    if found.unknown is None:
        return plan
    name = type(model).__name__
    return plan.noting(_NO_TOKENS.format(name=name, unknown=found.unknown))


def _plan(flags: Flags, layouts: dict[str, Layout]) -> Plan:
    sites, names = flags.glance.sites, flags.glance.names
    plan = Plan(flags.switches, sites, names, flags.reached, layouts)
    return plan.noting(*flags.notes)


def _paths(plan: Plan, names: frozenset[str]) -> str:
    """Where sites are, for messages."""
    found = {site.path or "(the model)" for site in plan.sites if site.name in names}
    return ", ".join(sorted(found)[:6]) or "(the model)"


def _probed(model: nn.Module, batch: Batch) -> Flags:
    switches = Switches(seeds_torch=survey(model).seeds)
    return _flags(model, switches, lambda s: look(model, batch, s), quiet=True)


def _flags(model: nn.Module, switches: Switches, view: Look, *, quiet: bool) -> Flags:
    copy, generators = ModelCopy(model), survey(model).generators
    name, everything = type(model).__name__, frozenset(copy.modules)
    outside = any(
        isinstance(g, torch.Generator) and not copy.has_copied(g) for g in generators
    )
    switches = replace(switches, seeds_torch=switches.seeds_torch or outside)
    subject = ModelView(name, everything, generators, view, quiet, outside)
    return find_flags(subject, switches)


def _check_tensors(model: nn.Module) -> None:
    """Refuse weights that have no numbers."""
    name, tensors = type(model).__name__, tensors_of(model)
    if any(map(is_lazy, tensors)):
        raise UnsupportedModelError(_LAZY.format(name=name))
    if any(tensor.is_meta for tensor in tensors):
        raise UnsupportedModelError(_META.format(name=name))
