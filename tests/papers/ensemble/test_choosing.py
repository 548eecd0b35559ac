"""The climb: what is tried, and that it ends where nothing around is better."""

import math
from dataclasses import replace

import pytest

from caveat.papers.ensemble.choosing import (
    LADDERS,
    STARTS,
    is_at_end,
    neighbours,
    search,
)
from caveat.papers.ensemble.networks import LENET, MLP, Kind


def climbed(start, score):
    """The search as the runner does it: only what is asked for becomes known."""
    known, rounds = {}, 0
    while (found := search(start, known)).chosen is None:
        asked = [kind for kind in found.tried if kind not in known]
        assert asked, "nothing is asked for, and nothing is chosen"
        known |= {kind: score(kind) for kind in asked}
        rounds += 1
    return found, known, rounds


def hill(top):
    """A score with one top, in the places of the ladders."""

    def score(kind):
        places = ((own.index(getattr(kind, n)), own, n) for n, own in LADDERS.items())
        return -sum(abs(place - own.index(getattr(top, n))) for place, own, n in places)

    return score


TOPS = [
    Kind(MLP, 0.05, 0.2, 3e-6),
    Kind(MLP, 0.0, 0.01, 0.0),
    Kind(MLP, 0.8, 0.8, 1e-2),
]


@pytest.mark.parametrize("top", TOPS)
def test_the_top_is_found_wherever_it_is(top):
    found, known, _ = climbed(STARTS[MLP][1], hill(top))
    assert found.chosen == top
    assert set(found.tried) == set(known)  # no more than needed is asked for
    assert len(set(found.tried)) == len(found.tried)


def test_no_neighbour_of_the_choice_is_better():
    """On a rough surface it may be no top of all, but it is one around itself."""

    def rough(kind):
        place = sum(
            (3 * k + 1) * own.index(getattr(kind, name))
            for k, (name, own) in enumerate(LADDERS.items())
        )
        return math.sin(1.7 * place)

    found, known, _ = climbed(STARTS[LENET][1], rough)
    for name in LADDERS:
        for other in neighbours(found.chosen, name):
            assert known[other] <= known[found.chosen]


def test_plain_networks_search_their_penalty_alone():
    start = STARTS[LENET][0]
    found, _, _ = climbed(start, lambda kind: -abs(math.log10(kind.l2_penalty or 1e-9)))
    assert found.chosen == replace(start, l2_penalty=1e-2)  # the score goes on rising
    assert all(kind.is_plain for kind in found.tried)
    assert is_at_end(found.chosen)


def test_the_same_scores_give_the_same_road():
    """Records are sorted by it when they are read back."""
    found, known, _ = climbed(STARTS[MLP][1], hill(TOPS[0]))
    assert search(STARTS[MLP][1], known) == found
    assert search(STARTS[MLP][1], dict(reversed(known.items()))) == found


def test_ends_are_where_a_search_might_have_gone_on():
    inside = Kind(MLP, 0.0, 0.1, 0.0)  # a rate of 0 has nothing below
    assert not is_at_end(inside)
    assert is_at_end(replace(inside, late_rate=0.01))
    assert is_at_end(replace(inside, early_rate=0.8))
    assert is_at_end(replace(inside, l2_penalty=1e-2))
    plain = Kind(MLP, 0.0, 0.0, 0.0)
    assert not is_at_end(plain)
    for start in (kind for pair in STARTS.values() for kind in pair):
        assert not is_at_end(start)


def test_neighbours_are_the_next_values():
    kind = Kind(MLP, 0.0, 0.1, 1e-5)
    assert [k.early_rate for k in neighbours(kind, "early_rate")] == [0.01]
    assert [k.late_rate for k in neighbours(kind, "late_rate")] == [0.05, 0.2]
