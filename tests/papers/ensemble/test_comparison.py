"""Networks of each way to predict, and what they are scored by."""

from itertools import combinations

import numpy as np
import pytest
import torch

from caveat.papers.ensemble.choosing import STARTS
from caveat.papers.ensemble.comparison import (
    LONG,
    MC,
    N_MEMBERS,
    SHORT,
    SINGLE,
    EnsembleEffort,
    EnsembleJob,
    Result,
    run_job,
    scores,
    trials,
)
from caveat.papers.ensemble.networks import LENET, MLP, Kind
from caveat.papers.lenet import drawn_logits, standard_log_probs
from caveat.papers.lenet.images import small_digits

PLAIN, DROPOUT = STARTS[MLP]
EFFORT = EnsembleEffort(5, 1, (1, 2), 40, 100, 50, 1, 3)


def a_replicate(number, effort):
    """The networks of MC dropout and of both ensembles."""
    methods = {MC: DROPOUT, LONG: PLAIN, SHORT: PLAIN}
    jobs = [EnsembleJob("test", number, *method) for method in methods.items()]
    return [job.nets(small_digits(), effort) for job in jobs]


def test_networks_that_are_tried_do_not_see_the_images_held_out():
    effort = EnsembleEffort(5, 1, (1,), None, None, 300, 2, 3)
    jobs = trials([PLAIN, DROPOUT], 2)
    assert [(job.method, job.replicate) for job in jobs] == [
        *[(SINGLE, 0), (SINGLE, 1), (MC, 0), (MC, 1)]
    ]
    nets = [net for job in jobs for net in job.nets(small_digits(), effort)]
    assert {net.n_train for net in nets} == {len(small_digits().train) - 300}
    tested = [net for own in a_replicate(0, effort) for net in own]
    assert {net.n_train for net in tested} == {None}
    assert len({(n.kind, n.length, n.seed, n.n_train) for n in nets + tested}) == len(
        nets + tested
    )


def test_costs_of_training_are_equal():
    (single,), long, short = a_replicate(0, EFFORT)
    assert sum(net.length for net in short) == single.length
    assert [net.length for net in long] == [single.length] * N_MEMBERS
    assert len({net.seed for net in long}) == N_MEMBERS
    others = [net.seed for own in a_replicate(1, EFFORT) for net in own]
    assert not {net.seed for net in long} & set(others)


def test_scores_are_averages_over_all_networks_of_a_kind():
    def tried(kind, replicate, value, part="validation"):
        own = (MC, kind.early_rate, kind.late_rate, kind.l2_penalty, 3, 5, 1)
        return Result(MLP, part, replicate, *own, 0.0, value, 1.0)

    records = [tried(DROPOUT, 0, -1.0), tried(DROPOUT, 1, -2.0), tried(PLAIN, 0, -0.1)]
    records.append(tried(DROPOUT, 2, 9.0, part="test"))
    assert scores(records, 2) == {DROPOUT: -1.5}  # the other lacks a network
    assert scores(records, 1) == {DROPOUT: -1.5, PLAIN: -0.1}
    close = [tried(DROPOUT, 0, -0.12345678), tried(PLAIN, 0, -0.12345699)]
    assert len(set(scores(close, 1).values())) == 1  # as it will be read back


def test_answers_are_those_of_draws_and_of_all_sets_of_members():
    images = small_digits()
    test = images.test.first(40)

    def expected_scores(log_probs):
        wrong = (log_probs.argmax(-1) != test.label).double().mean()
        return float(wrong), float(log_probs.gather(-1, test.label[:, None]).mean())

    job = EnsembleJob("test", 0, SHORT, PLAIN)
    nets = [net.run(images) for net in job.nets(images, EFFORT)]
    probs = torch.stack([standard_log_probs(net, test.image).exp() for net in nets])
    sets = combinations(range(5), 2)
    pairs = [expected_scores(probs[list(own)].mean(0).log()) for own in sets]
    found = run_job(job, images, EFFORT)[1]
    assert (found.n_passes, found.n_groups, found.length) == (2, 10, 2)
    means = np.mean(pairs, axis=0)
    np.testing.assert_allclose([found.error, found.log_likelihood], means, rtol=1e-6)

    job = EnsembleJob("test", 0, MC, DROPOUT)
    (net,) = job.nets(images, EFFORT)
    standard, single, double = run_job(job, images, EFFORT)
    logits = drawn_logits(net.run(images), test.image, n_draws=2, seed=net.seed)
    draws = logits.double().softmax(-1)
    averaged = standard_log_probs(net.run(images), test.image)
    one = np.mean([expected_scores(d.log()) for d in draws], axis=0)
    rest = [one, expected_scores(draws.mean(0).log())]
    for own, (error, likelihood) in zip(
        (standard, single, double), [expected_scores(averaged), *rest], strict=True
    ):
        assert own.length == 5 and own.error == pytest.approx(error)
        assert own.log_likelihood == pytest.approx(likelihood)
        assert own.kind == DROPOUT and own.seconds > 0.0


def test_what_is_tried_is_scored_on_the_images_held_out():
    images = small_digits()
    held_out = images.train.last(EFFORT.n_held_out)
    kind = Kind(LENET, 0.05, 0.3, 1e-4)
    job = EnsembleJob("validation", 0, MC, kind)
    (net,) = job.nets(images, EFFORT)
    (found,) = run_job(job, images, EFFORT)
    logits = drawn_logits(net.run(images), held_out.image, n_draws=3, seed=0)
    mean = logits.double().softmax(-1).mean(0).log()
    own = mean.gather(-1, held_out.label[:, None])
    assert found.log_likelihood == pytest.approx(float(own.mean()))
    assert (found.n_passes, found.kind) == (3, kind)
