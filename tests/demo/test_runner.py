"""Both tasks are run with the effort and the seed that were asked for."""

import io
import json

import pytest
from rich.console import Console

from caveat.demo import co2, digits, runner
from tests.demo.test_table import report


@pytest.fixture
def calls(monkeypatch):
    """The arguments of both tasks, which are not run."""
    made = []

    def fake(name):
        def run(folder, effort, *, seed):
            made.append((name, folder, effort, seed))
            return report(name)

        return run

    monkeypatch.setattr(co2, "run", fake("co2"))
    monkeypatch.setattr(digits, "run", fake("digits"))
    return made


def printed() -> Console:
    return Console(file=io.StringIO(), width=120)


@pytest.mark.parametrize("quick", [True, False])
def test_effort_and_seed_are_passed_on(calls, tmp_path, quick) -> None:
    folder = tmp_path / "new" / "folder"
    runner.run(folder, quick=quick, seed=7, console=printed())
    efforts = (co2.QUICK, digits.QUICK) if quick else (co2.FULL, digits.FULL)
    assert calls == [("co2", folder, efforts[0], 7), ("digits", folder, efforts[1], 7)]
    assert folder.is_dir()


def test_reports_are_returned_printed_and_kept(calls, tmp_path) -> None:
    console = printed()
    reports = runner.run(tmp_path, console=console)
    assert [r.task for r in reports] == ["co2", "digits"]
    kept = json.loads((tmp_path / "demo.json").read_text())
    assert [entry["task"] for entry in kept] == ["co2", "digits"]
    text = console.file.getvalue()
    assert "co2: width 8" in text
    assert f"wrote {tmp_path / 'demo.json'}" in text


def test_settings_are_short() -> None:
    shown = runner._sentence(report("CO2"))
    assert shown == "CO2: width 8"
    tidy = report("CO2").settings | {"tau": 0.123456}
    assert runner._settings_text(tidy) == "width 8, tau 0.123"
