"""Appendix D.1 of paper 001: solar irradiance, its gaps interpolated."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from caveat.data import load_solar
from caveat.data.series import SolarGap
from caveat.papers.page import Part, bullets, claim, table, verdict
from caveat.papers.series.experiment import Series, SeriesEffort, fair
from caveat.papers.series.fitted import FITTED, FittedNet
from caveat.papers.series.models import (
    ERF_KERNEL,
    KERNELS,
    RELU_4,
    RELU_5,
    RELU_KERNEL,
    SQUARED_EXPONENTIAL,
    TANH_5,
    SeriesTask,
)
from caveat.papers.series.nets import Net
from caveat.papers.series.panels import Observed, draw_panels
from caveat.papers.series.points import Curve, Curves, Places, Point
from caveat.papers.style import legend_below, name_outer

_NETS = (RELU_5, RELU_4, TANH_5)
NOMINAL, SLACK = 0.95, 0.05
WIDER = 1.05  # sd in the gaps over that on the data, from which it is larger
_READING = """x and y are standardised as in the paper: the released files hold no
years and no W/m², nor what they were divided by, so the figure has no units either. The
sd is that of the function;
a prediction with noise adds the noise variance 1/τ that is best for the bound on the
training points (of a GP, that of the marginal likelihood). Hyper-parameters of a GP are
by marginal likelihood. "ReLU net" and "erf net" are the covariance functions of such
nets of infinite width; erf stands for tanh, since its kernel has a closed form. The two
ReLU nets are the released ones; no tanh net was released for this series, ours has the
settings of the one for CO2."""


@dataclass(frozen=True)
class Solar(Series):
    """The two released nets, but for the number of steps, and tanh as for CO2."""

    name = "solar"
    title = "Appendix D.1 of paper 001: solar irradiance interpolated"
    full = SeriesEffort(width=1024, n_steps=600, n_draws=1000, every=3, n_restarts=2)

    @property
    def nets(self) -> tuple[Net, ...]:
        size = self.effort.size | {"batch_size": 275}
        return (
            Net(RELU_5, "relu", 4, 0.1, 5e-2, weight_decay=5e-6, **size),
            Net(TANH_5, "tanh", 4, 0.1, 5e-3, weight_decay=5e-7, **size),
            Net(RELU_4, "relu", 3, 0.1, 3e-2, weight_decay=3e-6, **size),
        )

    @property
    def fitted(self) -> tuple[FittedNet, ...]:
        return (
            self.relu(RELU_5, 4, 1600),
            self.tanh(TANH_5, 0.1, 1600, rate=3e-4),
            self.relu(RELU_4, 3, 1600),
        )

    @property
    def task(self) -> SeriesTask:
        """The points of the gaps, and some of the training points."""
        data, every = load_solar(), self.effort.every
        known = ("train", data.train.x[::every], data.train.y[::every])
        places = Places.of([known, ("gap", data.test.x, data.test.y)])
        return SeriesTask(data.train.x, data.train.y, places)

    def row(self, curve: Curve) -> dict[str, str]:
        train, gap = curve.part("train"), curve.part("gap")
        return {
            "sd, data": f"{train.sd:.3f}",
            "sd, gaps": f"{gap.sd:.3f}",
            "gaps/data": f"{widening(curve):.2f}",
            "noise sd": f"{curve.points[0].noise_sd:.3f}",
            "RMSE, data": f"{train.error:.3f}",
            "RMSE, gaps": f"{gap.error:.3f}",
            "gaps within 2 sd": f"{gap.coverage(noise=False):.0%}",
            "with noise": f"{gap.coverage(noise=True):.0%}",
        }

    def page(self, records: Sequence[Point]) -> Iterator[Part]:
        curves, data = self.curves(records), load_solar()
        named = named_curves(curves)
        yield (
            f"Data: {data.source}; {len(data.train)} points to learn from, "
            f"{len(data.test)} in {len(data.gaps)} gaps."
        )
        yield from self.settings()
        yield _READING
        yield "## Numbers"
        yield self.numbers(curves, named)
        yield "## Gap by gap: observations within 2 sd, with noise"
        yield table(
            {"model": name}
            | {
                f"points {gap.first}-{gap.last}": f"{_covered(curve, gap):.0%}"
                for gap in data.gaps
            }
            for name, curve in named.items()
        )
        yield "## The paper"
        yield claim(
            """In the appendix (section D.1) we give further results on a second
            dataset, the reconstructed solar irradiance dataset, to assess model
            interpolation.""",
            "The text of its figure is not at hand: no claim is quoted.",
        )
        yield "What the numbers say of interpolation:"
        yield bullets(_verdicts(curves, named))

    def in_brief(self, records: Sequence[Point]) -> tuple[str, str]:
        curves = self.curves(records)
        relu, tanh = (curves.mc(name + FITTED) for name in (RELU_5, TANH_5))
        process = curves.process(SQUARED_EXPONENTIAL)
        shares = [c.part("gap").coverage(noise=True) for c in (relu, tanh, process)]
        paper = "a second series, to assess interpolation; its text is not at hand"
        ours = f"""in the gaps the sd is {widening(relu):.1f} times that on the data for
            ReLU, {widening(tanh):.1f} for tanh and {widening(process):.0f} for a GP,
            and {shares[0]:.0%}, {shares[1]:.0%} and {shares[2]:.0%} of the points there
            are within 2 sd with noise"""
        return paper, ours

    def figure(self, records: Sequence[Point]) -> Figure:
        """The gaps and what fills them: a panel per model."""
        data, curves = load_solar(), self.curves(records)
        observed = Observed(data.train.x, data.train.y, data.test.x, data.test.y)
        released = f"as released, {curves.mc(RELU_5).n_steps:,} iterations"
        content = [
            ("Standard dropout, ReLU, fitted", curves.standard(RELU_5 + FITTED)),
            ("GP, squared exponential", curves.process(SQUARED_EXPONENTIAL)),
            ("MC dropout, ReLU, fitted", curves.mc(RELU_5 + FITTED)),
            ("MC dropout, tanh, fitted", curves.mc(TANH_5 + FITTED)),
            (f"ReLU, {released}", curves.mc(RELU_5)),
            (f"tanh, {released}", curves.mc(TANH_5)),
            ("GP, kernel of the ReLU net", curves.process(RELU_KERNEL)),
            ("GP, kernel of an erf net", curves.process(ERF_KERNEL)),
        ]
        figure, grid = draw_panels(content, observed, limits=(-3.6, 3.6))
        for axes in grid.ravel().tolist():
            for gap in data.gaps:
                ends = gap.x_first, gap.x_last
                axes.axvspan(*ends, color="0.93", linewidth=0, zorder=0)
            axes.grid(visible=False)
        name_outer(grid, "year, standardised", "irradiance")
        legend_below(figure, grid[0, 0], ncols=3)
        return figure


def named_curves(curves: Curves) -> dict[str, Curve]:
    """All that have an sd, as the page names them."""
    return curves.named((*(n + FITTED for n in _NETS), *_NETS), KERNELS)


def widening(curve: Curve) -> float:
    """The mean sd in the gaps over that on the data."""
    return curve.part("gap").sd / curve.part("train").sd


def _covered(curve: Curve, gap: SolarGap) -> float:
    slack = 1e-4  # numbers in the file have six digits
    own = curve.part("gap").between(gap.x_first - slack, gap.x_last + slack)
    return own.coverage(noise=True)


def _verdicts(curves: Curves, named: Mapping[str, Curve]) -> Iterator[str]:
    process = curves.process(SQUARED_EXPONENTIAL)
    yield f"""the GP is less sure in the gaps than on the data ({widening(process):.2f}
        times the sd): {verdict(widening(process) > WIDER)}"""
    for name, unit in ((RELU_5, "ReLU"), (TANH_5, "tanh")):
        curve = curves.mc(name + FITTED)
        with fair(curve):
            wider = verdict(widening(curve) > WIDER)
        yield f"so is the {unit} net, fitted ({widening(curve):.2f} times): {wider}"
    for name, curve in named.items():
        share = curve.part("gap").coverage(noise=True)
        with fair(curve):
            nominal = verdict(abs(share - NOMINAL) <= SLACK + 1e-9)
        yield f"""within 2 sd with noise are {NOMINAL - SLACK:.0%} to
            {NOMINAL + SLACK:.0%} of the points in gaps, {name}: {nominal}
            ({share:.0%})"""
