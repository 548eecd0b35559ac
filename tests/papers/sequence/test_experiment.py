"""LSTMs with one mask per sequence: resuming, the page, and the stored result."""

from dataclasses import replace
from pathlib import Path

import pytest

from caveat.cli import main
from caveat.papers.records import read_records
from caveat.papers.runner import complete
from caveat.papers.sequence import experiment as sequence
from caveat.papers.sequence.curves import all_curves, chosen, gained
from caveat.papers.sequence.experiment import MaskPerSequence
from caveat.papers.sequence.runs import ReaderRecord
from caveat.papers.sequence.texts import (
    TASKS,
)
from tests.papers.sequence.samples import TINY, some_records

RESULTS = Path(__file__).parents[3] / "docs" / "results" / "sequence.csv"


stored = pytest.mark.skipif(
    not RESULTS.exists(), reason="needs results: caveat reproduce sequence"
)


def test_jobs_are_resumed(tmp_path, monkeypatch, real_data):
    monkeypatch.setattr(sequence, "_EFFORT_QUICK", TINY)
    monkeypatch.setattr(sequence, "TASKS", ("sentiment",))
    monkeypatch.setattr(sequence, "VARIANTS", ("none",))
    own = MaskPerSequence(tmp_path, quick=True)
    assert complete(own, n_workers=1) == 1
    monkeypatch.setattr(sequence, "VARIANTS", ("none", "ordinary"))
    assert complete(own, n_workers=1) == 1
    records = read_records(own.path("csv"), ReaderRecord)
    assert [r.variant for r in records] == ["ordinary"] * 4 + ["none"] * 4
    for effort in (replace(TINY, epochs=1), replace(TINY, epochs=1, n_test_draws=4)):
        monkeypatch.setattr(sequence, "_EFFORT_QUICK", effort)
        assert not own.is_done(own.jobs([])[0], {own.key(r) for r in records})
    assert complete(own, n_workers=1) == 2  # another effort: run anew
    assert len(read_records(own.path("csv"), ReaderRecord)) == 6


def test_the_page_says_what_the_numbers_say():
    def page(ours):
        records = []
        for task in TASKS:
            records += some_records("none", 0.0, [[0.1, 0.3, 0.1]], task)
            records += some_records("ordinary", 0.5, [[0.1, 0.2, 0.15]], task)
            records += some_records("sequence", 0.5, [ours], task)
        return "\n".join(map(str, MaskPerSequence(Path()).page(records)))

    good = page([0.1, 0.35, 0.32])
    assert "does not hold" not in good and "only" not in good
    assert "(worse)" not in good and "(even)" not in good
    assert "0.030 against 0.200" in good
    assert "0.030 against 0.050 on ratings" in good and "+0.150 on sentiment" in good
    lost_most = page([0.4, 0.35, 0.1])
    assert "falls less than with none, in every seed: **does not hold**" in lost_most
    assert "0.300 against 0.200" in lost_most and "-0.050 (worse)" in lost_most


def test_command_line(tmp_path, monkeypatch, real_data):
    monkeypatch.setattr(sequence, "_EFFORT_QUICK", TINY)
    arguments = "reproduce sequence --quick --workers 1 --output".split()
    assert main([*arguments, str(tmp_path)]) == 0
    (page,) = (path.read_text() for path in tmp_path.glob("*.md"))
    for word in ("## Ratings of films", "## SST-2", "| sequence | 0.25* |", "hold"):
        assert word in page
    assert (tmp_path / "sequence_quick.png").stat().st_size > 10_000
    records = read_records(tmp_path / "sequence_quick.csv", ReaderRecord)
    assert len(records) == 2 * 3 * 4


@pytest.fixture(scope="module")
def results():
    return read_records(RESULTS, ReaderRecord)


@stored
def test_stored_run_is_complete_and_affordable(results):
    assert len({r.job for r in results}) == 20
    assert len(results) == 20 * 17
    assert max(r.n_draws for r in results) == 50
    assert sum(r.seconds for r in results) < 2 * 10 * 60  # two cores, ten minutes


@stored
@pytest.mark.parametrize(("task", "fall"), [("ratings", 0.05), ("sentiment", 0.5)])
def test_stored_networks_without_masks_overfit(results, task, fall):
    own = chosen(results, task, "none")
    errors = own.validation("error")
    assert (own.lost > fall).all() and (errors[:, -1] > errors.min(1)).all()
    losses = own.validation("train_loss")
    assert (losses[:, -1] < 0.3 * losses[:, 0]).all()  # while they learn their rows


@stored
@pytest.mark.parametrize(("task", "gain"), [("ratings", 0.05), ("sentiment", 0.5)])
def test_stored_masks_for_sequences_overfit_less_than_none(results, task, gain):
    ours, none = (chosen(results, task, v) for v in ("sequence", "none"))
    assert (ours.lost < 0.5 * none.lost).all()
    likelihood, error = gained(ours, none, "test")
    assert (likelihood > gain).all() and (error > 0).all()


@stored
@pytest.mark.parametrize("task", TASKS)
def test_stored_masks_for_sequences_overfit_less_than_ordinary_ones(results, task):
    """At any rate of either."""
    ours, ordinary = (
        [c.lost.mean() for c in all_curves(results, task, v)]
        for v in ("sequence", "ordinary")
    )
    assert max(ours) < min(ordinary)


@stored
@pytest.mark.parametrize(("task", "bound"), [("ratings", 0.18), ("sentiment", 0.25)])
def test_stored_networks_predict(results, task, bound):
    """Better than the standard deviation of ratings, 0.18, and far from half wrong."""
    ours = chosen(results, task, "sequence")
    for part in ("test", "test_stopped"):
        assert (ours.test("error", part) < bound).all()
