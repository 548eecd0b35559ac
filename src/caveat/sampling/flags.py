"""Which modules must run in training mode for every site to draw.

Most dropout is seen whatever the flags say. But a module may ask ``self.training`` in
Python and then not even call dropout. All flags on would find these, and would also
change what some models return. So: run with all flags on, note which module was running
at each random operation that evaluation does not reach, and switch on only these, then
one more level of their parents at a time (a parent may ask, too), then what lies
beneath them (a module's method may have been called past its ``__call__``), as long as
the model returns what it returns in evaluation.

A model may refuse to run in training mode (a detector wants targets then). So the
modules that refuse are found and left off, the others are looked at, and the user is
told.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from caveat.errors import CaveatError, UnsupportedModelError
from caveat.sampling.guard import AutogradInside
from caveat.sampling.host import (
    GeneratorUse,
    marked_torch_generators,
    watched_generators,
)
from caveat.sampling.passes import SiteCall
from caveat.sampling.rows import same_numbers
from caveat.sampling.running import Switches
from caveat.sampling.trees import flatten, leaves_of

_HOST = """{name} draws from a generator of Python or numpy in training mode, where it
also returns something else: it cannot be sampled. Use torch.rand instead."""

_HIDDEN = """{name} draws from torch's generator where it cannot be seen: in another
thread, in an operator of its own, or in a fused or quantised layer. Its draws would
lack that noise, or not be reproducible. Draw with torch's functions in the thread of
the call, or use the layer from before it was fused or quantised."""

_UNREACHED = """{name} has dropout that only fires in training mode, where the model
returns something else: {paths}. It is not part of the prediction and stays off."""

_UNABLE = """{name} cannot be called like this in training mode ({problem}), because of
{paths}. Dropout that is always called is drawn, and so is what other modules do in
training mode; but not what these themselves do only if self.training is set."""

_OTHERWISE = """{name} returns other numbers in training mode even with nothing dropped
(is a softmax left out?), and some of its dropout only fires in that mode: {paths}. Its
draws are what it returns in training mode."""

_REPEATS = 8  # of a pass with other numbers, few of which may be equal by chance
_MOST_TRIED = 64  # modules, one by one


@dataclass(frozen=True)
class Glance:
    """What one pass showed.

    ``seeded``: something was drawn after the model had seeded torch's generator.
    ``moved``: that generator was used where it cannot be seen, if that is known.
    """

    output: Any
    sites: tuple[SiteCall, ...]
    reached: frozenset[str]
    tensors: dict[str, Tensor | None]
    seeded: bool = False
    moved: bool = False
    arguments: Any = None  # what the model was called with, as the pass left it
    ragged: frozenset[str] = frozenset()  # sites with as many entries as values say

    @property
    def names(self) -> frozenset[str]:
        """Names of the sites that draw."""
        return frozenset(site.name for site in self.sites if site.draws)

    @property
    def masks(self) -> frozenset[str]:
        """Names of the sites that are dropout."""
        return frozenset(site.name for site in self.sites if site.is_mask)

    def returns_like(self, other: "Glance") -> bool:
        """Whether the outputs have the same structure and shapes."""
        return _shape_of(self.output) == _shape_of(other.output)


@dataclass(frozen=True)
class Flags:
    """The switches found, the pass that they give, and what was learned on the way."""

    switches: Switches
    glance: Glance
    reached: frozenset[str]
    notes: tuple[str, ...] = ()


Look = Callable[[Switches], Glance]


@dataclass(frozen=True)
class ModelView:
    """A model as it is looked at here.

    Attributes
    ----------
    name : str
        Its class.
    everything : frozenset of str
        Paths of all its modules.
    generators : sequence
        Those that it holds.
    look : callable
        Runs one pass with some switches.
    quiet : bool
        Nothing is dropped in such a pass.
    outside : bool
        It uses generators of torch that are not attributes of its modules.
    """

    name: str
    everything: frozenset[str]
    generators: Sequence[Any]
    look: Look
    quiet: bool = True
    outside: bool = False


def find_flags(model: ModelView, switches: Switches) -> Flags:
    """Add to ``switches`` what the model needs."""
    try:
        flags = _found(model, switches)
    except AutogradInside as inside:
        if switches.gradients:
            raise
        switches = replace(switches, above_autograd=True, gradients=inside.off)
        return find_flags(model, switches)
    return flags or find_flags(model, replace(switches, seeds_torch=True))


def _found(model: ModelView, switches: Switches) -> Flags | None:
    """The flags; None if the model seeds torch's generator and is not watched."""
    evaluated, in_evaluation = _watched(model, lambda: model.look(switches))
    if not _torch_is_ours(model, switches, evaluated, in_evaluation):
        return None
    trained, in_training = _watched(model, lambda: _trained(model, switches))
    seen = trained.glance
    on = replace(switches, on=trained.able)
    if not _torch_is_ours(model, on, seen, in_training):
        return None
    flags = _switch_on(model, switches, evaluated, trained)
    if in_evaluation.drawn or in_training.drawn:
        flags = replace(flags, switches=replace(flags.switches, host_generators=True))
    if in_training.drawn and not in_evaluation.drawn:
        # Who asked cannot be told: Python's generators leave no trace of their caller.
        if not seen.returns_like(evaluated):
            raise UnsupportedModelError(_HOST.format(name=model.name))
        switches = replace(flags.switches, on=trained.able)
        known = evaluated.names  # this pass may have skipped what another would not
        new = tuple(site for site in seen.sites if site.name not in known)
        glance = replace(seen, sites=evaluated.sites + new)
        flags = replace(flags, switches=switches, glance=glance)
    if not (evaluated.seeded or seen.seeded or model.outside):
        flags = replace(flags, switches=replace(flags.switches, seeds_torch=False))
    notes = (*flags.notes, *trained.notes(model.name))
    return replace(flags, reached=evaluated.reached | seen.reached, notes=notes)


def _watched(model: ModelView, call: Callable[[], Any]) -> tuple[Any, GeneratorUse]:
    with watched_generators(model.generators) as watch:
        result = call()
    return result, watch


def _torch_is_ours(
    model: ModelView, switches: Switches, glance: Glance, watch: GeneratorUse
) -> bool:
    """Whether a pass left torch's generator alone, or was watched while seeding it.

    Its numbers are the recorder's business: nobody else may have drawn any.
    """
    if watch.seeded or glance.seeded:
        return switches.seeds_torch
    if watch.moved or glance.moved:
        # It may have been another thread of the user: then other numbers of that
        # generator make no difference.
        with marked_torch_generators(()):
            again = [model.look(switches).output for _ in range(_REPEATS)]
        if not all(same_numbers(glance.output, output) for output in again):
            raise UnsupportedModelError(_HIDDEN.format(name=model.name))
    return True


# ------------------------------------------------------------ training mode


@dataclass(frozen=True)
class _Trained:
    """A pass with as many flags on as the model allows: those of ``able``."""

    glance: Glance
    able: frozenset[str]
    unable: frozenset[str] = frozenset()
    problem: str = ""

    def notes(self, name: str) -> tuple[str, ...]:
        if not self.unable:
            return ()
        paths = _listed(self.unable)
        return (_UNABLE.format(name=name, problem=self.problem, paths=paths),)


def _trained(model: ModelView, switches: Switches) -> _Trained:
    everything = model.everything
    try:
        glance = model.look(replace(switches, on=everything))
        return _Trained(glance, everything)
    except CaveatError:
        raise
    except Exception as error:
        problem = f"{type(error).__name__}: {error}".split("\n", 1)[0]
    able, glance = _deep_enough(model, switches)
    shallow = sorted(everything - able, key=lambda path: (-_depth(path), path))
    for path in shallow[:_MOST_TRIED]:
        found = _tried(model, replace(switches, on=able | {path}))
        if found is not None:
            able, glance = able | {path}, found
    return _Trained(glance, able, everything - able, problem)


def _deep_enough(model: ModelView, switches: Switches) -> tuple[frozenset[str], Glance]:
    """All modules below some depth, the smallest at which the model runs."""
    for depth in range(max(map(_depth, model.everything)) + 1):
        able = frozenset(path for path in model.everything if _depth(path) > depth)
        glance = _tried(model, replace(switches, on=able))
        if glance is not None:
            return able, glance
    return frozenset(), model.look(switches)


def _tried(model: ModelView, switches: Switches) -> Glance | None:
    """A pass with these switches, if the model can do that."""
    try:
        return model.look(switches)
    except CaveatError:
        raise
    except Exception:
        return None


def _depth(path: str) -> int:
    return path.count(".") + 1 if path else 0


# ------------------------------------------------------------ switches


def _wanted(evaluated: Glance, trained: Glance) -> list[SiteCall]:
    """Sites whose owners may have to be in training mode for them to count.

    These are the ones that evaluation does not reach, and random operations other than
    dropout: they may be drawn in evaluation, too, and not used.
    """
    return [
        site
        for site in trained.sites
        if site.draws and (site.name not in evaluated.names or not site.is_mask)
    ]


def _switch_on(
    model: ModelView, switches: Switches, evaluated: Glance, trained: _Trained
) -> Flags:
    wanted = _wanted(evaluated, trained.glance)
    names = {site.name for site in wanted}
    owners = frozenset(site.path for site in wanted)
    best, on = evaluated, switches.on
    for level in _levels(owners, trained.able):
        glance = _tried(model, replace(switches, on=on | level))
        if glance is None:
            continue
        if glance.returns_like(evaluated) and glance.names >= best.names:
            best, on = glance, on | level
        if names <= best.names:
            break
    notes = []
    if names - best.names:
        paths = _listed(names - best.names)
        notes.append(_UNREACHED.format(name=model.name, paths=paths))
    if model.quiet and best is not evaluated and _differs(best, evaluated):
        notes.append(_OTHERWISE.format(name=model.name, paths=_listed(owners)))
    return Flags(replace(switches, on=on), best, frozenset(), tuple(notes))


def _levels(owners: frozenset[str], able: frozenset[str]) -> Iterator[frozenset[str]]:
    """The owners, then their parents, and so on up; then all below them; then all."""
    level = owners
    while level:
        yield level & able
        level = frozenset(path.rpartition(".")[0] for path in level if path)
    if owners:
        yield frozenset(p for p in able if any(_is_below(p, owner) for owner in owners))
        yield able


def _is_below(path: str, owner: str) -> bool:
    return not owner or path.startswith((f"{owner}.", f"{owner}["))


def _differs(trained: Glance, evaluated: Glance) -> bool:
    """Whether the mode changes numbers, as far as that can be told from the noise.

    Dropout that drops nothing changes nothing; of other noise that cannot be said, but
    probabilities should stay probabilities.
    """
    if all(site.is_mask for site in trained.sites if site.draws):
        return not same_numbers(evaluated.output, trained.output, 1e-4)
    pairs = zip(*map(_floats, (evaluated.output, trained.output)), strict=True)
    return any(_are_probs(one) and not _are_probs(two) for one, two in pairs)


def _floats(output: Any) -> list[Tensor]:
    leaves = leaves_of(output)
    return [x for x in leaves if isinstance(x, Tensor) and x.is_floating_point()]


def _are_probs(x: Tensor) -> bool:
    if x.dim() < 2 or x.shape[-1] < 2 or not x.numel():
        return False
    return bool((x >= 0).all()) and bool(((x.sum(-1) - 1).abs() < 1e-3).all())


def _listed(paths: frozenset[str] | set[str]) -> str:
    return ", ".join(sorted(path or "(the model)" for path in paths)[:6])


def _shape_of(output: Any) -> Any:
    leaves, structure = flatten(output)
    shapes = [tuple(v.shape) if isinstance(v, Tensor) else type(v) for v in leaves]
    return structure.key, shapes
