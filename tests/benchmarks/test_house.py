"""The measure of the house: lines, public names, files passed by a call."""

import torch

import caveat
from benchmarks.house import WALKS, passed_files, size_of, sizes, walked

SOURCE = '''"""One line."""

# a comment
import math


def public(x):
    """Two

    lines and a blank one."""
    text = """not
    a docstring"""
    return text, math.pi


class _Private:
    value = 1
'''


def test_lines_of_code_and_of_documentation_are_told_apart(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(SOURCE)
    assert size_of(path) == (1, 7, 4, 1)


def test_every_package_is_measured():
    found = sizes()
    assert {"predictive", "sampling", "papers", "(top)"} <= set(found)
    assert all(size.files and size.code for size in found.values())


def test_files_are_those_in_which_something_is_called():
    with passed_files() as files:
        caveat.GaussianPredictive.from_draws(torch.zeros(2, 1), precision=1.0)
    assert "predictive/gaussian.py" in files
    assert not any(name.startswith("sampling") for name in files)


def test_the_road_of_a_regression():
    files = walked(WALKS["MCDropout(model).regress(x)"])
    assert {"sampling/mcdropout.py", "predictive/gaussian.py"} <= files
