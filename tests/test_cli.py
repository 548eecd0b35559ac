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

import pyarrow.parquet as pq
import pytest
import torch
from matplotlib.image import imread
from typer.main import get_command

import caveat
from caveat.cli import main
from caveat.cli.app import app
from tests.frames.data import mixed


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
@pytest.mark.parametrize(
    "command",
    ["", "demo", "reproduce", "reproduce co2", "data", "fit", "predict", "audit"],
)
def test_help_names_the_command(
    ask: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command.split(), ask]) == 0
    shown = capsys.readouterr().out
    assert f"Usage: caveat {command}".rstrip() in shown
    assert all(len(line) <= 80 for line in shown.splitlines())


def commands_of_all() -> dict[str, str]:
    """Each command with its help, as it is written."""
    return {name: one.help or "" for name, one in get_command(app).commands.items()}


def test_help_reads_well_in_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """A command is one line of the list, and lines of its text are not broken again."""
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    for name, text in commands_of_all().items():
        assert text.split("\n")[0] in shown, name
        assert max(map(len, text.splitlines())) <= 78, name


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
    heavy = ("torch", "numpy", "scipy", "matplotlib", "sklearn", "pyarrow")
    assert loaded(code, *heavy) == "[]"


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


# Files


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table and a model file of it."""
    folder = tmp_path_factory.mktemp("files")
    mixed(120).to_csv(folder / "t.csv", index=False)
    own = ["--target", "y", "--drop", "label", "--preset", "fast"]
    assert main(["fit", f"{folder}/t.csv", *own, "-o", f"{folder}/m.caveat"]) == 0
    return folder


def test_fit_says_what_it_did(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = ["--target", "label", "--classify", "--drop", "y", "--preset", "fast"]
    more = ["--unit", "size=mm", "--category", "zip", "--missing", "?", "--use", "name"]
    out = tmp_path / "m.caveat"
    assert main(["fit", f"{files}/t.csv", *own, *more, "-o", str(out)]) == 0
    shown = capsys.readouterr().out
    for words in ("size [mm]", "not used: 'y' (as asked)", "candidate: ", "log-lik"):
        assert words in shown
    model = caveat.load(out)
    assert model.is_classifier and "?" in model.schema.missing
    assert "name" in model.schema.needed


def test_predict_writes_the_answers(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "o.parquet"
    given = [f"{files}/m.caveat", f"{files}/t.csv", "-o", str(out)]
    more = ["--level", "0.5", "--draws", "9", "--seed", "3", "--keep"]
    assert main(["predict", *given, *more]) == 0
    shown = capsys.readouterr()
    assert shown.out == "" and "120 rows" in shown.err
    found = pq.read_table(out)
    model = caveat.load(files / "m.caveat")
    expected = model.predict_table(mixed(120), level=0.5, n_draws=9, seed=3)
    assert found.select(expected.schema.names).equals(expected)
    assert found.schema.names[0] == "name"


@pytest.mark.parametrize(
    ("argv", "code", "why"),
    [
        (["--draws", "9", "--tolerance", "0.1"], 2, "cannot both"),
        (["--unseen", "perhaps"], 2, "perhaps"),
        (["--level", "2"], 2, "level"),
        (["--level", "1"], 1, "strictly between 0 and 1"),
        (["--format", "xml"], 1, "format must be one of"),
        (["--delimiter", ";"], 1, "delimited by ','"),
        (["--encoding", "klingon"], 1, "no encoding"),
    ],
    ids=str,
)
def test_predict_with_what_makes_no_sense(
    argv: list[str],
    code: int,
    why: str,
    files: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = [f"{files}/m.caveat", f"{files}/t.csv", "-o", f"{tmp_path}/o.csv"]
    assert main(["predict", *given, *argv]) == code
    assert why in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_units_are_pairs(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["fit", f"{files}/t.csv", "-t", "y", "-o", f"{files}/n", "--unit", "mm"]
    assert main(given) == 2 and "COLUMN=UNIT" in capsys.readouterr().err


def test_only_models_of_tables_predict_tables(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    caveat.save(torch.nn.Linear(2, 1), tmp_path / "net")
    given = [f"{tmp_path}/net", f"{files}/t.csv", "-o", f"{tmp_path}/o.csv"]
    assert main(["predict", *given]) == 1
    assert "It holds a network" in capsys.readouterr().err


def test_notes_and_warnings_are_lines(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = mixed(3)
    frame["kind"], frame["size"] = "new", None
    frame.to_csv(tmp_path / "t.csv", index=False)
    given = [f"{files}/m.caveat", f"{tmp_path}/t.csv", "-o", f"{tmp_path}/o.csv"]
    assert main(["predict", *given]) == 1
    assert "row 1: column 'kind'" in capsys.readouterr().err
    assert main(["predict", *given, "--unseen", "missing"]) == 0
    shown = capsys.readouterr().err
    assert "note: 3 rows: 'kind'" in shown and "note: 3 rows: 'size'" in shown


def test_report_writes_a_page_and_says_its_verdict(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "r.html"
    table, model = tmp_path / "new.csv", str(files / "m.caveat")
    mixed(9).drop(columns="y").to_csv(table, index=False)
    assert main(["report", model, str(table), "-o", str(page), "--draws", "20"]) == 1
    assert "target" in capsys.readouterr().err  # those rows have no outcome
    assert not page.exists()
    learned = str(files / "t.csv")
    assert main(["report", model, learned, "-o", str(page), "--draws", "20"]) == 0
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert "written:" in capsys.readouterr().out


def test_audit_prints_the_sites(capsys: pytest.CaptureFixture[str]) -> None:
    name = "tests.files.test_auditing:build"
    assert main(["audit", name, "--shape", "3,4"]) == 0
    assert "0.25" in capsys.readouterr().out
    assert main(["audit", name]) == 1
    assert "--shape" in capsys.readouterr().err


def test_ctrl_c_leaves_nothing(
    files: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def stop(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("caveat.frames.model.FrameModel.answers", stop)
    given = [f"{files}/m.caveat", f"{files}/t.csv", "-o", f"{tmp_path}/o.csv"]
    assert main(["predict", *given]) == 130
    assert "nothing was written" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_of_the_program_waits_for_nothing(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a program (no argv) it ends at once: taking down torch takes a while."""

    class Left(Exception):
        pass

    def stop(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    def leave(code: int) -> None:
        raise Left(code)

    monkeypatch.setattr("caveat.frames.model.FrameModel.answers", stop)
    monkeypatch.setattr("caveat.cli.entry.os._exit", leave)
    given = [f"{files}/m.caveat", f"{files}/t.csv", "-o", f"{tmp_path}/o.csv"]
    monkeypatch.setattr(sys, "argv", ["caveat", "predict", *given])
    with pytest.raises(Left, match="130"):
        main()
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_the_program_is_its_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Threads that still read what was wrong would abort it, with another code."""

    class Left(Exception):
        pass

    def leave(code: int) -> None:
        raise Left(code)

    monkeypatch.setattr("caveat.cli.entry.os._exit", leave)
    monkeypatch.setattr(sys, "argv", ["caveat", "audit", "nothing"])
    with pytest.raises(Left, match=r"^1$"):
        main()
    assert "package.module:function" in capsys.readouterr().err


def test_a_pipe_that_is_closed_early_is_no_error(files: Path, tmp_path: Path) -> None:
    """Nothing is printed of it, neither at once nor at exit."""
    mixed(5000).to_csv(tmp_path / "t.csv", index=False)
    run = f"{sys.executable} -m caveat predict {files}/m.caveat - -o - --draws 2"
    done = subprocess.run(
        f"cat {tmp_path}/t.csv | ({run}; echo $? >&2) | head -2",
        shell=True,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[0].startswith('"y_mean"')
    assert done.stderr.split() in (["0"], ["0", "0"]), done.stderr


def test_pyarrow_is_an_extra(files: Path) -> None:
    """Its absence is told; other files are loaded without it."""
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from caveat.cli import main\n"
        f"print(main(['predict', '{files}/m.caveat', 't.csv', '-o', 'o.csv']))\n"
        "import caveat, torch\n"
        f"caveat.save(torch.nn.Linear(2, 1), '{files}/net')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1"] and "caveat[files]" in done.stderr


def test_the_module_is_the_command() -> None:
    """``caveat.__main__``: where the script is not on the path."""
    command = [sys.executable, "-m", "caveat", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["caveat", caveat.__version__]
