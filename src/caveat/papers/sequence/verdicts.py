"""Whether one mask per sequence over-fits less than the others, seed by seed."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from caveat.papers.page import markdown_table
from caveat.papers.sequence.curves import Array, Curves, all_curves, chosen
from caveat.papers.sequence.networks import VARIANTS
from caveat.papers.sequence.runs import Record
from caveat.papers.sequence.texts import TASKS

NAMES = {"ratings": "Ratings of films", "sentiment": "SST-2"}
_WHEN = (
    ("test", "after the last epoch"),
    ("test_stopped", "of networks stopped at their best"),
)
_WHAT = ("log-likelihood", "error")
NATS = 0.01  # what a difference must exceed in every seed to count
ERRORS = {"ratings": 0.001, "sentiment": 0.005}


def verdicts(records: Sequence[Record]) -> Iterator[str]:
    """What holds, on which task."""
    own = {t: [chosen(records, t, v) for v in VARIANTS] for t in TASKS}
    falls = {t: f"{own[t][0].lost.mean():.3f} on {t}" for t in TASKS}
    yield (
        "Without dropout the validation log-likelihood falls after its best epoch, in "
        f"every seed: {_said(clear(own[t][0].lost, NATS) for t in TASKS)} "
        f"({', '.join(falls.values())})."
    )
    for k in (0, 1):
        pairs = [(own[t][-1], own[t][k]) for t in TASKS]
        name = own[TASKS[0]][k].variant
        yield (
            f"With one mask per sequence it falls less than with {name}, in every "
            f"seed: {_said(clear(b.lost - a.lost, NATS) for a, b in pairs)}."
        )
        for part, when in _WHEN:
            gains = [gained(ours, other, part) for ours, other in pairs]
            yield (
                f"On test rows {when} it has a higher log-likelihood than {name}, in "
                f"every seed: {_said(clear(g, NATS) for g, _ in gains)}; and a lower "
                f"error: {_said(map(clear, (e for _, e in gains), ERRORS.values()))}."
            )


def at_any_rate(records: Sequence[Record]) -> str:
    """The same where the choice of a rate has no part, since it can be a near tie."""
    lost, best = [], []
    for task in TASKS:
        ordinary, ours = (all_curves(records, task, v) for v in VARIANTS[1:])
        most = max(float(c.lost.mean()) for c in ours)
        least = min(float(c.lost.mean()) for c in ordinary)
        lost.append(f"{most:.3f} against {least:.3f} on {task}")
        gap = [max(float(c.best.mean()) for c in own) for own in (ours, ordinary)]
        best.append(f"{gap[0] - gap[1]:+.3f} on {task}")
    return (
        "Whatever the rates: the most that one mask per sequence loses, against the "
        f"least that ordinary masks lose, is {' and '.join(lost)}. At its best epoch "
        "its validation log-likelihood less that of ordinary masks is "
        f"{' and '.join(best)}."
    )


def comparison(records: Sequence[Record]) -> str:
    """One mask per sequence less the others, on test rows."""
    head = ["task", "against", "lost on validation rows"]
    head += [f"{when}: {what}" for when in ("last", "stopped") for what in _WHAT]
    rows = []
    for task in TASKS:
        *others, ours = (chosen(records, task, v) for v in VARIANTS)
        for other in others:
            cells = [f"{ours.lost.mean():.3f} against {other.lost.mean():.3f}"]
            for part, _ in _WHEN:
                likelihood, error = gained(ours, other, part)
                shown = f"{likelihood.mean():+.3f}", _signed_error(ours, -error)
                cells += [f"{shown[0]} ({_judged(likelihood, NATS)})"]
                cells += [f"{shown[1]} ({_judged(error, ERRORS[task])})"]
            rows.append([NAMES[task], other.variant, *cells])
    return markdown_table(head, rows)


def gained(ours: Curves, other: Curves, part: str) -> tuple[Array, Array]:
    """By how much our log-likelihood is higher and our error lower, for each seed."""
    likelihood = ours.test("log_likelihood", part) - other.test("log_likelihood", part)
    return likelihood, other.test("error", part) - ours.test("error", part)


def _judged(gains: Array, margin: float) -> str:
    if clear(gains, margin):
        return "better"
    return "worse" if clear(-gains, margin) else "even"


def _signed_error(own: Curves, gaps: Array) -> str:
    mean = float(percent(own, gaps).mean())
    return f"{mean:+.4f}" if own.task == "ratings" else f"{mean:+.1f} points"


def clear(gains: Array, margin: float) -> bool:
    """Whether the gain of every seed exceeds a margin."""
    return bool(np.all(gains > margin))


def _said(on_tasks: Iterable[bool]) -> str:
    """Whether it is so on both tasks, or on which."""
    found = [t for t, is_so in zip(TASKS, on_tasks, strict=True) if is_so]
    if len(found) == len(TASKS):
        return "**holds** on both"
    return f"**holds** on {found[0]} only" if found else "**does not hold**"


def percent(own: Curves, errors: Array) -> Array:
    """Errors as they are shown: those of labels in percent."""
    return errors if own.task == "ratings" else 100 * errors
