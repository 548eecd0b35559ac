"""The page of figures 5 and 6: our numbers beside the paper's."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caveat.papers.page import markdown_table
from caveat.papers.rl.records import (
    TICKS_PER_BATCH,
    Reward,
    batches_to,
    smoothed,
    table,
)
from caveat.papers.rl.training import EXPLOITING, POLICIES

_LATE = 1 / 3  # of the batches: the plateau; in a full run, all after annealing
_CLEAR = 2.0  # standard errors from which a difference is clear
_LEVEL = 0.05  # of the sign test
_STUCK = 0.7  # mean reward of a batch below which an agent is stuck at a wall
_WITHOUT_FOOD = 1.1  # what going straight in the open earns
_TITLE = "Figures 5 and 6 of paper 001: Thompson sampling by dropout"
_WORDS = """The paper: "Thompson sampling gets reward larger than 1 within 25 batches
from burn-in. Epsilon greedy takes 175 batches to achieve the same performance. It is
interesting to note that our approach seems to get worse results after 1K batches. This
is because we are still sampling random moves, whereas epsilon greedy only exploits at
this stage." """
_SETTINGS = f"""World and agent are those of the ConvNetJS demo that the paper used
(`caveat/Eyes-v0`; 27 inputs, 50 and 50 ReLU, 5 actions, discount 0.7, batches of 64
from a memory of 30,000, rate 0.001, weight decay 0.001, no target network), with its
reward for proximity doubled. All learn from step 1,000 on and move at random for 5,000
steps; epsilon then falls to 0.05 at step 200,000. Thompson drops hidden units with
probability 0.1, behind both non-linearities, as in the first version of the paper; the
later text, "before every weight layer", drops inputs too: the third row. Agents of the
same seed share worlds, first weights and random moves across policies. A batch is
{TICKS_PER_BATCH} ticks, the interval at which the demo plots, so that the burn-in of
5,000 steps is the paper's 25 batches; the curve is the mean of the last 1000 rewards,
as in the demo."""
_NAMES = {
    "thompson": "Thompson",
    "epsilon_greedy": "epsilon greedy",
    "thompson_inputs": "Thompson, inputs dropped too",
}
_PAPER = {"thompson": "25", "epsilon_greedy": "175", "thompson_inputs": "25"}


@dataclass(frozen=True)
class Summary:
    """What is read from the rewards of a policy.

    Attributes
    ----------
    crossing : int or None
        Batches after burn-in until the mean over agents is above 1; None for never.
    crossings : list of int or None
        The same of each agent.
    plateau, exploiting : array, shape (agents,)
        Mean reward in the last third, and after training without exploration.
    stuck : float
        Share of the latter batches that were spent at a wall.
    n_batches : int
    """

    crossing: int | None
    crossings: list[int | None]
    plateau: NDArray[np.float64]
    exploiting: NDArray[np.float64]
    stuck: float
    n_batches: int


def summarise(rewards: Sequence[Reward], policy: str, *, burn_in: int) -> Summary:
    """Crossings and plateaus of a policy.

    Parameters
    ----------
    rewards : sequence of Reward
        Of all policies.
    policy : str
        The one that is meant.
    burn_in : int
        Batches of random moves.

    Returns
    -------
    Summary
    """
    own, after = table(rewards, policy), table(rewards, policy + EXPLOITING)
    curves = smoothed(own)
    n_batches = own.shape[1]
    return Summary(
        batches_to(1.0, curves.mean(0), burn_in=burn_in),
        [batches_to(1.0, curve, burn_in=burn_in) for curve in curves],
        own[:, -round(n_batches * _LATE) :].mean(1),
        after.mean(1),
        float((after < _STUCK).mean()),
        n_batches,
    )


def render(rewards: Sequence[Reward], *, burn_in: int) -> Iterator[str]:
    """The parts of the page.

    Parameters
    ----------
    rewards : sequence of Reward
        Of all policies.
    burn_in : int
        Batches of random moves.

    Yields
    ------
    str
        The title, then Markdown.
    """
    found = {p: summarise(rewards, p, burn_in=burn_in) for p in POLICIES}
    yield _TITLE
    yield _WORDS.strip()
    yield _SETTINGS
    yield _table(found)
    yield (
        "Plateau: mean reward in the last third of training (of 1,500 batches: all "
        f"since annealing ended) ± standard error over "
        f"{len(found['thompson'].plateau)} agents. Exploiting: the same agents "
        "afterwards in new worlds, the best action of the network without dropout, no "
        "random moves, no learning. Stuck: share of these batches with a mean reward "
        f"below {_STUCK:g}; an agent that always does the same can stay at a wall."
    )
    yield "\n".join(f"- {verdict}" for verdict in _verdicts(found))


def _table(found: dict[str, Summary]) -> str:
    head = ["policy", "batches trained", "batches to reward 1", "paper"]
    head += ["each agent: median (range)", "plateau", "exploiting", "stuck"]
    return markdown_table(head, [_row(p, summary) for p, summary in found.items()])


def _row(policy: str, summary: Summary) -> list[str]:
    return [
        _NAMES[policy],
        f"{summary.n_batches:,}",
        _count(summary.crossing),
        _PAPER[policy],
        _spread(summary.crossings),
        _mean(summary.plateau),
        _mean(summary.exploiting),
        f"{summary.stuck:.0%}",
    ]


def _verdicts(found: dict[str, Summary]) -> Iterator[str]:
    thompson, greedy = found["thompson"], found["epsilon_greedy"]
    first, second = thompson.crossing, greedy.crossing
    within = first is not None and first <= 25
    yield f"Thompson above 1 within 25 batches from burn-in: {_said(within)}."
    yield f"Epsilon greedy takes longer: {_said(_later(first, second))}{_ratio(found)}."
    gap, error = _gap(greedy.plateau, thompson.plateau)
    yield (
        "Thompson worse than epsilon greedy on the plateau, by more than "
        f"{_CLEAR:g} standard errors: {_said(gap > _CLEAR * error)}; epsilon greedy is "
        f"ahead by {gap:+.3f} ± {error:.3f}. Its epsilon of 0.05 costs something too."
    )
    gain, gain_error = _gap(thompson.exploiting, thompson.plateau)
    more = int((thompson.exploiting > thompson.plateau).sum())
    clear = _by_chance(more, len(thompson.plateau)) < _LEVEL
    yield (
        "Thompson's plateau is lower than need be because it still explores: "
        f"{_said(clear)} (sign test, as stuck agents rule the mean). Without "
        f"exploration {more} of {len(thompson.plateau)} agents earn more, {gain:+.3f} "
        f"± {gain_error:.3f} on average."
    )
    best = max(summary.plateau.mean() for summary in found.values())
    if best < _WITHOUT_FOOD:
        yield (
            f"Going straight in the open earns {_WITHOUT_FOOD:g} without eating. The "
            f"best plateau is {best:.3f}: a reward above 1 says that an agent keeps "
            "off the walls, not that it finds food."
        )


def _later(first: int | None, second: int | None) -> bool:
    return first is not None and (second is None or second > first)


def _ratio(found: dict[str, Summary]) -> str:
    first, second = found["thompson"].crossing, found["epsilon_greedy"].crossing
    if first is None or second is None:
        return ""
    return f", {second / first:.1f} times as long (paper: 7)"


def _gap(
    ahead: NDArray[np.float64], behind: NDArray[np.float64]
) -> tuple[float, float]:
    """Mean difference of agents with the same seed, and its standard error."""
    difference = ahead - behind
    spread = difference.std(ddof=1) / math.sqrt(len(difference))
    return float(difference.mean()), float(spread)


def _by_chance(more: int, count: int) -> float:
    """Probability that so many or more of fair coins show heads."""
    return sum(math.comb(count, k) for k in range(more, count + 1)) / 2**count


def _count(batches: int | None) -> str:
    return "never" if batches is None else str(batches)


def _spread(crossings: Sequence[int | None]) -> str:
    known = sorted(c if c is not None else math.inf for c in crossings)
    middle, *ends = (float(np.median(known)), known[0], known[-1])
    shown = ["never" if math.isinf(v) else f"{v:g}" for v in (middle, *ends)]
    return f"{shown[0]} ({shown[1]} to {shown[2]})"


def _mean(values: NDArray[np.float64]) -> str:
    error = values.std(ddof=1) / math.sqrt(len(values))
    return f"{values.mean():.3f} ± {error:.3f}"


def _said(holds: bool) -> str:
    return "**holds**" if holds else "**does not hold**"
