"""Networks of each way to predict, and the choice of settings."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import torch

from caveat.papers.ensemble.comparison import (
    DROPOUT,
    LONG,
    MC,
    N_MEMBERS,
    PLAIN,
    SHORT,
    EnsembleEffort,
    EnsembleJob,
    Result,
    best,
    is_at_end,
    run_job,
    trials,
)
from caveat.papers.ensemble.experiment import (
    FULL,
)
from caveat.papers.lenet import NetStore, drawn_logits, standard_log_probs
from caveat.papers.lenet.images import small_digits


def a_replicate(number):
    """The networks of MC dropout and of both ensembles."""
    methods = {MC: DROPOUT[0], LONG: PLAIN[0], SHORT: PLAIN[0]}
    jobs = [EnsembleJob("test", number, *method) for method in methods.items()]
    return [job.nets(small_digits(), FULL) for job in jobs]


def test_names_of_files_tell_networks_apart():
    effort = replace(FULL, n_held_out=300)
    nets = [net for job in trials(2) for net in job.nets(small_digits(), effort)]
    for number in range(3):
        nets += [net for own in a_replicate(number) for net in own]
    assert len(nets) == 2 * len((*PLAIN, *DROPOUT)) + 3 * (1 + 2 * N_MEMBERS)
    assert len({net.name for net in nets}) == len(nets)
    assert {net.n_train for net in nets} == {len(small_digits().train) - 300, None}


def test_costs_of_training_are_equal():
    (single,), long, short = a_replicate(0)
    assert sum(net.epochs for net in short) == single.epochs
    assert [net.epochs for net in long] == [single.epochs] * N_MEMBERS
    assert len({net.seed for net in long}) == N_MEMBERS


def test_the_best_kind_is_that_of_the_largest_likelihood():
    """On average over its networks, not by the luckiest."""
    validation = [
        Result("validation", k, MC, str(kind), 1, 10, 1, 0.0, -value)
        for kind, values in zip(
            DROPOUT[:3], ((0.0, 0.9), (0.2, 0.2), (0.3, 0.3)), strict=True
        )
        for k, value in enumerate(values)
    ]
    assert best(DROPOUT[:3], validation) == DROPOUT[1]


def test_ends_are_where_the_search_might_have_gone_on():
    assert [k.l2_penalty for k in PLAIN if is_at_end(k)] == [1e-4]
    rates = [k.drop_rates for k in DROPOUT if is_at_end(k)]
    assert rates == [(0.0, 0.1, 0.1), (0.2, 0.5, 0.5)]


def test_answers_are_those_of_draws_and_of_all_sets_of_members(tmp_path, no_data):
    effort = EnsembleEffort(5, 1, (1, 2), 40, 100, 50, 1)
    store, images = NetStore(tmp_path, "digits"), small_digits()
    test = images.test.first(40)

    def scores(log_probs):
        wrong = (log_probs.argmax(-1) != test.label).double().mean()
        return float(wrong), float(log_probs.gather(-1, test.label[:, None]).mean())

    job = EnsembleJob("test", 0, SHORT, PLAIN[0])
    nets = [store.get(net) for net in job.nets(images, effort)]
    probs = torch.stack([standard_log_probs(net, test.image).exp() for net in nets])
    pairs = [scores(probs[list(s)].mean(0).log()) for s in combinations(range(5), 2)]
    found = run_job(job, store, images, effort)[1]
    assert (found.n_passes, found.n_groups, found.epochs) == (2, 10, 2)
    means = np.mean(pairs, axis=0)
    np.testing.assert_allclose([found.error, found.log_likelihood], means, rtol=1e-6)

    job = EnsembleJob("test", 0, MC, DROPOUT[0])
    (net,) = job.nets(images, effort)
    standard, single, double = run_job(job, store, images, effort)
    logits = drawn_logits(store.get(net), test.image, n_draws=2, seed=net.seed)
    draws = logits.double().softmax(-1)
    averaged = standard_log_probs(store.get(net), test.image)
    expected = [scores(averaged), np.mean([scores(d.log()) for d in draws], axis=0)]
    expected.append(scores(draws.mean(0).log()))
    for own, (error, likelihood) in zip(
        (standard, single, double), expected, strict=True
    ):
        assert own.epochs == 5 and own.error == pytest.approx(error)
        assert own.log_likelihood == pytest.approx(likelihood)
