"""One pass of a model as a graph of ATen operations, noise among its inputs.

The pass is that of the sampling engine: its copy of the model, its switches, its rules
for random operations and its names of sites. Only the tensors have no values, and the
number of rows is a symbol. So whatever the engine can sample along one way is traced,
and every site gets the noise that it has there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, fx, nn

from caveat._torch import OpOverload, SymbolicRows, functional_graph
from caveat.errors import CaveatError, UnsupportedModelError
from caveat.exporting.drawing import SiteNoise
from caveat.sampling.engine import Sampler
from caveat.sampling.inputs import Batch
from caveat.sampling.noise import Law, Layout, NoiseSpec
from caveat.sampling.passes import DrawOmega, SiteCall
from caveat.sampling.plans import Plan, plan_for
from caveat.sampling.running import run_pass
from caveat.sampling.trees import flatten

Pick = Callable[[list[Any], Any], Tensor]

_NO_GRAPH = """{name} cannot be exported: no graph could be made of a pass
({kind}: {error}). The values of tensors must not decide what the model's Python code
does, and every operation must be torch's own."""

_OTHER_SITES = """{name} cannot be exported: it draws at {found} while it is traced, and
at {expected} when it runs. Its way must not depend on the values of tensors."""

_CUSTOM = """{name} cannot be exported: a custom operator has no graph that others run
({custom}). Write it in operations of torch."""

_FIXED_ROWS = """{name} cannot be exported: it treats the number of rows as a constant
({rows} in the example), so a graph would be good for that number alone. Look for
int(x.shape[0]), len(x) in a loop over rows, or a tensor made for one batch size."""


@dataclass(frozen=True)
class Traced:
    """A pass as a graph.

    Attributes
    ----------
    graph : fx.GraphModule
        From the tensors of the batch and the noise of each site to the output.
    sites : tuple of SiteNoise
        In the order of the inputs for noise.
    inputs : tuple of int
        Which leaves of the batch the first inputs are.
    together : bool
        Noise has rows: every row may belong to another draw.
    symbol : SymInt
        The number of rows, in the shapes of the graph.
    """

    graph: fx.GraphModule
    sites: tuple[SiteNoise, ...]
    inputs: tuple[int, ...]
    together: bool
    symbol: Any


@dataclass
class _Noting(DrawOmega):
    """Draws as always, and notes what is drawn."""

    found: list[SiteNoise] = field(default_factory=list)

    def spec(
        self, site: SiteCall, law: Law, shape: Sequence[int], like: Tensor
    ) -> tuple[NoiseSpec, Layout | None]:
        spec, layout = super().spec(site, law, shape, like)
        self.found.append(SiteNoise.of(site, spec, layout, self.shared))
        return spec, layout


@dataclass
class _Given(DrawOmega):
    """Hands out noise that is already there, in the order of the sites."""

    noise: Sequence[Tensor] = ()
    names: list[str] = field(default_factory=list)

    def spec(
        self, site: SiteCall, law: Law, shape: Sequence[int], like: Tensor
    ) -> tuple[NoiseSpec, Layout | None]:
        spec, layout = super().spec(site, law, shape, like)
        number = len(self.names)
        self.names.append(site.name)
        if number >= len(self.noise):
            raise MoreSites
        return _GivenNoise(**_fields(spec), value=self.noise[number]), layout


class MoreSites(Exception):
    """The traced pass draws more often than the one that ran."""


@dataclass(frozen=True)
class _GivenNoise(NoiseSpec):
    """Noise whose value is an input of the graph."""

    value: Tensor = field(default_factory=lambda: torch.empty(0))

    def sample(self, seed: int, draws: range) -> Tensor:
        return self.value.unsqueeze(0)


def sites_of(sampler: Sampler, batch: Batch, plan: Plan) -> tuple[SiteNoise, ...]:
    """What is drawn in a pass, by running it."""
    omega = _Noting(**vars(sampler.omega(plan, batch, 0)))
    with torch.no_grad():
        run_pass(sampler.model, batch, omega, plan.switches, record=False)
    return tuple(omega.found)


def trace(
    sampler: Sampler,
    batch: Batch,
    sites: tuple[SiteNoise, ...],
    pick: Pick,
    *,
    together: bool,
) -> Traced:
    """The graph of a pass on batches like this one, of any number of rows."""
    model, plan = sampler.model, plan_for(sampler.model, batch)
    inputs = tuple(i for i, v in enumerate(batch.leaves) if isinstance(v, Tensor))
    omega = sampler.omega(plan, batch, 0)
    names: list[str] = []

    def one_pass(*tensors: Tensor) -> Tensor:
        given, noise = tensors[: len(inputs)], tensors[len(inputs) :]
        leaves = list(batch.leaves)
        for place, tensor in zip(inputs, given, strict=True):
            leaves[place] = tensor
        own = replace(batch, leaves=tuple(leaves), rows=rows.symbol)
        settings = {**vars(omega), "rows": rows.symbol, "noise": noise}
        if together:
            settings["shared"] = False
        drawn = _Given(**settings)
        output, _ = run_pass(model, own, drawn, plan.switches, record=False)
        names[:] = drawn.names
        return pick(*flatten(output))

    rows = SymbolicRows()
    tensors = [batch.leaves[i] for i in inputs]
    axes = [batch.axis if batch.batched[i] else None for i in inputs]
    given = rows.inputs(tensors, axes)
    noise = [rows.empty(*_noise_shape(site, rows.symbol, together)) for site in sites]
    try:
        graph = functional_graph(one_pass, [*given, *noise])
    except CaveatError:
        raise
    except MoreSites:
        graph = None
    except Exception as error:
        raise UnsupportedModelError(
            _NO_GRAPH.format(name=_name(model), kind=type(error).__name__, error=error)
        ) from error
    expected = [site.spec.name for site in sites]
    if graph is None or names != expected:
        raise UnsupportedModelError(
            _OTHER_SITES.format(name=_name(model), found=names, expected=expected)
        )
    custom = {
        str(node.target)
        for node in graph.graph.nodes
        if isinstance(node.target, OpOverload)
        and node.target.namespace not in ("aten", "prim", "prims")
    }
    if custom:
        raise UnsupportedModelError(
            _CUSTOM.format(name=_name(model), custom=", ".join(sorted(custom)))
        )
    if rows.is_fixed:
        raise UnsupportedModelError(
            _FIXED_ROWS.format(name=_name(model), rows=batch.rows)
        )
    return Traced(graph, sites, inputs, together, rows.symbol)


def _noise_shape(
    site: SiteNoise, rows: Any, together: bool
) -> tuple[list[Any], torch.dtype]:
    shape: list[Any] = list(site.spec.shape)
    if site.row_axis is not None and (together or site.per_row):
        shape[site.row_axis] = rows
    return shape, site.spec.dtype


def _fields(spec: NoiseSpec) -> dict[str, Any]:
    return {name: getattr(spec, name) for name in NoiseSpec.__dataclass_fields__}


def _name(model: nn.Module) -> str:
    return type(model).__name__
