"""What the page says follows from the results."""

from dataclasses import replace

import pytest

from caveat.papers.ensemble.comparison import (
    LONG,
    MC,
    N_MEMBERS,
    SHORT,
    STANDARD,
    EnsembleEffort,
    Result,
)
from caveat.papers.ensemble.networks import LENET, MLP, Kind
from caveat.papers.ensemble.wording import about, brief

EFFORT = EnsembleEffort(10, 3, (1, 5), None, None, 100, 1, 5)
PLAIN = Kind(MLP, 0.0, 0.0, 1e-4)
DROPOUT = Kind(MLP, 0.0, 0.1, 1e-5)


def page(mc_error, kind=DROPOUT, plain=PLAIN):
    """Of results in which the ensemble of 5 halves the error of one network."""

    def found(part, replicate, own, method, n_passes, error, likelihood):
        rates = own.early_rate, own.late_rate, own.l2_penalty
        length = n_passes if method == SHORT else 10 * n_passes
        rest = n_passes, length, 1, error + 1e-4 * replicate, likelihood, 1.0
        return Result(own.network, part, replicate, method, *rates, *rest)

    records = [found("validation", 0, k, "plain", 1, 0.1, -0.2) for k in (plain, kind)]
    for k in range(3):
        records += [found("test", k, kind, STANDARD, 1, 0.04, -0.15)]
        records += [found("test", k, kind, MC, n, mc_error, -0.11) for n in (1, 5)]
        for method in (LONG, SHORT):
            for n in range(1, N_MEMBERS + 1):
                gained = 0.04 - 0.005 * (n - 1)
                records.append(found("test", k, plain, method, n, gained, -0.2 / n))
    parts = list(about(kind.network, records, EFFORT))
    return "\n".join(map(str, parts)), brief(records)


def test_similar_performance_is_judged_by_both_gains():
    text, words = page(0.02)
    assert "100% and 56% of what the ensemble" in text
    assert "(at least 90% of both): does not hold" in text
    assert "gain 100% of what an ensemble of 5 gains" in " ".join(words.split())


def test_where_dropout_sits_is_that_of_the_choice():
    assert "before the second and the third: on pixels" in page(0.02)[0]
    text, _ = page(0.02, replace(DROPOUT, early_rate=0.05))
    assert "before every weight layer, as the theory has it" in text
    lenet = Kind(LENET, 0.05, 0.3, 1e-4)
    text, _ = page(0.02, lenet, Kind(LENET, 0.0, 0.0, 1e-4))
    assert "before every weight layer but the first" in text


@pytest.mark.parametrize(("rate", "is_end"), [(0.1, False), (0.01, True), (0.8, True)])
def test_a_choice_at_an_end_is_said_to_be_one(rate, is_end):
    text, _ = page(0.02, replace(DROPOUT, late_rate=rate))
    assert ("At an end of what could be tried" in text) is is_end
    assert ("None of them is at an end" in text) is not is_end
