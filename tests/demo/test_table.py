"""The numbers of a report as they are printed and kept."""

import io
import json
from pathlib import Path

from rich.console import Console

from caveat.demo.table import Report, table, write_json
from caveat.demo.timing import Timing


def report(name: str = "CO2", error: float = 1.23456) -> Report:
    return Report(
        task=name,
        unit="ppm",
        error=error,
        standard_error=2.0,
        log_likelihood=-1.23456,
        n_draws=50,
        timing=Timing(0.5, 6.0, 10),
        settings={"width": 8},
        picture="a picture [of letters]",
        figure=Path("folder") / "co2.png",
    )


def rows(*reports: Report) -> dict[str, list[str]]:
    """{name of a row: its cells}, read back from the columns."""
    columns = [list(column.cells) for column in table(reports).columns]
    return {name: [c[k] for c in columns[1:]] for k, name in enumerate(columns[0])}


def test_cells_are_the_numbers_in_their_units() -> None:
    assert rows(report()) == {
        "error, MC dropout": ["1.23 ppm"],
        "error, standard dropout": ["2 ppm"],
        "log-likelihood": ["-1.235"],
        "draws T": ["50"],
        "time for T draws": ["0.50 s"],
        "plain loop": ["6.00 s (10)"],
        "speed-up": ["12.0×"],
    }


def test_each_task_has_its_column() -> None:
    found = rows(report("a", 1.0), report("b", 3.0))
    assert found["error, MC dropout"] == ["1 ppm", "3 ppm"]
    console = Console(record=True, width=100, file=io.StringIO())
    console.print(table([report("a"), report("b")]))
    assert "on the test data" in console.export_text()


def test_json_has_the_numbers_and_the_name_of_the_figure(tmp_path) -> None:
    path = tmp_path / "demo.json"
    write_json([report()], path)
    (found,) = json.loads(path.read_text())
    assert found["figure"] == "co2.png"
    assert found["speed_up"] == 12.0
    assert found["error"] == 1.23456
    assert found["timing"] == {
        "seconds": 0.5,
        "plain_seconds": 6.0,
        "plain_passes": 10,
    }
    assert found["settings"] == {"width": 8}
