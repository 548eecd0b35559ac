"""The package is light: NumPyro is imported on first use, and missed politely."""

import subprocess
import sys

import pytest

from caveat import maxent
from caveat.errors import MissingExtraError


def run(code):
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_import_brings_in_no_jax():
    code = "import sys, caveat, caveat.maxent; print('jax' in sys.modules)"
    assert run(code) == "False"


def test_names_are_those_listed():
    assert set(maxent.__all__) <= set(dir(maxent))
    for name in maxent.__all__:
        assert getattr(maxent, name).__name__ == name
    unknown = "nothing"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        getattr(maxent, unknown)


def test_without_numpyro(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpyro", None)
    for name in maxent.__all__:
        with pytest.raises(MissingExtraError, match=r"caveat\[numpyro\]"):
            getattr(maxent, name)
