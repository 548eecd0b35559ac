"""Figures 5 and 6 of paper 001: Thompson sampling against epsilon greedy."""

import math
import shutil
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from caveat.papers.experiment import Experiment
from caveat.papers.page import Claim, Part, bullets, flow, table, verdict
from caveat.papers.rl.film import richest_view, write_film
from caveat.papers.rl.training import (
    EXPLOITING,
    POLICIES,
    SINGLE,
    TICKS_PER_BATCH,
    AgentPlan,
    Reward,
    train,
)
from caveat.papers.style import line, name_axes, panels

Array = NDArray[np.float64]

SINGLES = ("thompson_single", "epsilon_greedy_single")  # reward not doubled
FULL = AgentPlan(
    n_seeds=8,
    n_batches=dict.fromkeys([*POLICIES, *SINGLES], 1_500),
    n_exploiting=50,
    n_frames=160,
    random_steps=5_000,
    learning_starts=1_000,
)
QUICK = AgentPlan(
    n_seeds=2,
    n_batches=dict.fromkeys([*POLICIES, *SINGLES], 10),
    n_exploiting=2,
    n_frames=10,
    random_steps=1_000,
    learning_starts=200,
)
_WINDOW = 5  # batches: the demo plots the mean of the last 1000 rewards
_LATE = 1 / 3  # of the batches: the plateau; in a full run, all after annealing
_CLEAR = 2.0  # standard errors from which a difference is clear
_LEVEL = 0.05  # of the sign test
_STUCK = 0.7  # mean reward of a batch below which an agent is stuck at a wall
_WITHOUT_FOOD = 1.1  # what going straight in the open earns
_WORDS = """Thompson sampling gets reward larger than 1 within 25 batches
from burn-in. Epsilon greedy takes 175 batches to achieve the same performance. It is
interesting to note that our approach seems to get worse results after 1K batches. This
is because we are still sampling random moves, whereas epsilon greedy only exploits at
this stage."""
_SETTINGS = f"""World and agent are those of the ConvNetJS demo that the paper used
(`caveat/Eyes-v0`; 27 inputs, 50 and 50 ReLU, 5 actions, discount 0.7, batches of 64
from a memory of 30,000, rate 0.001, weight decay 0.001, no target network). Its reward
for keeping off the walls is min(1, 2 proximity); in a later demo by the paper's author
it is the proximity itself. Which of them the paper ran is not said. That it was the
doubled one is inferred: its code is said to be that of the demo. All learn from step
1,000 on and move at random for 5,000 steps; epsilon then falls to 0.05 at step 200,000.
Thompson drops hidden units with probability 0.1, behind both non-linearities, as in the
first version of the paper; the later text, "before every weight layer", drops inputs
too: the third row. Agents of the same seed share worlds, first weights and random moves
across policies. A batch is {TICKS_PER_BATCH} ticks, the interval at which the demo
plots, so that the burn-in of 5,000 steps is the paper's 25 batches; the curve is the
mean of the last 1000 rewards, as in the demo."""
_NAMES = {
    "thompson": "Thompson",
    "epsilon_greedy": "epsilon greedy",
    "thompson_inputs": "Thompson, inputs dropped too",
    "thompson_single": "Thompson, reward not doubled",
    "epsilon_greedy_single": "epsilon greedy, reward not doubled",
}
_PAPER = dict.fromkeys(_NAMES, 25) | {
    name: 175 for name in _NAMES if name.startswith("epsilon_greedy")
}


def by_seed(rewards: Sequence[Reward], policy: str) -> Array:
    """Rewards of a policy, shape (seeds, batches)."""
    own = [r for r in rewards if r.policy == policy]
    found = np.zeros((1 + max(r.seed for r in own), max(r.batch for r in own)))
    for r in own:
        found[r.seed, r.batch - 1] = r.reward
    return found


def smoothed(rewards: Array) -> Array:
    """Mean of the last 1000 rewards after each batch; of all, at the very start."""
    total = np.cumsum(rewards, axis=-1)
    total[..., _WINDOW:] -= total[..., :-_WINDOW].copy()
    count = np.minimum(np.arange(1, rewards.shape[-1] + 1), _WINDOW)
    return np.asarray(total / count)


def batches_to(threshold: float, curve: Array, *, burn_in: int) -> float:
    """Batches after burn-in until a curve is above a threshold; inf for never."""
    above = np.flatnonzero(curve[burn_in:] > threshold)
    return float(above[0]) + 1.0 if above.size else math.inf


@dataclass(frozen=True)
class Summary:
    """What is read from the rewards of a policy."""

    crossing: float  # batches after burn-in until the mean over agents is above 1
    crossings: list[float]  # the same of each agent; inf for never
    plateau: Array  # mean reward of each agent in the last third
    exploiting: Array  # and after training, without exploration
    stuck: float  # share of the latter batches that were spent at a wall
    n_batches: int


def summarise(rewards: Sequence[Reward], policy: str, *, burn_in: int) -> Summary:
    """Crossings and plateaus of a policy; the burn-in is in batches."""
    own, after = by_seed(rewards, policy), by_seed(rewards, policy + EXPLOITING)
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


def _row(policy: str, own: Summary) -> dict[str, str]:
    each = np.median(own.crossings), min(own.crossings), max(own.crossings)
    middle, low, high = map(_count, each)
    return {
        "policy": _NAMES[policy],
        "batches trained": f"{own.n_batches:,}",
        "batches to reward 1": _count(own.crossing),
        "paper": str(_PAPER[policy]),
        "each agent: median (range)": f"{middle} ({low} to {high})",
        "plateau": _shown(own.plateau),
        "exploiting": _shown(own.exploiting),
        "stuck": f"{own.stuck:.0%}",
    }


def _count(batches: float) -> str:
    return "never" if math.isinf(batches) else f"{batches:g}"


def _shown(values: Array) -> str:
    return "{:.3f} ± {:.3f}".format(*_average(values))


def _average(values: Array) -> tuple[float, float]:
    """Over agents, and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))


def _verdicts(found: dict[str, Summary]) -> Iterator[str]:
    thompson, greedy = found["thompson"], found["epsilon_greedy"]
    yield from _crossings(thompson, greedy)
    gap, error = _average(greedy.plateau - thompson.plateau)
    yield f"""Thompson worse than epsilon greedy on the plateau, by more than {_CLEAR:g}
        standard errors: {verdict(gap > _CLEAR * error)}; epsilon greedy is ahead by
        {gap:+.3f} ± {error:.3f}. Its epsilon of 0.05 costs something too."""
    gains = thompson.exploiting - thompson.plateau
    more, count = int((gains > 0).sum()), len(gains)
    gap, error = _average(gains)
    yield f"""Thompson's plateau is lower than need be because it still explores:
        {verdict(_by_chance(more, count) < _LEVEL)} (sign test, as stuck agents rule the
        mean). Without exploration {more} of {count} agents earn more, {gap:+.3f} ±
        {error:.3f} on average."""
    best = max(own.plateau.mean() for own in (thompson, greedy))
    if best < _WITHOUT_FOOD:
        yield f"""Going straight in the open earns {_WITHOUT_FOOD:g} without eating. The
            best plateau is {best:.3f}: a reward above 1 says that an agent keeps off
            the walls, not that it finds food."""


def _crossings(thompson: Summary, greedy: Summary) -> Iterator[str]:
    """The first two claims, for one of the two rewards."""
    first, second = thompson.crossing, greedy.crossing
    yield f"Thompson above 1 within 25 batches from burn-in: {verdict(first <= 25)}."
    known = f", {second / first:.1f} times as long (paper: 7)"
    ratio = known if math.isfinite(first + second) else ""
    yield f"Epsilon greedy takes longer: {verdict(second > first)}{ratio}."


def _by_chance(more: int, count: int) -> float:
    """Probability that so many or more of fair coins show heads."""
    return sum(math.comb(count, k) for k in range(more, count + 1)) / 2**count


def _draw_rewards(
    axes: Axes, rewards: Sequence[Reward], policies: Sequence[str], burn_in: int
) -> None:
    """Curves of these policies, each in the colour that it has in all panels."""
    lowest = 1.0
    for policy in policies:
        own = line(list(POLICIES).index(policy.removesuffix(SINGLE)))
        curves = smoothed(by_seed(rewards, policy))[:, burn_in:]
        x = np.arange(1, curves.shape[1] + 1)
        mean, sd = curves.mean(0), curves.std(0, ddof=1)
        axes.plot(x, mean, label=_NAMES[policy], **own)
        band = {"color": own["color"], "alpha": 0.15, "linewidth": 0}
        axes.fill_between(x, mean - sd, mean + sd, **band)
        lowest = min(lowest, float((mean - sd)[:10].min()))
    axes.axhline(1.0, color="0.5", linewidth=0.8)
    for batches in sorted(set(_PAPER.values())):
        axes.axvline(batches, 0.62, 0.9, color="0.3", linewidth=0.9, linestyle=":")
        axes.annotate(f"paper: {batches}", (batches, 1.145), fontsize=7, ha="center")
    axes.set(xscale="log", xlim=(1, None), ylim=(lowest - 0.02, 1.2))
    axes.legend(loc="lower right")
    name_axes(axes, "", "batches of 200 ticks after burn-in", "reward")


Key = tuple[str, int, int]


@dataclass(frozen=True)
class ThompsonSampling(Experiment[str, Reward]):
    """Policies with one reward or the other, some agents each; a job is one of them.

    It leaves also a film, ``rl.gif``, and the network of the film's agent, ``rl.npz``;
    and checkpoints until all is done.
    """

    name = "rl"
    title = "Figures 5 and 6 of paper 001: Thompson sampling by dropout"
    record = Reward

    @property
    def plan(self) -> AgentPlan:
        """How much is run."""
        return QUICK if self.quick else FULL

    @property
    def checkpoints(self) -> Path:
        """Their folder."""
        return self.folder / f"{self.path('csv').stem}_checkpoints"

    def jobs(self, records: Sequence[Reward]) -> list[str]:
        return list(self.plan.n_batches)

    def key(self, record: Reward) -> Key:
        return record.policy, record.seed, record.batch

    def keys(self, job: str) -> list[Key]:
        plan = self.plan
        stages = {job: plan.n_batches[job], job + EXPLOITING: plan.n_exploiting}
        return [
            (policy, seed, batch)
            for policy, n_batches in stages.items()
            for seed in range(plan.n_seeds)
            for batch in range(1, n_batches + 1)
        ]

    def is_done(self, job: str, known: Collection[Hashable]) -> bool:
        has_network = job != "thompson" or self.path("npz").exists()
        return has_network and super().is_done(job, known)

    def run(self, job: str) -> list[Reward]:
        trained = train(job, self.plan, self.checkpoints / f"{job}.npz")
        if job == "thompson":
            self.folder.mkdir(parents=True, exist_ok=True)
            np.savez(self.path("npz"), **trained.network)  # type: ignore[arg-type]
        return trained.rewards

    def extras(self, records: Sequence[Reward]) -> None:
        write_film(self.path("gif"), self.path("npz"), self.plan.n_frames)
        shutil.rmtree(self.checkpoints, ignore_errors=True)

    def page(self, records: Sequence[Reward]) -> Iterator[Part]:
        burn_in = self.plan.burn_in
        trained = self.plan.n_batches
        found = {p: summarise(records, p, burn_in=burn_in) for p in trained}
        yield Claim(_WORDS)
        yield _SETTINGS
        yield table(_row(policy, own) for policy, own in found.items())
        yield flow(f"""Plateau: mean reward in the last third of training (of 1,500
            batches: all since annealing ended) ± standard error over
            {self.plan.n_seeds} agents. Exploiting: the same agents afterwards in new
            worlds, the best action of the network without dropout, no random moves, no
            learning. Stuck: share of these batches with a mean reward below {_STUCK:g};
            an agent that always does the same can stay at a wall.""")
        yield bullets(_verdicts(found))
        yield "Without the doubling:"
        yield bullets(_crossings(*(found[name] for name in SINGLES)))

    def in_brief(self, records: Sequence[Reward]) -> tuple[str, str]:
        first, second, *single = (
            _count(summarise(records, policy, burn_in=self.plan.burn_in).crossing)
            for policy in ("thompson", "epsilon_greedy", *SINGLES)
        )
        paper = """Thompson sampling reaches a reward of 1 within 25 batches, epsilon
            greedy after 175"""
        ours = f"""after {first} and {second} batches, with the reward for proximity
            doubled, which is inferred; without the doubling: {" and ".join(single)}"""
        return paper, ours

    def figure(self, records: Sequence[Reward]) -> Figure:
        """The world, and rewards against batches for either reward."""
        figure, grid = panels(3, 1, height=6.0, height_ratios=[1.0, 1.0, 1.0])
        world, doubled, single = grid[:, 0]
        world.imshow(richest_view(self.path("npz"), self.plan.n_frames))
        world.set_axis_off()
        name_axes(world, "the world (fig. 5): walls, food, poison (crossed), nine eyes")
        _draw_rewards(doubled, records, list(POLICIES), self.plan.burn_in)
        _draw_rewards(single, records, SINGLES, self.plan.burn_in)
        doubled.set_title(
            "mean of the last 1000 rewards (fig. 6), mean ± sd over agents"
        )
        single.set_title("the same with the reward for proximity not doubled")
        return figure
