"""Benchmarks in tests are run, not measured."""

import pytest

from benchmarks import timing


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    """No tidying between measurements: here the heap is that of thousands of tests."""
    monkeypatch.setattr(timing.gc, "collect", lambda *_: 0)
    monkeypatch.setattr(timing, "SHORTEST", 1e-3)
