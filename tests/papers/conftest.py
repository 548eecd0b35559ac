"""The papers' data, where they are at hand."""

import os

import pytest


@pytest.fixture
def real_data():
    """The folder with the papers' data."""
    folder = os.environ.get("CAVEAT_DATA")
    if not folder:
        pytest.skip("needs the papers' data: set CAVEAT_DATA to their folder")
    return folder
