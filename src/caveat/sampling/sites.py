"""The audit: every place where a model draws noise."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any, overload

from torch import Tensor, nn

from caveat._progress import python_generator_kept
from caveat.sampling.adapters import silent_adapters
from caveat.sampling.arguments import call_batch
from caveat.sampling.copying import ModelCopy
from caveat.sampling.inputs import Batch, check_model, telling
from caveat.sampling.keras_layers import drop_rate
from caveat.sampling.names import check_names
from caveat.sampling.noise import Law, Layout, NoiseSpec
from caveat.sampling.passes import SiteCall
from caveat.sampling.plans import Plan, plan_for
from caveat.sampling.registry import registered
from caveat.sampling.running import run_pass

if TYPE_CHECKING:
    from rich.table import Table


_HOST = """{name} also draws from a generator of Python or numpy, whose numbers leave no
trace of where they go: they are drawn, and are not in this table."""


@dataclass(frozen=True)
class Site:
    """One place where a model draws noise.

    Attributes
    ----------
    path : str
        The module that was running, as in ``model.named_modules()``; "" is the model.
    kind : str
        What is drawn.
    rate : float
        The drop rate, Pr(zero); 0 for noise that has no rate.
    mask_shape : tuple of int
        Shape of the noise of one draw. Size 1 along the rows: shared by all of them.
    fires_in_eval : bool
        Whether it draws in plain evaluation mode, without Caveat.
    """

    path: str
    kind: str
    rate: float
    mask_shape: tuple[int, ...]
    fires_in_eval: bool


@dataclass(frozen=True)
class Sites(Sequence[Site]):
    """All sites of a model in the order in which a pass reaches them.

    Attributes
    ----------
    model_name : str
        Class of the model.
    sites : tuple of Site
        In the order of the pass, one for each place that draws.
    prefix_share : float
        The share of the time of a forward pass that lies before the first site. This
        part is run once, whatever the number of draws.
    notes : tuple of str
        What no pass shows: adapters that were merged, or are switched off; numbers of
        Python's or numpy's generators, of which only the use is seen.
    """

    model_name: str
    sites: tuple[Site, ...]
    prefix_share: float
    notes: tuple[str, ...] = ()

    @overload
    def __getitem__(self, index: int) -> Site: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Site, ...]: ...
    def __getitem__(self, index: int | slice) -> Site | tuple[Site, ...]:
        return self.sites[index]

    def __len__(self) -> int:
        return len(self.sites)

    def __iter__(self) -> Iterator[Site]:
        return iter(self.sites)

    def __str__(self) -> str:
        with python_generator_kept():
            table = self._printed()
        once = f"{self.prefix_share:.0%} of a forward pass lies before the first site"
        return "\n".join((f"{table}{once} and is run once.", *self.notes))

    def __repr__(self) -> str:
        return f"{self}"

    def _printed(self) -> str:
        from rich.console import Console  # here: not everybody prints an audit

        console = Console(width=10_000, no_color=True, highlight=False)
        with console.capture() as capture:
            console.print(self._table())
        return capture.get()

    def _table(self) -> "Table":
        from rich.table import Table

        plural = "" if len(self) == 1 else "s"
        title = f"{self.model_name}: {len(self)} stochastic site{plural}"
        table = Table(title=title, title_justify="left")
        for heading in ("module", "kind"):
            table.add_column(heading, overflow="fold")
        table.add_column("rate", justify="right")
        table.add_column("mask", justify="right")
        table.add_column("fires in eval")
        for site in self.sites:
            fires = "yes" if site.fires_in_eval else "no"
            shape = " x ".join(map(str, site.mask_shape)) or "1"
            name = site.path or "(model)"
            table.add_row(name, site.kind, f"{site.rate:g}", shape, fires)
        return table


def audit(model: nn.Module, *inputs: Any, **kwinputs: Any) -> Sites:
    """Find every place where ``model`` draws noise, with any of its flags.

    The model runs a few times on these inputs, as a copy; it is not changed.

    Parameters
    ----------
    model : nn.Module
        A trained network.
    *inputs, **kwinputs
        What the model is called with: one batch, rows on the first axis.

    Returns
    -------
    Sites
        A sequence of :class:`Site`; printing it shows a table.

    Raises
    ------
    NoStochasticSiteError
        If nothing in the model is random.

    Examples
    --------
    >>> import torch, caveat
    >>> from torch import nn
    >>> net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.Linear(8, 1))
    >>> sites = caveat.audit(net, torch.zeros(5, 4))
    >>> [(site.path, site.rate, site.mask_shape) for site in sites]
    [('1', 0.1, (1, 8))]
    """
    model = check_model(model)
    check_names("audit", model, kwinputs)
    batch = call_batch(model, inputs, kwinputs, axis=0)
    with telling(batch, model):
        plan = plan_for(model, batch)
    firing = _firing_in_eval(model, batch, plan)
    seen, share = _timed(model, batch, plan)
    modules = ModelCopy(model).modules
    sites = tuple(
        _describe(call, plan, batch.rows, modules.get(call.path), call.name in firing)
        for call in seen
    )
    notes = silent_adapters(model)
    if plan.switches.host_generators:
        notes = (*notes, _HOST.format(name=type(model).__name__))
    return Sites(type(model).__name__, sites, share, notes)


def _describe(
    call: SiteCall, plan: Plan, rows: int, module: nn.Module | None, fires: bool
) -> Site:
    kind, rate, shape = call.kind, call.rate, call.shape
    entry = None if module is None else registered(module)
    if entry is not None:
        kind, rate = entry.kind, float(entry.rate(module))
    elif (known := drop_rate(module)) is not None:
        rate = float(known)
    layout = plan.layouts.get(call.name)
    if layout is not None and shape[layout.axis] == rows * layout.factor:
        split = list(layout.split(shape, rows))
        split[layout.row_axis] = 1
        shape = tuple(split)
    return Site(call.path, kind, rate, shape, fires)


@dataclass
class _ClockOmega:
    """Draws nothing; notes when the first site is reached."""

    seed: int = 0
    draw: int = 0
    shared: bool = True
    reached: float | None = None
    looks: bool = True
    rows: int = 0

    def visit(self, site: SiteCall, tensor: Tensor | None, *, has_values: bool) -> None:
        if self.reached is None:
            self.reached = time.perf_counter()

    def spec(
        self, site: SiteCall, law: Law, shape: Sequence[int], like: Tensor
    ) -> tuple[NoiseSpec, Layout | None] | None:
        return None


def _firing_in_eval(model: nn.Module, batch: Batch, plan: Plan) -> frozenset[str]:
    """Names of the sites that draw when all flags are off and nothing is forced."""
    switches = replace(plan.switches, on=frozenset(), plain=True)
    _, run = run_pass(model, batch, _ClockOmega(), switches, record=False)
    return frozenset(site.name for site in run.sites if site.fires)


def _timed(
    model: nn.Module, batch: Batch, plan: Plan, repeats: int = 3
) -> tuple[list[SiteCall], float]:
    """The sites of a pass, and the share of its time before the first of them."""
    shares = []
    for _ in range(repeats):
        omega = _ClockOmega()
        _, run = run_pass(model, batch, omega, plan.switches, record=False)
        before = (omega.reached or run.started) - run.started
        shares.append(before / (run.finished - run.started))
    return run.sites, median(shares)
