"""The wheel, installed with no extras into an empty environment, far from here.

The environment holds what the wheel asks for and nothing else: links to the installed
distributions that pyproject.toml names, and to those that they need in turn.
"""

import importlib.metadata
import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
EXTRAS = "matplotlib pandas pooch statsmodels transformers numpyro jax optuna gymnasium"

pytestmark = pytest.mark.slow


def needed(names: list[str]) -> set[str]:
    """Distributions by name, with all that they need, extras left out."""
    found: set[str] = set()
    while names:
        name = re.sub(r"[-_.]+", "-", names.pop()).lower()
        if name in found:
            continue
        found.add(name)
        for line in importlib.metadata.requires(name) or []:
            asked = Requirement(line)
            if asked.marker is None or asked.marker.evaluate({"extra": ""}):
                names.append(asked.name)
    return found


def link(name: str, site: Path) -> None:
    """Links to the files and folders of an installed distribution."""
    distribution = importlib.metadata.distribution(name)
    home = Path(str(distribution.locate_file("")))
    for top in {file.parts[0] for file in distribution.files or []}:
        place = site / top
        if top not in ("..", "__pycache__") and not place.exists():
            place.symlink_to(home / top)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "-q"]
    subprocess.run([*pip, "--no-deps", "-w", str(folder), str(ROOT)], check=True)
    (found,) = folder.glob("caveat-*.whl")
    return found


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a new environment that has the wheel."""
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    (site,) = home.glob("lib/python*/site-packages")
    text = (ROOT / "pyproject.toml").read_text()
    block = re.search(r"^dependencies = \[(.*?)\]", text, re.DOTALL | re.MULTILINE)
    core = [Requirement(line).name for line in re.findall(r'"(.+?)"', block[1])]
    for name in needed(core):
        link(name, site)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    install = ["install", "-q", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([*pip, "--python", str(python), *install], check=True)
    return python


def run(folder: Path, *arguments: str) -> str:
    """What a command prints, run far from the repository."""
    outside = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        arguments, cwd=folder, env=outside, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_no_extra_is_there(python: Path, tmp_path: Path) -> None:
    code = (
        "import importlib.util as u, caveat; "
        f"print([n for n in {EXTRAS.split()} if u.find_spec(n)], caveat.__file__)"
    )
    shown = run(tmp_path, str(python), "-c", code)
    assert shown.startswith("[] ") and str(ROOT) not in shown


def test_the_first_block_of_the_readme_runs(python: Path, tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text()
    block = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
    assert "at 6: " in run(tmp_path, str(python), "-c", block)


def test_the_command_and_its_demo_run(python: Path, tmp_path: Path) -> None:
    command = str(python.with_name("caveat"))
    assert "reproduce" in run(tmp_path, command, "--help")
    shown = run(tmp_path, command, "demo", "--quick")
    assert "165°" in shown and "No figures: they need matplotlib" in shown
    assert (tmp_path / "outputs" / "demo" / "demo.json").exists()
