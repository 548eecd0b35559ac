"""Averages over replicates and what they decide."""

from dataclasses import replace

import pytest

from caveat.papers.ensemble.averages import (
    by_network,
    gain,
    passes,
    select,
    share_of_gain,
)
from caveat.papers.ensemble.comparison import LONG, MC, Result
from caveat.papers.ensemble.networks import LENET, MLP


def result(method, n_passes, error, replicate=0, network=MLP):
    own = (method, 0.0, 0.0, 0.0, n_passes, 10, 1, error, -0.1, 1.0)
    return Result(network, "test", replicate, *own)


def test_gains_are_paired_by_replicate():
    first = [result(MC, 5, 0.02, 0), result(MC, 5, 0.03, 1)]
    second = [result(LONG, 5, 0.01, 0), result(LONG, 5, 0.01, 1)]
    found = gain(first, second, "error")
    assert found.value == pytest.approx(-0.015)
    assert found.error == pytest.approx(0.005)
    assert found.verdict == "no difference at 95%"  # 3 errors, but two replicates
    assert replace(found, n_replicates=20).verdict == "the ensemble is better"
    assert replace(found, value=0.1, n_replicates=9).verdict == "MC dropout is better"
    same = replace(gain(first, second, "log_likelihood"), n_replicates=20)
    assert same.verdict == "no difference at 95%"
    plain = [result(LONG, 1, 0.05, k) for k in (0, 1)]
    assert share_of_gain([*first, *second, *plain], 5, "error") == pytest.approx(5 / 8)


def test_networks_are_told_apart():
    records = [result(MC, n, 0.1, 0, name) for name in (MLP, LENET) for n in (1, 5)]
    records.append(replace(records[0], part="validation", n_passes=7))
    found = by_network(records)
    assert list(found) == [MLP, LENET]
    assert passes(found[MLP], MC) == passes(found[LENET], MC) == [1, 5]
    assert select(found[LENET], MC, 5) == [records[3]]
