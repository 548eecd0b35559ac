"""A model file, tables, and their results by one process."""

import pytest

import caveat
from tests.frames.data import quick_model
from tests.scoring.data import quietly, write_tables


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.caveat"
    caveat.save(quick_model(), path)
    return path


@pytest.fixture(scope="session")
def tables(tmp_path_factory):
    """Read only: tests that change it make their own."""
    return write_tables(tmp_path_factory.mktemp("tables") / "in")


@pytest.fixture(scope="session")
def plain(model, tables, tmp_path_factory):
    """The results of one process."""
    folder = tmp_path_factory.mktemp("plain") / "out"
    quietly(model, tables, folder)
    return folder
