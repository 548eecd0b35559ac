"""Both tasks, one after the other."""

from collections.abc import Mapping
from pathlib import Path

from rich.console import Console

from caveat.demo import co2, digits
from caveat.demo.table import Report, table, write_json


def run(
    output: Path,
    *,
    quick: bool = False,
    seed: int = 0,
    console: Console | None = None,
) -> list[Report]:
    """Run the demo on embedded data; print a table and write figures and numbers.

    Parameters
    ----------
    output : Path
        A folder, made if need be: ``demo.json``, and, if matplotlib is installed,
        ``co2.png`` and ``digits.png``.
    quick : bool
        Small nets, trained briefly, to see that it works.
    seed : int
        Of weights, batches and draws. Same seed, same numbers, but for times.
    console : rich.console.Console, optional
        Where to print.

    Returns
    -------
    list of Report
        One for CO2, one for digits.
    """
    console = console or Console()
    output.mkdir(parents=True, exist_ok=True)
    reports = [
        co2.run(output, co2.QUICK if quick else co2.FULL, seed=seed),
        digits.run(output, digits.QUICK if quick else digits.FULL, seed=seed),
    ]
    numbers = output / "demo.json"
    write_json(reports, numbers)
    for report in reports:
        console.print(report.picture, highlight=False, markup=False, soft_wrap=True)
        console.print()
    console.print(table(reports))
    for report in reports:
        console.print(_sentence(report), highlight=False, markup=False)
    figures = [report.figure for report in reports if report.figure is not None]
    for path in (*figures, numbers):
        console.print(f"wrote {path}", highlight=False, markup=False, soft_wrap=True)
    if not figures:
        console.print(_NO_FIGURES, highlight=False, markup=False)
    return reports


_NO_FIGURES = """No figures: they need matplotlib, which comes with the extra [plot]
(pip install matplotlib)."""


def _sentence(report: Report) -> str:
    return f"{report.task}: {_settings_text(report.settings)}"


def _settings_text(settings: Mapping[str, object]) -> str:
    return ", ".join(
        f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in settings.items()
    )
