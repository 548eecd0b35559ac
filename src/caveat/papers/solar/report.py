"""The page of appendix D.1: how the gaps are filled."""

from collections.abc import Iterator, Sequence

from caveat.data import SolarData
from caveat.papers.output import markdown_table
from caveat.papers.series.jobs import (
    ERF_KERNEL,
    FEW_DRAWS,
    RELU_KERNEL,
    SQUARED_EXPONENTIAL,
    Effort,
)
from caveat.papers.series.points import MC, PROCESS, STANDARD, Curve, Point
from caveat.papers.series.words import claim, settings_table, training, verdict
from caveat.papers.solar.models import RELU_4, RELU_5, TANH_5, nets

NOMINAL, SLACK = 0.95, 0.05
WIDER = 1.05  # sd in the gaps over that on the data, from which it is larger
_TITLE = "Appendix D.1 of paper 001: solar irradiance interpolated"
_READING = """x and y are standardised as in the paper. The sd is that of the function;
a prediction with noise adds the noise variance 1/τ that is best for the bound on the
training points (of a GP, that of the marginal likelihood). Hyper-parameters of a GP are
by marginal likelihood. "ReLU net" and "erf net" are the covariance functions of such
nets of infinite width; erf stands for tanh, since its kernel has a closed form. The two
ReLU nets are the released ones; no tanh net was released for this series, ours has the
settings of the one for CO2."""
_WORDS = (
    "In the appendix (section D.1) we give further results on a second dataset, the "
    "reconstructed solar irradiance dataset, to assess model interpolation."
)


def named_curves(points: Sequence[Point], n_draws: int) -> dict[str, Curve]:
    """All that have an sd, as the page names them."""
    found = {
        f"{model}, T = {count}": Curve.of(points, model, MC, n_draws=count)
        for model, count in (
            (RELU_5, n_draws),
            (RELU_4, n_draws),
            (TANH_5, n_draws),
            (RELU_5, FEW_DRAWS),
        )
    }
    for name in (SQUARED_EXPONENTIAL, RELU_KERNEL, ERF_KERNEL):
        found[f"GP, {name}"] = Curve.of(points, name, PROCESS)
    return found


def widening(curve: Curve) -> float:
    """The mean sd in the gaps over that on the data."""
    return curve.part("gap").sd / curve.part("train").sd


def render(points: Sequence[Point], data: SolarData, effort: Effort) -> Iterator[str]:
    """The parts of the page.

    Parameters
    ----------
    points : sequence of Point
        Of all models.
    data : SolarData
        What they were trained on.
    effort : Effort
        That of the run.

    Yields
    ------
    str
        The title, then Markdown.
    """
    curves = named_curves(points, effort.n_draws)
    yield _TITLE
    yield (
        f"Data: {data.source}; {len(data.train)} points to learn from, "
        f"{len(data.test)} in {len(data.gaps)} gaps."
    )
    yield training(nets(effort))
    yield settings_table(nets(effort))
    yield _READING
    yield "## Numbers"
    yield _table(Curve.of(points, RELU_5, STANDARD), curves)
    yield "## Gap by gap: observations within 2 sd, with noise"
    yield _gaps(curves, data)
    yield "## The paper"
    yield claim(_WORDS, "The text of its figure is not at hand: no claim is quoted.")
    yield _verdicts(curves, effort.n_draws)


def _table(standard: Curve, curves: dict[str, Curve]) -> str:
    head = ["model", "sd, data", "sd, gaps", "gaps/data", "noise sd", "RMSE, data"]
    head += ["RMSE, gaps", "gaps within 2 sd", "with noise"]
    first = [f"{RELU_5}, standard", *["none"] * 4, *_errors(standard), "-", "-"]
    return markdown_table(head, [first, *(_row(n, c) for n, c in curves.items())])


def _row(name: str, curve: Curve) -> list[str]:
    gap = curve.part("gap")
    return [
        name,
        f"{curve.part('train').sd:.3f}",
        f"{gap.sd:.3f}",
        f"{widening(curve):.2f}",
        f"{curve.points[0].noise_sd:.3f}",
        *_errors(curve),
        f"{gap.coverage(noise=False):.0%}",
        f"{gap.coverage(noise=True):.0%}",
    ]


def _errors(curve: Curve) -> list[str]:
    return [f"{curve.part(name).error:.3f}" for name in ("train", "gap")]


def _gaps(curves: dict[str, Curve], data: SolarData) -> str:
    head = ["model", *(f"points {gap.first}-{gap.last}" for gap in data.gaps)]
    rows = [
        [
            name,
            *(f"{_covered(curve, gap.x_first, gap.x_last):.0%}" for gap in data.gaps),
        ]
        for name, curve in curves.items()
    ]
    return markdown_table(head, rows)


def _covered(curve: Curve, first: float, last: float) -> float:
    slack = 1e-4  # numbers in the file have six digits
    own = curve.part("gap").between(first - slack, last + slack)
    return own.coverage(noise=True)


def _verdicts(curves: dict[str, Curve], n_draws: int) -> str:
    relu = curves[f"{RELU_5}, T = {n_draws}"]
    process = curves[f"GP, {SQUARED_EXPONENTIAL}"]
    lines = [
        "What the numbers say of interpolation:",
        f"- the GP is less sure in the gaps than on the data ({widening(process):.2f} "
        f"times the sd): {verdict(widening(process) > WIDER)}",
        f"- so is the ReLU net ({widening(relu):.2f} times): "
        f"{verdict(widening(relu) > WIDER)}",
        *(
            f"- within 2 sd with noise are {NOMINAL - SLACK:.0%} to "
            f"{NOMINAL + SLACK:.0%} of the points in gaps, {name}: "
            f"{verdict(_is_nominal(curve))} "
            f"({curve.part('gap').coverage(noise=True):.0%})"
            for name, curve in curves.items()
        ),
    ]
    return lines[0] + "\n\n" + "\n".join(lines[1:])


def _is_nominal(curve: Curve) -> bool:
    return abs(curve.part("gap").coverage(noise=True) - NOMINAL) <= SLACK + 1e-9
