"""What the demo found: one report per task, shown as one table and kept as JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.table import Table

from caveat.demo.timing import Timing


@dataclass(frozen=True)
class Report:
    """The outcome of one task.

    Attributes
    ----------
    task : str
        Its name.
    unit : str
        Of the errors.
    error, standard_error : float
        On the test data, of the predictive and of standard dropout.
    log_likelihood : float
        Mean per test point, of the predictive.
    n_draws : int
        T of the papers.
    timing : Timing
        Of the draws.
    settings : mapping
        What else one needs to know.
    picture : str
        The same in letters.
    figure : Path or None
        The figure written; None where matplotlib is not installed.
    """

    task: str
    unit: str
    error: float
    standard_error: float
    log_likelihood: float
    n_draws: int
    timing: Timing
    settings: Mapping[str, object]
    picture: str
    figure: Path | None


def table(reports: Sequence[Report]) -> Table:
    """One column per task."""
    shown = Table(title="caveat demo", caption=_CAPTION, caption_justify="left")
    shown.add_column("on the test data")
    for report in reports:
        shown.add_column(report.task, justify="right", overflow="fold")
    columns = [_cells(report) for report in reports]
    for name in columns[0]:
        shown.add_row(name, *(column[name] for column in columns))
    return shown


_CAPTION = (
    "Log-likelihood: mean per test point, eq. 13 of the paper in units of y, or log "
    "probability of the label. Plain loop: T passes with dropout on, timed on the "
    "passes in brackets and scaled to T."
)


def _cells(report: Report) -> dict[str, str]:
    timing = report.timing
    return {
        "error, MC dropout": f"{report.error:.3g} {report.unit}",
        "error, standard dropout": f"{report.standard_error:.3g} {report.unit}",
        "log-likelihood": f"{report.log_likelihood:.3f}",
        "draws T": f"{report.n_draws}",
        "time for T draws": f"{timing.seconds:.2f} s",
        "plain loop": f"{timing.plain_seconds:.2f} s ({timing.plain_passes})",
        "speed-up": f"{timing.speed_up:.1f}×",
    }


def write_json(reports: Sequence[Report], path: Path) -> None:
    """Write the numbers, the settings and the names of the figures."""
    content = [
        asdict(report) | {"figure": _name(report), "speed_up": report.timing.speed_up}
        for report in reports
    ]
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", "utf-8")


def _name(report: Report) -> str | None:
    return None if report.figure is None else report.figure.name
