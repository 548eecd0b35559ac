"""Which modules must run in training mode for every site to draw.

Most dropout is seen whatever the flags say. But a module may ask ``self.training`` in
Python and then not even call dropout. All flags on would find these, and would also
change what some models return. So: run with all flags on, note which module was running
at each random operation that evaluation does not reach, and switch on only these, then
one more level of their parents at a time (a parent may ask, too), as long as the model
returns what it returns in evaluation.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from caveat._torch import pytree
from caveat.errors import CaveatError, UnsupportedModelError
from caveat.sampling.guard import AutogradInside
from caveat.sampling.host import watched_host_generators
from caveat.sampling.passes import SiteCall
from caveat.sampling.running import Switches

_HOST = """{name} draws from Python's or numpy's global generator in training mode,
where it also returns something else: it cannot be sampled. Use torch.rand instead."""


@dataclass(frozen=True)
class Glance:
    """What one pass showed."""

    output: Any
    sites: tuple[SiteCall, ...]
    reached: frozenset[str]
    tensors: dict[str, Tensor | None]
    arguments: Any = None  # what the model was called with, as the pass left it

    @property
    def names(self) -> frozenset[str]:
        """Names of the sites that draw."""
        return frozenset(site.name for site in self.sites if site.draws)

    def returns_like(self, other: "Glance") -> bool:
        """Whether the outputs have the same structure and shapes."""
        return _shape_of(self.output) == _shape_of(other.output)


@dataclass(frozen=True)
class Flags:
    """The switches found, the pass that they give, and what was learned on the way."""

    switches: Switches
    glance: Glance
    reached: frozenset[str]
    unreached: tuple[str, ...] = ()


def find_flags(
    name: str,
    everything: frozenset[str],
    switches: Switches,
    look: Callable[[Switches], Glance],
) -> Flags:
    """Add to ``switches`` what the model needs; ``look`` runs one pass with some.

    ``everything`` are the paths of all modules of the model called ``name``.
    """
    try:
        return _found(name, everything, switches, look)
    except AutogradInside:
        switches = replace(switches, above_autograd=True)
        return _found(name, everything, switches, look)


def _found(
    name: str,
    everything: frozenset[str],
    switches: Switches,
    look: Callable[[Switches], Glance],
) -> Flags:
    with watched_host_generators() as in_evaluation:
        evaluated = look(switches)
    with watched_host_generators() as in_training:
        trained = _trained(replace(switches, on=everything), look)
    sites = trained.sites if trained is not None else ()
    reached = evaluated.reached | (trained.reached if trained is not None else set())
    flags = _switch_on(switches, evaluated, look, _wanted(evaluated, sites))
    if in_evaluation[0] or in_training[0]:
        flags = replace(flags, switches=replace(flags.switches, host_generators=True))
    if in_training[0] and not in_evaluation[0]:
        # Who asked cannot be told: Python's generators leave no trace of their caller.
        if trained is None or not trained.returns_like(evaluated):
            raise UnsupportedModelError(_HOST.format(name=name))
        switches = replace(flags.switches, on=everything)
        known = evaluated.names  # this pass may have skipped what another would not
        new = tuple(site for site in trained.sites if site.name not in known)
        glance = replace(trained, sites=evaluated.sites + new)
        flags = replace(flags, switches=switches, glance=glance)
    return replace(flags, reached=frozenset(reached))


def _trained(switches: Switches, look: Callable[[Switches], Glance]) -> Glance | None:
    """A pass with all flags on, if the model can do that."""
    try:
        return look(switches)
    except CaveatError:
        raise
    except Exception:
        return None


def _wanted(evaluated: Glance, trained: tuple[SiteCall, ...]) -> list[SiteCall]:
    """Sites whose owners may have to be in training mode for them to count.

    These are the ones that evaluation does not reach, and random operations other than
    dropout: they may be drawn in evaluation, too, and not used.
    """
    return [
        site
        for site in trained
        if site.draws and (site.name not in evaluated.names or not site.is_mask)
    ]


def _switch_on(
    switches: Switches,
    evaluated: Glance,
    look: Callable[[Switches], Glance],
    wanted: list[SiteCall],
) -> Flags:
    names = {site.name for site in wanted}
    best, on = evaluated, switches.on
    for level in _levels(frozenset(site.path for site in wanted)):
        glance = look(replace(switches, on=on | level))
        if glance.returns_like(evaluated) and glance.names >= best.names:
            best, on = glance, on | level
        if names <= best.names:
            break
    unreached = tuple(sorted(names - best.names))
    return Flags(replace(switches, on=on), best, frozenset(), unreached)


def _levels(owners: frozenset[str]) -> Iterator[frozenset[str]]:
    """The owners, then their parents, and so on up to the model itself."""
    level = owners
    while level:
        yield level
        level = frozenset(path.rpartition(".")[0] for path in level if path)


def _shape_of(output: Any) -> Any:
    leaves, structure = pytree.tree_flatten(output)
    shapes = [tuple(v.shape) if isinstance(v, Tensor) else type(v) for v in leaves]
    return str(structure), shapes
