"""The guard for optional packages."""

import math
import subprocess
import sys

import pytest

from caveat._optional import require
from caveat.errors import MissingExtraError


def test_what_is_there_is_imported():
    assert require("math", extra="plot") is math


def test_what_is_absent_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(
        MissingExtraError, match=r"'gymnasium'.*\n.*caveat\[rl\]"
    ) as got:
        require("gymnasium", extra="rl")
    assert isinstance(got.value, ImportError)


WITHOUT = """
import sys
for name in ("matplotlib", "pooch", "pandas", "optuna", "statsmodels"):
    sys.modules[name] = None
import caveat
from caveat import data, decisions, estimators, evaluation, maxent, theory, training
from caveat.cli import main
from caveat.decisions import bandits
from caveat.errors import MissingExtraError

for ask in (
    lambda: evaluation.ReliabilityDisplay,
    lambda: bandits.RegretDisplay,
    lambda: data.load_uci("yacht"),
):
    try:
        ask()
    except MissingExtraError as error:
        print(str(error).splitlines()[-1])
print(main(["reproduce", "softmax", "--quick"]))
"""

DEMO = """
import sys
from importlib.machinery import PathFinder


class Plain(PathFinder):  # None in sys.modules would not do: scikit-learn looks there
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.split(".")[0] not in ("matplotlib", "pooch", "pandas", "statsmodels"):
            return super().find_spec(name, path, target)


sys.meta_path[:] = [Plain if f is PathFinder else f for f in sys.meta_path]
from caveat.cli import main
sys.exit(main(["demo", "--quick", "--output", sys.argv[1]]))
"""


def test_a_plain_install_does_without_figures_and_downloads():
    """Each part is imported; what needs an extra says which."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True
    )
    *extras, codes = done.stdout.splitlines()
    assert [line.split("caveat")[1] for line in extras] == [
        "[plot]'",
        "[plot]'",
        "[data]'",
    ]
    assert codes == "1"
    assert done.stderr.count("caveat[plot]") == 1


def test_the_demo_works_on_a_plain_install(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", DEMO, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "165°" in done.stdout and "No figures: they need matplotlib" in done.stdout
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["demo.json"]
