"""The table of reproductions."""

from dataclasses import fields
from pathlib import Path

import pytest

from caveat.papers.catalogue import REPRODUCTIONS
from caveat.papers.experiment import Experiment


@pytest.mark.parametrize("each", REPRODUCTIONS, ids=lambda each: each.name)
def test_every_entry_leads_to_an_experiment(each):
    experiment = each.experiment(Path("somewhere"), quick=True)
    assert isinstance(experiment, Experiment)
    assert experiment.path("csv").name.startswith(each.name)
    assert experiment.command.startswith(f"caveat reproduce {each.name}")
    own = [field.name for field in fields(experiment)]
    assert own == ["folder", "quick", *(option.name for option in each.options)]


def test_an_entry_runs_its_experiment(tmp_path, real_data):
    entry = next(each for each in REPRODUCTIONS if each.name == "shrinkage")
    page = entry.run(tmp_path, quick=True, n_workers=1)
    assert page.startswith("# ")
    assert (tmp_path / "shrinkage_quick.png").exists()
