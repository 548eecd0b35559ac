"""The command line, in process."""

import contextlib
import io
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from matplotlib.image import imread

import caveat
from caveat.cli import main


@dataclass(frozen=True)
class Outcome:
    code: int
    printed: str
    folder: Path

    @property
    def numbers(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(
            (self.folder / "demo.json").read_text()
        )
        return found


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcome]:
    folder = tmp_path_factory.mktemp("demo") / "new" / "folder"
    printed = io.StringIO()
    state = torch.get_rng_state()
    with contextlib.redirect_stdout(printed):
        code = main(["demo", "--quick", "--output", str(folder)])
    assert torch.equal(torch.get_rng_state(), state)
    yield Outcome(code, printed.getvalue(), folder)


def test_the_demo_succeeds(quick: Outcome) -> None:
    assert quick.code == 0


@pytest.mark.parametrize("name", ["co2.png", "digits.png"])
def test_the_figures_show_something(quick: Outcome, name: str) -> None:
    image = imread(quick.folder / name)
    assert min(image.shape[:2]) > 600
    assert len({tuple(pixel) for pixel in image[::7, ::7].reshape(-1, 4)}) > 20
    assert name in quick.printed


def test_the_table_shows_the_numbers(quick: Outcome) -> None:
    for report in quick.numbers:
        assert f"{report['error']:.3g} {report['unit']}" in quick.printed
        assert f"{report['standard_error']:.3g} {report['unit']}" in quick.printed
        assert f"{report['log_likelihood']:.3f}" in quick.printed
        assert f"{report['speed_up']:.1f}×" in quick.printed
        assert f"{report['n_draws']}" in quick.printed


def test_the_numbers_make_sense(quick: Outcome) -> None:
    co2, digits = quick.numbers
    assert 1 < co2["error"] < 20 and 0.2 < co2["settings"]["noise sd (ppm)"] < 5
    assert digits["error"] < 25
    assert all(report["timing"]["seconds"] > 0 for report in quick.numbers)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"caveat {caveat.__version__}\n"


@pytest.mark.parametrize("ask", ["-h", "--help"])
@pytest.mark.parametrize("command", ["", "demo", "reproduce", "reproduce co2", "data"])
def test_help_names_the_command(
    ask: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command.split(), ask]) == 0
    shown = capsys.readouterr().out
    assert f"Usage: caveat {command}".rstrip() in shown
    assert all(len(line) <= 80 for line in shown.splitlines())


def test_what_is_printed_fits_80_columns(quick: Outcome) -> None:
    lines = [line for line in quick.printed.splitlines() if "wrote" not in line]
    assert lines and max(map(len, lines)) <= 80


def test_the_demo_shows_its_figures_in_letters_too(quick: Outcome) -> None:
    assert "observed x" in quick.printed and "165°" in quick.printed


def loaded(code: str, *modules: str) -> str:
    """Which of the modules a new process has loaded after some code."""
    code = f"import sys\n{code}\nprint([m for m in {modules} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()[-1]


def test_help_loads_nothing_heavy() -> None:
    """Modules, not seconds: seconds are those of the machine."""
    code = "from caveat.cli import main; main(['--help'])"
    assert loaded(code, "torch", "numpy", "scipy", "matplotlib", "sklearn") == "[]"


def test_the_demo_starts_with_little_more_than_torch() -> None:
    """What takes long to import comes when it is needed, or not at all."""
    heavy = ("matplotlib", "sklearn", "pandas", "scipy.stats", "scipy.optimize")
    assert loaded("import caveat.demo", *heavy, "torch._dynamo") == "[]"


def test_a_reproduction_starts_without_what_it_does_not_need() -> None:
    code = (
        "from pathlib import Path; from caveat.papers.catalogue import REPRODUCTIONS\n"
        "import caveat.papers.runner\n"
        "REPRODUCTIONS[0].experiment(Path('x'))"
    )
    heavy = ("sklearn", "pandas", "statsmodels", "jax", "torch._dynamo")
    assert loaded(code, *heavy, "matplotlib.pyplot") == "[]"


@pytest.mark.parametrize(
    "argv",
    [["demo", "--slow"], ["demo", "--seed", "-1"], ["demo", "--seed", "x"], ["dmo"]],
    ids=" ".join,
)
def test_arguments_that_make_no_sense(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    assert argv[1 if len(argv) > 1 else 0].strip("-") in capsys.readouterr().err


def test_output_may_not_be_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "file"
    path.touch()
    assert main(["demo", "--output", str(path)]) == 2
    assert "output" in capsys.readouterr().err


def test_errors_of_caveat_are_messages(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise caveat.errors.MissingExtraError("pip install 'caveat[report]'")

    monkeypatch.setattr("caveat.demo.run", fail)
    assert main(["demo"]) == 1
    assert "caveat[report]" in capsys.readouterr().err
