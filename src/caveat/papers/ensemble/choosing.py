"""Drop rates and penalties by climbing: no grid has to be wide enough beforehand.

From where it starts, a search looks at both neighbours in one direction, moves to the
better one, and goes on until a whole round of directions has no better neighbour. So
what is chosen has been compared with both sides of itself in each direction.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from caveat.papers.ensemble.networks import LENET, MLP, Kind

_RATES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
_PENALTIES = (0.0, 1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2)
LADDERS = {
    "late_rate": _RATES[1:],  # the rate 0 is the plain network
    "early_rate": _RATES,
    "l2_penalty": _PENALTIES,
}
STARTS = {
    MLP: (Kind(MLP, 0.0, 0.0, 1e-4), Kind(MLP, 0.0, 0.1, 1e-5)),
    LENET: (Kind(LENET, 0.0, 0.0, 3e-4), Kind(LENET, 0.05, 0.3, 1e-4)),
}  # plain, and with dropout
Scores = Mapping[Kind, float]  # larger is better


@dataclass(frozen=True)
class Search:
    """How far a search has come."""

    tried: tuple[Kind, ...]  # or still to be tried, in this order
    chosen: Kind | None  # None while scores are missing


def search(start: Kind, scores: Scores) -> Search:
    """What has to be tried by now, and the choice if all of that is known."""
    here, tried = start, [start]
    names = [name for name in LADDERS if not start.is_plain or name == "l2_penalty"]
    place = without_gain = 0
    while without_gain < len(names):
        near = list(neighbours(here, names[place]))
        tried += [kind for kind in near if kind not in tried]
        if any(kind not in scores for kind in tried):
            return Search(tuple(tried), None)
        better = max(near, key=_by(scores))
        if scores[better] > scores[here]:
            here, without_gain = better, 0
        else:
            place, without_gain = (place + 1) % len(names), without_gain + 1
    return Search(tuple(tried), here)


def neighbours(kind: Kind, name: str) -> Iterator[Kind]:
    """The next smaller and larger value of a field, as far as there are such."""
    ladder = LADDERS[name]
    place = ladder.index(getattr(kind, name))
    for other in (place - 1, place + 1):
        if 0 <= other < len(ladder):
            change: dict[str, Any] = {name: ladder[other]}
            yield replace(kind, **change)


def is_at_end(kind: Kind) -> bool:
    """Whether a search might have gone on beyond; rates and penalties of 0 cannot."""
    names = ["l2_penalty"] if kind.is_plain else list(LADDERS)
    ends = {name: {LADDERS[name][0], LADDERS[name][-1]} - {0.0} for name in names}
    return any(getattr(kind, name) in own for name, own in ends.items())


def _by(scores: Scores) -> Callable[[Kind], float]:
    return lambda kind: scores[kind]
