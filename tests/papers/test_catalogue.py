"""The table of reproductions."""

import inspect
from importlib import import_module

import pytest

from caveat.papers.catalogue import REPRODUCTIONS, Reproduction


@pytest.mark.parametrize("each", REPRODUCTIONS, ids=lambda each: each.name)
def test_every_entry_leads_to_a_function(each):
    module = import_module(f"caveat.papers.{each.name}")
    parameters = inspect.signature(getattr(module, f"reproduce_{each.name}")).parameters
    assert list(parameters) == ["output", "quick", "n_workers"]


def test_an_entry_runs_its_function(tmp_path, real_data):
    entry = Reproduction("shrinkage", "…")
    page = entry.run(tmp_path, quick=True, n_workers=1)
    assert page.startswith("# ")
    assert (tmp_path / "shrinkage_quick.png").exists()
