"""LSTMs with one mask per sequence: words, masks, scores, resuming, and the page."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from caveat.cli import main
from caveat.papers.records import read_records
from caveat.papers.runner import complete
from caveat.papers.sequence import experiment as sequence
from caveat.papers.sequence.curves import Curves, all_curves, chosen, clear, gained
from caveat.papers.sequence.experiment import NATS, MaskPerSequence
from caveat.papers.sequence.networks import (
    VARIANTS,
    WIDTH,
    DroppedWords,
    make_reader,
)
from caveat.papers.sequence.runs import Effort, Job, Record, run_job
from caveat.papers.sequence.scores import (
    best_precision,
    mc_draws,
    point_draws,
    score,
)
from caveat.papers.sequence.texts import (
    FILLER,
    N_WORDS,
    TASKS,
    UNKNOWN,
    Part,
    Task,
    load_task,
)
from caveat.sampling.mcdropout import MCDropout

RESULTS = Path(__file__).parents[2] / "docs" / "results" / "sequence.csv"
stored = pytest.mark.skipif(
    not RESULTS.exists(), reason="needs results: caveat reproduce sequence"
)


# Words


@pytest.mark.parametrize(
    ("name", "sizes"),
    [("ratings", (3204, 801, 1001)), ("sentiment", (6920, 872, 1821))],
)
def test_parts_have_all_rows_and_few_lengths(name, sizes, real_data):
    task = load_task(name)
    assert tuple(map(len, (task.train, task.validation, task.test))) == sizes
    for part in (task.train, task.validation, task.test):
        lengths = [words.shape[1] for words in part.words]
        assert len(lengths) <= 6 and all(length % 8 == 0 for length in lengths)
        for words in part.words:
            assert 0 <= int(words.min()) and int(words.max()) < N_WORDS
            filled = words == FILLER
            assert bool((filled[:, :-1] | ~filled[:, 1:]).all())  # in front only
            assert int(filled.sum(1).max()) < 8


def test_vocabulary_is_that_of_the_training_rows(real_data):
    task = load_task("sentiment")
    found = torch.cat([w.flatten() for w in task.train.words]).unique()
    assert len(found) == N_WORDS  # every number occurs
    assert (torch.cat([w.flatten() for w in task.test.words]) == UNKNOWN).any()


def test_ratings_are_standardised_by_training_rows(real_data):
    task = load_task("ratings")
    train = torch.cat(task.train.targets)
    assert float(train.mean()) == pytest.approx(0.0, abs=1e-5)
    assert float(train.std(correction=0)) == pytest.approx(1.0, abs=1e-5)
    assert task.scale == pytest.approx(0.18, abs=0.01)


def a_part(n_rows=20):
    words = tuple(
        torch.arange(n_rows * length).reshape(n_rows, length) % 50 + 2
        for length in (8, 16)
    )
    targets = tuple(w[:, :1].float() / 50 for w in words)
    return Part(words, targets)


def test_batches_hold_every_row_once():
    part = a_part()
    batches = list(part.batches(7, torch.Generator().manual_seed(0)))
    assert sorted(len(words) for words, _ in batches) == [6, 6, 7, 7, 7, 7]
    for words, targets in batches:
        assert torch.equal(targets, words[:, :1].float() / 50)
    for length, own in zip((8, 16), part.words, strict=True):
        rows = torch.cat([w for w, _ in batches if w.shape[1] == length])
        assert sorted(rows.tolist()) == sorted(own.tolist())
    again = list(part.batches(7, torch.Generator().manual_seed(0)))
    assert all(torch.equal(a[0], b[0]) for a, b in zip(batches, again, strict=True))


# Masks


def a_reader(variant, rate=0.5, seed=0):
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        return make_reader(variant, rate, (60, 2))


def test_variants_start_from_the_same_weights():
    words = a_part().words[0]
    first, *others = (a_reader(variant).eval() for variant in VARIANTS)
    for other in others:
        assert torch.equal(first(words), other(words))
    assert not torch.equal(a_reader("none", seed=1)(words), first(words))


def test_a_dropped_word_is_missing_wherever_it_stands():
    words = torch.tensor([[3, 4, 3, 5, 3, 4]]).repeat(4000, 1)
    layer = DroppedWords.like(torch.nn.Embedding(60, WIDTH), 0.25)
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        vectors = layer(words)
    clean = layer.eval()(words)
    ratio = (vectors / clean)[..., 0].detach()
    kept = ratio > 0.5
    assert torch.allclose(ratio[kept], torch.tensor(4 / 3))
    assert torch.equal(kept[:, 0], kept[:, 2]) and torch.equal(kept[:, 0], kept[:, 4])
    assert torch.equal(kept[:, 1], kept[:, 5])
    shares = kept[:, [0, 1, 3]].double().mean(0)
    error = math.sqrt(0.25 * 0.75 / 4000)
    assert (shares - 0.75).abs().max() < 4.5 * error
    both = (kept[:, 0] & kept[:, 1]).double().mean()  # words are dropped independently
    assert abs(float(both) - 0.75**2) < 4.5 * error


def test_a_draw_drops_the_same_words_in_all_texts():
    layer = DroppedWords.like(torch.nn.Embedding(60, WIDTH), 0.5)
    mc = MCDropout(layer, seed=0)
    words = torch.tensor([[3, 4, 5, 6, 7, 8], [8, 7, 6, 5, 4, 3], [9, 9, 9, 9, 9, 3]])
    kept = (mc.draws(words, n_draws=20) != 0).any(-1)
    assert torch.equal(kept[:, 0], kept[:, 1].flip(1))
    assert torch.equal(kept[:, 2, 5], kept[:, 0, 0])
    assert 0.3 < float(kept[:, 0].double().mean()) < 0.7


def test_ordinary_masks_are_new_at_each_step():
    layer = a_reader("ordinary").after_words
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        masks = layer(torch.ones(3, 8, WIDTH))
    assert not torch.equal(masks[:, 0], masks[:, 1])


# Scores


def a_task(n_outputs=1):
    parts = [a_part() for _ in range(3)]
    if n_outputs > 1:
        parts = [
            Part(p.words, tuple((t[:, 0] > 0.5).long() for t in p.targets))
            for p in parts
        ]
    return Task(*parts, n_outputs=n_outputs, scale=0.2, shift=0.6)


def test_draws_follow_the_weights():
    reader, part = a_reader("sequence"), a_part()
    mc = MCDropout(reader, seed=0)
    before = mc_draws(mc, part, 3)
    assert before.shape == (3, 40, 2)
    with torch.no_grad():
        reader.head.weight *= -1.0
        reader.lstm.weight_hh_l0 *= 2.0
    after = mc_draws(mc, part, 3)
    assert not torch.allclose(before, after)
    torch.testing.assert_close(after, mc_draws(MCDropout(reader, seed=0), part, 3))


def test_point_draws_leave_the_mode():
    reader = a_reader("sequence").train()
    first, second = (point_draws(reader, a_part()) for _ in range(2))
    assert reader.training and first.shape == (1, 40, 2)
    assert torch.equal(first, second)


def test_score_of_ratings_is_equation_13():
    task, generator = a_task(), torch.Generator().manual_seed(0)
    draws = torch.randn(5, 40, 1, generator=generator)
    found = score(task, task.test, draws, 30.0)
    y = torch.cat(task.test.targets).double() * 0.2 + 0.6
    gaps = draws.double() * 0.2 + 0.6 - y
    density = (torch.exp(-15.0 * gaps**2) * math.sqrt(30.0 / (2 * math.pi))).mean(0)
    assert found.log_likelihood == pytest.approx(float(density.log().mean()), rel=1e-6)
    expected = float(gaps.mean(0).square().mean().sqrt())
    assert found.error == pytest.approx(expected, rel=1e-6)


def test_best_precision_of_one_draw_is_one_over_its_squared_error():
    task = a_task()
    draws = torch.randn(1, 40, 1, generator=torch.Generator().manual_seed(0))
    error = score(task, task.validation, draws, 1.0).error
    assert best_precision(task, draws) == pytest.approx(1 / error**2, rel=2e-3)
    assert best_precision(a_task(2), draws.expand(-1, -1, 2)) == 1.0


def test_score_of_labels_is_that_of_mean_probabilities():
    task, generator = a_task(2), torch.Generator().manual_seed(0)
    draws = torch.randn(5, 40, 2, generator=generator)
    found = score(task, task.test, draws, 1.0)
    y = torch.cat(task.test.targets)
    probs = draws.double().softmax(-1).mean(0)
    expected = probs.gather(1, y.unsqueeze(1)).log().mean()
    assert found.log_likelihood == pytest.approx(float(expected), rel=1e-5)
    assert found.error == pytest.approx(float((probs.argmax(1) != y).double().mean()))


# Runs

TINY = Effort(epochs=2, n_draws=2, n_test_draws=3, most_rows=64)


def timeless(records):
    return [replace(r, seconds=0.0) for r in records]


@pytest.mark.parametrize("task", TASKS)
def test_a_job_scores_each_epoch_and_both_tests(task, real_data):
    state = torch.random.get_rng_state()
    job = Job(task, "sequence", 0.25, 3)
    records = run_job(job, TINY)
    assert torch.equal(torch.random.get_rng_state(), state)
    parts = ["validation", "validation", "test", "test_stopped"]
    assert [r.part for r in records] == parts
    assert [r.n_draws for r in records] == [2, 2, 3, 3]
    assert [r.epoch for r in records[:3]] == [1, 2, 2]
    best = max(records[:2], key=lambda r: r.log_likelihood)
    assert (records[3].epoch, records[3].precision) == (best.epoch, best.precision)
    assert timeless(run_job(job, TINY)) == timeless(records)


def test_without_masks_there_is_one_draw(real_data):
    for record in run_job(Job("sentiment", "none", 0.0, 0), TINY):
        assert record.n_draws == 1
        assert record.error == record.point_error
        assert record.log_likelihood == record.point_log_likelihood


def test_jobs_are_resumed(tmp_path, monkeypatch, real_data):
    monkeypatch.setattr(sequence, "_EFFORT_QUICK", TINY)
    monkeypatch.setattr(sequence, "TASKS", ("sentiment",))
    monkeypatch.setattr(sequence, "VARIANTS", ("none",))
    own = MaskPerSequence(tmp_path, quick=True)
    assert complete(own, n_workers=1) == 1
    monkeypatch.setattr(sequence, "VARIANTS", ("none", "ordinary"))
    assert complete(own, n_workers=1) == 1
    records = read_records(own.path("csv"), Record)
    assert [r.variant for r in records] == ["ordinary"] * 4 + ["none"] * 4
    for effort in (replace(TINY, epochs=1), replace(TINY, epochs=1, n_test_draws=4)):
        monkeypatch.setattr(sequence, "_EFFORT_QUICK", effort)
        assert not own.is_done(own.jobs([])[0], {own.key(r) for r in records})
    assert complete(own, n_workers=1) == 2  # another effort: run anew
    assert len(read_records(own.path("csv"), Record)) == 6


# Curves and page


def a_record(variant, rate, seed, epoch, value, part="validation", task="ratings"):
    scores = (0.5 - value, value, 0.5 - value, value)
    head = (task, variant, rate, seed, part, epoch, 10, 1, 1.0 / epoch, 30.0)
    return Record(*head, *scores, 0.1)


def some_records(variant, rate, values, task="ratings"):
    """``values`` are log-likelihoods (seeds, epochs)."""
    for seed, own in enumerate(values):
        for epoch, value in enumerate(own, start=1):
            yield a_record(variant, rate, seed, epoch, value, task=task)
        for part, value in (("test", own[-1]), ("test_stopped", max(own))):
            yield a_record(variant, rate, seed, len(own), value, part, task)


def test_curves_know_what_was_lost():
    own = Curves(list(some_records("none", 0.0, [[0.1, 0.3, 0.2], [0.2, 0.3, -0.1]])))
    np.testing.assert_allclose(own.lost, [0.1, 0.4])
    np.testing.assert_allclose(own.best_epoch, [2, 2])
    np.testing.assert_allclose(own.test("log_likelihood"), [0.2, -0.1])
    np.testing.assert_allclose(own.test("log_likelihood", "test_stopped"), 0.3)


def test_a_difference_is_clear_in_every_seed_or_not_at_all():
    assert clear(np.array([0.02, 0.011]), NATS)
    assert not clear(np.array([0.5, 0.009]), NATS)
    assert not clear(np.array([0.5, -0.5]), NATS)


def test_the_rate_is_chosen_on_validation_rows():
    records = [
        *some_records("sequence", 0.25, [[0.1, 0.2]]),
        *some_records("sequence", 0.5, [[0.3, 0.1]]),
    ]
    worse = [replace(r, log_likelihood=-9.0) if "test" in r.part else r
             for r in records]  # fmt: skip
    assert chosen(records, "ratings", "sequence").drop_rate == 0.5
    assert chosen(worse, "ratings", "sequence").drop_rate == 0.5
    rates = [c.drop_rate for c in all_curves(records, "ratings", "sequence")]
    assert rates == [0.25, 0.5]


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


def test_gains_are_paired_by_seed():
    ours = Curves(list(some_records("sequence", 0.5, [[0.1, 0.3], [0.1, 0.4]])))
    other = Curves(list(some_records("none", 0.0, [[0.1, 0.1], [0.6, 0.5]])))
    for gains in gained(ours, other, "test"):
        np.testing.assert_allclose(gains, [0.2, -0.1])
    for gains in gained(ours, other, "test_stopped"):
        np.testing.assert_allclose(gains, [0.2, -0.2])


def test_command_line(tmp_path, capsys, monkeypatch, real_data):
    monkeypatch.setattr(sequence, "_EFFORT_QUICK", TINY)
    arguments = "reproduce sequence --quick --workers 1 --output".split()
    assert main([*arguments, str(tmp_path)]) == 0
    page = capsys.readouterr().out
    for word in ("## Ratings of films", "## SST-2", "| sequence | 0.25* |", "hold"):
        assert word in page
    assert (tmp_path / "sequence_quick.png").stat().st_size > 10_000
    records = read_records(tmp_path / "sequence_quick.csv", Record)
    assert len(records) == 2 * 3 * 4


@pytest.fixture(scope="module")
def results():
    return read_records(RESULTS, Record)


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
