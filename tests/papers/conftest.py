"""The papers' data, where they are at hand."""

import os

import pytest

from caveat.papers.lenet import images


@pytest.fixture
def real_data():
    """The folder with the papers' data."""
    folder = os.environ.get("CAVEAT_DATA")
    if not folder:
        pytest.skip("needs the papers' data: set CAVEAT_DATA to their folder")
    return folder


@pytest.fixture
def no_data(monkeypatch, tmp_path_factory):
    """No data folder, and a net that refuses: only what ships inside packages."""
    for name in ("CAVEAT_DATA", "CAVEAT_CACHE"):
        monkeypatch.setenv(name, str(tmp_path_factory.mktemp("empty")))
    monkeypatch.setenv("CAVEAT_MIRROR", "http://127.0.0.1:9")
    images._mnist.cache_clear()
