"""The jobs of figure 1b, and its results beside a reference."""

import math
from pathlib import Path

import pytest

from caveat.cli import main
from caveat.papers.misspecification.experiment import ConditionPanel, Misspecification
from caveat.papers.misspecification.simulation import (
    METHODS,
    N_FEATURES,
    STRENGTHS,
    ModelRecord,
)
from caveat.papers.records import read_records

RESULTS = Path(__file__).parents[3] / "docs" / "results" / "misspecification.csv"


REFERENCE = {
    "default": ((1.64, 1.65), (1.90, 1.91), (2.05, 2.06)),
    "junk features": ((1.65, 1.66), (1.84, 1.81), (1.98, 1.89)),
    "covariate shift": ((2.39, 1.67), (2.38, 1.96), (2.14, 2.03)),
}


REFERENCE_ERROR = 0.027


def test_another_number_of_sets_is_another_job(tmp_path):
    small, large = Misspecification(tmp_path, quick=True), Misspecification(tmp_path)
    assert not set(small.jobs([])) & set(large.jobs([]))
    assert len(large.jobs([])) == 9
    records = large.run(("default", 10, 20))
    assert {large.key(record) for record in records} == {("default", 10, 20)}
    assert len(records) == len(METHODS) * len(STRENGTHS)


def test_command_line(tmp_path, monkeypatch):
    monkeypatch.setattr(Misspecification, "n_sets", 600)
    arguments = "reproduce misspecification --quick --workers 1 --output".split()
    assert main([*arguments, str(tmp_path)]) == 0
    (page,) = (path.read_text() for path in tmp_path.glob("*.md"))
    assert "over 600 data sets" in page and "## Covariate shift" in page
    assert (tmp_path / "misspecification_quick.png").stat().st_size > 10_000
    records = read_records(tmp_path / "misspecification_quick.csv", ModelRecord)
    agree_with_reference(records)


def agree_with_reference(records):
    for condition, cells in REFERENCE.items():
        for n_features, (ridge, dropout) in zip(N_FEATURES, cells, strict=True):
            panel = ConditionPanel(records, condition, n_features)
            for record, expected in (
                (panel.true_prior, ridge),
                (panel.best("dropout"), dropout),
            ):
                error = math.hypot(record.error_se, REFERENCE_ERROR)
                assert abs(record.error - expected) < 4 * error, record


@pytest.mark.skipif(
    not RESULTS.exists(), reason="needs results: caveat reproduce misspecification"
)
def test_stored_results():
    records = read_records(RESULTS, ModelRecord)
    assert {r.n_sets for r in records} == {100_000}
    agree_with_reference(records)
