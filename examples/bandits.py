"""Thompson sampling against epsilon-greedy on four contextual bandits
===================================================================

Eleven agents play the same rounds with ten seeds: rewards linear in the context, smooth
functions of it, the wheel of Riquelme et al. (2018), and scikit-learn's digits with an
arm per class. A second part asks whether the draws of each model concentrate as rounds
come in. Writes a table of all runs, a page and a figure; a run that was stopped is
taken up.

::

    python examples/bandits.py [--quick] [--seeds S] [--workers N] [--output FOLDER]
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from caveat.data import load_digits_images
from caveat.decisions.bandits import (
    Agent,
    BanditProblem,
    ClassificationProblem,
    DropoutRewards,
    EnsembleRewards,
    EpsilonGreedyAgent,
    LinearProblem,
    LinearRewards,
    RegretCurve,
    RegretDisplay,
    ReplayTraining,
    RewardModel,
    SmoothProblem,
    ThompsonAgent,
    UniformAgent,
    WheelProblem,
    run_bandit,
)
from caveat.engines import spread
from caveat.papers.page import markdown_table
from caveat.papers.records import read_records, write_records
from caveat.papers.style import house_style, panels

Array = NDArray[np.float64]

BATCH = 10  # rounds after which rewards come back
EPSILON = 0.1
PULLS = 3  # of each arm, before a network decides
ANNEAL_AFTER = 100
PLACES = 20  # of each curve that are kept


# --- what is played, and by whom ------------------------------------------------------


@cache
def problem(name: str) -> BanditProblem:
    """One of the four problems."""
    if name == "digits":
        digits = load_digits_images()
        pixels = digits.image.reshape(len(digits), -1)
        return ClassificationProblem.standardised(pixels, digits.label)
    known = {
        "linear": LinearProblem(),
        "smooth": SmoothProblem(),
        "wheel": WheelProblem(),
    }
    return known[name]


PROBLEMS = {
    "linear": "linear rewards, 10 correlated features, 5 arms",
    "smooth": "smooth rewards, 2 features, 5 arms",
    "wheel": "wheel with delta = 0.7, 2 features, 5 arms",
    "digits": "digits, 64 features, 10 arms",
}


def linear(p: BanditProblem, seed: int, **settings: float) -> LinearRewards:
    """The exact posterior of paper 002."""
    after = ANNEAL_AFTER if settings.pop("annealed", False) else None
    return LinearRewards(
        p.n_features, p.n_arms, anneal_after=after, seed=seed, **settings
    )


def dropout(
    p: BanditProblem, seed: int, drop_rate: float = 0.1, *, annealed: bool = False
) -> DropoutRewards:
    """A network with dropout."""
    return DropoutRewards(
        p.n_features,
        p.n_arms,
        drop_rate=drop_rate,
        anneal_after=ANNEAL_AFTER if annealed else None,
        seed=seed,
    )


def ensemble(p: BanditProblem, seed: int) -> EnsembleRewards:
    """Ten networks without dropout."""
    return EnsembleRewards(p.n_features, p.n_arms, seed=seed)


def by_thompson(model: RewardModel) -> Agent:
    """Thompson sampling by a network."""
    return ThompsonAgent(model, initial_pulls=PULLS)


def by_chance(model: RewardModel, seed: int, epsilon: float) -> Agent:
    """Epsilon-greedy by a network."""
    return EpsilonGreedyAgent(model, epsilon=epsilon, initial_pulls=PULLS, seed=seed)


AGENTS: dict[str, Callable[[BanditProblem, int], Agent]] = {
    "uniform": lambda p, s: UniformAgent(p.n_arms, seed=s),
    "linear, Thompson": lambda p, s: ThompsonAgent(linear(p, s)),
    "linear f = 0.2, Thompson": lambda p, s: ThompsonAgent(linear(p, s, drop_rate=0.2)),
    "linear f = 0.2 falling, Thompson": lambda p, s: ThompsonAgent(
        linear(p, s, drop_rate=0.2, annealed=True)
    ),
    "linear, epsilon-greedy": lambda p, s: EpsilonGreedyAgent(
        linear(p, s), epsilon=EPSILON, seed=s
    ),
    "dropout f = 0.1, Thompson": lambda p, s: by_thompson(dropout(p, s)),
    "dropout f = 0.3, Thompson": lambda p, s: by_thompson(dropout(p, s, 0.3)),
    "dropout f = 0.3 falling, Thompson": lambda p, s: by_thompson(
        dropout(p, s, 0.3, annealed=True)
    ),
    "ensemble, Thompson": lambda p, s: by_thompson(ensemble(p, s)),
    "dropout f = 0.1, epsilon-greedy": lambda p, s: by_chance(
        dropout(p, s), s, EPSILON
    ),
    "dropout f = 0.1, greedy": lambda p, s: by_chance(dropout(p, s), s, 0.0),
}
SHOWN = (
    "linear, Thompson",
    "linear, epsilon-greedy",
    "dropout f = 0.1, Thompson",
    "dropout f = 0.3 falling, Thompson",
    "ensemble, Thompson",
    "dropout f = 0.1, epsilon-greedy",
)
PAIRS = (
    ("linear, Thompson", "linear, epsilon-greedy"),
    ("dropout f = 0.1, Thompson", "dropout f = 0.1, epsilon-greedy"),
    ("dropout f = 0.1, Thompson", "dropout f = 0.1, greedy"),
    ("dropout f = 0.3 falling, Thompson", "dropout f = 0.1, epsilon-greedy"),
    ("ensemble, Thompson", "dropout f = 0.1, epsilon-greedy"),
    ("dropout f = 0.3 falling, Thompson", "dropout f = 0.3, Thompson"),
    ("linear f = 0.2 falling, Thompson", "linear f = 0.2, Thompson"),
    ("linear, Thompson", "linear f = 0.2, Thompson"),
)


@dataclass(frozen=True)
class Job:
    """One agent on one problem with one seed."""

    problem: str
    agent: str
    seed: int
    n_rounds: int


@dataclass(frozen=True)
class Record:
    """What came of a job: cumulative regret at equal steps, and that of chance."""

    problem: str
    agent: str
    seed: int
    n_rounds: int
    uniform: float
    regret: str

    @property
    def job(self) -> Job:
        """What it is the answer to."""
        return Job(self.problem, self.agent, self.seed, self.n_rounds)

    @property
    def curve(self) -> Array:
        """The numbers in ``regret``."""
        return np.array([float(number) for number in self.regret.split()])


def play(job: Job) -> Record:
    """Run a job."""
    chosen = problem(job.problem)
    agent = AGENTS[job.agent](chosen, job.seed)
    run = run_bandit(
        chosen, agent, n_rounds=job.n_rounds, batch_size=BATCH, seed=job.seed
    )
    rounds = chosen.rounds(job.n_rounds, job.seed)
    places = run.cumulative_regret[job.n_rounds // PLACES - 1 :: job.n_rounds // PLACES]
    return Record(
        job.problem,
        job.agent,
        job.seed,
        job.n_rounds,
        float(rounds.uniform_regret().sum()),
        " ".join(f"{value:.5g}" for value in places),
    )


# --- do draws concentrate? ------------------------------------------------------------


@dataclass(frozen=True)
class Spread:
    """Draws of a model after so many uniformly random rounds of the linear problem."""

    model: str
    seed: int
    n_rounds: int
    sd: float
    error: float


MODELS: dict[str, Callable[[BanditProblem, int], RewardModel]] = {
    "linear": linear,
    "linear f = 0.2": lambda p, s: linear(p, s, drop_rate=0.2),
    "linear f = 0.2 falling": lambda p, s: linear(p, s, drop_rate=0.2, annealed=True),
    "dropout f = 0.1": dropout,
    "dropout f = 0.3": lambda p, s: dropout(p, s, 0.3),
    "dropout f = 0.3 falling": lambda p, s: dropout(p, s, 0.3, annealed=True),
    "ensemble": ensemble,
}
CONTEXTS, DRAWS = 200, 40


@dataclass(frozen=True)
class Watch:
    """A model whose draws are looked at after some numbers of rounds."""

    model: str
    seed: int
    lengths: tuple[int, ...]


def watch(job: Watch) -> list[Spread]:
    """Mean spread of draws and error of their mean, on contexts not learned from."""
    task = problem("linear")
    model = MODELS[job.model](task, job.seed)
    n_rounds = max(job.lengths)
    rounds = task.rounds(n_rounds + CONTEXTS, job.seed)
    arms = np.random.default_rng(job.seed).integers(task.n_arms, size=n_rounds)
    test, truth = rounds.contexts[-CONTEXTS:], rounds.means[-CONTEXTS:]
    found = []
    for start in range(0, n_rounds, BATCH):
        batch = np.arange(start, start + BATCH)
        gains = rounds.rewards[batch, arms[batch]]
        model.partial_fit(rounds.contexts[batch], arms[batch], gains)
        if start + BATCH in job.lengths:
            draws = np.stack([model.function(t)(test) for t in range(DRAWS)])
            error = np.sqrt(np.square(model.mean(test) - truth).mean())
            sd = draws.std(0, ddof=1).mean()
            found.append(
                Spread(job.model, job.seed, start + BATCH, float(sd), float(error))
            )
    return found


# --- the page -------------------------------------------------------------------------


def plus_minus(values: Sequence[float] | Array) -> str:
    """Mean and standard error over seeds."""
    numbers = np.asarray(values, dtype=np.float64)
    error = numbers.std(ddof=1) / np.sqrt(len(numbers))
    digits = 3 if abs(numbers.mean()) < 10 else (1 if abs(numbers.mean()) < 1000 else 0)
    return f"{numbers.mean():.{digits}f} ± {error:.{digits}f}"


def curves(records: Sequence[Record], name: str) -> dict[str, RegretCurve]:
    """Curves of all agents on one problem."""
    found = {}
    for agent in AGENTS:
        own = [r for r in records if (r.problem, r.agent) == (name, agent)]
        own.sort(key=lambda record: record.seed)
        every = own[0].n_rounds // PLACES
        found[agent] = RegretCurve(agent, np.stack([r.curve for r in own]), every)
    return found


def late(curve: RegretCurve) -> Array:
    """Regret per round in the last quarter, of each seed."""
    quarter = PLACES // 4
    gained = curve.cumulative[:, -1] - curve.cumulative[:, -1 - quarter]
    per_round: Array = gained / (quarter * curve.every)
    return per_round


def regret_tables(records: Sequence[Record]) -> Iterator[str]:
    """A table per problem: regret at the end, its share of chance's, and late."""
    for name, words in PROBLEMS.items():
        found = curves(records, name)
        chance = [
            r.uniform
            for r in sorted(records, key=lambda record: record.seed)
            if (r.problem, r.agent) == (name, "uniform")
        ]
        best = min(found, key=lambda agent: found[agent].final.mean())
        rows = [
            [
                f"**{agent}**" if agent == best else agent,
                plus_minus(curve.final),
                plus_minus(100 * curve.final / np.array(chance)),
                plus_minus(late(curve)),
            ]
            for agent, curve in found.items()
        ]
        head = ["agent", "regret", "% of chance's", "per round, last quarter"]
        yield f"## {words[0].upper()}{words[1:]}"
        yield markdown_table(head, rows)
        yield (
            f"Chance has an expected regret of {plus_minus(chance)} (closed form, the "
            f"spread being that of the problems)."
        )


def verdicts(records: Sequence[Record]) -> Iterator[str]:
    """Differences of pairs on the same seeds, and who wins."""
    yield "## Who beats whom"
    yield (
        "Difference of the final regrets on the same seeds, first less second; *even* "
        "if it is within two standard errors."
    )
    rows = []
    for (first, second), name in product(PAIRS, PROBLEMS):
        found = curves(records, name)
        gap = found[first].final - found[second].final
        error = gap.std(ddof=1) / np.sqrt(len(gap))
        winner = first if gap.mean() < 0 else second
        verdict = winner if abs(gap.mean()) > 2 * error else "even"
        rows.append([name, first, second, plus_minus(gap), verdict])
    head = ["problem", "first", "second", "difference", "less regret"]
    yield markdown_table(head, rows)


def spread_table(spreads: Sequence[Spread]) -> Iterator[str]:
    """How draws concentrate."""
    lengths = sorted({s.n_rounds for s in spreads})
    yield "## Do draws concentrate?"
    yield (
        f"Models that saw so many uniformly random rounds of the linear problem: mean "
        f"standard deviation of {DRAWS} drawn functions on {CONTEXTS} new contexts, "
        f"and root mean square error of the mean there. A posterior's spread falls as "
        f"1/√n: by {np.sqrt(lengths[-1] / lengths[0]):.1f} from first to last."
    )
    rows = []
    for model in MODELS:
        own = [
            [s for s in spreads if (s.model, s.n_rounds) == (model, n)] for n in lengths
        ]
        falls = np.mean([s.sd for s in own[0]]) / np.mean([s.sd for s in own[-1]])
        cells = [plus_minus([s.sd for s in group]) for group in own]
        errors = [plus_minus([s.error for s in own[-1]])]
        rows.append([model, *cells, f"{falls:.1f}", *errors])
    head = ["model", *(f"spread, n = {n}" for n in lengths), "falls by"]
    yield markdown_table([*head, f"error, n = {lengths[-1]}"], rows)


def settings(n_rounds: int, n_seeds: int) -> str:
    """What was run, in words."""
    training = ReplayTraining()
    return (
        f"{n_rounds} rounds, {n_seeds} seeds; rewards come back every {BATCH} rounds. "
        f"± is one standard error over seeds. All agents of a seed see the same "
        f"rounds. Networks: hidden layers {training.hidden}, after every "
        f"{training.every} rounds {training.n_steps} steps of Adam (rate "
        f"{training.learning_rate}) on {training.batch_size} rounds drawn from all so "
        f"far; each arm is tried {PULLS} times first. *Falling*: from {ANNEAL_AFTER} "
        f"rounds on the odds f/(1 − f) fall as 1/n. Epsilon is {EPSILON}. The same "
        f"settings on all problems; none was chosen by its regret here."
    )


@house_style()
def draw(records: Sequence[Record]) -> Figure:
    """Regret with bands of two standard errors, a panel per problem."""
    figure, grid = panels(2, 2, height=5.0)
    for ax, (name, words) in zip(grid.flat, PROBLEMS.items(), strict=True):
        found = curves(records, name)
        display = RegretDisplay.from_curves([found[a] for a in SHOWN], ax=ax)
        ax.set_title(words.split(",")[0])
        chance = found["uniform"]
        ax.plot(chance.rounds, chance.mean, color="0.6", linewidth=0.8, label="uniform")
        top = max((c.mean + 2 * c.standard_error).max() for c in display.curves)
        ax.set_ylim(0, 1.05 * top)
        handles, labels = ax.get_legend_handles_labels()
        ax.get_legend().remove()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


# --- the command ----------------------------------------------------------------------


def all_records(path: Path, jobs: Sequence[Job], n_workers: int | None) -> list[Record]:
    """Records of all jobs; those in the file are not run again."""
    records = [r for r in read_records(path, Record) if r.job in set(jobs)]
    done = {record.job for record in records}
    waiting = [job for job in jobs if job not in done]
    place = {job: number for number, job in enumerate(jobs)}
    for count, (_, record) in enumerate(spread(play, waiting, n_workers), start=1):
        records.append(record)
        records.sort(key=lambda one: place[one.job])  # they end in any order
        if count % 20 == 0 or count == len(waiting):
            write_records(path, records)
            print(f"{len(records)} of {len(jobs)} runs", flush=True)
    return [r for r in read_records(path, Record) if r.job in set(jobs)]


def all_spreads(
    path: Path, watches: Sequence[Watch], n_workers: int | None
) -> list[Spread]:
    """What came of all watches; none is run if the file has them all."""
    spreads = read_records(path, Spread)
    if {(s.model, s.seed) for s in spreads} == {(w.model, w.seed) for w in watches}:
        return spreads
    found = dict(spread(watch, watches, n_workers))
    write_records(path, [s for one in watches for s in found[one]])
    return read_records(path, Spread)


def write_page(
    path: Path, plan: "Plan", records: Sequence[Record], spreads: Sequence[Spread]
) -> str:
    """The page, in words and tables."""
    parts = [
        "# Contextual bandits",
        f"Made by `python examples/bandits.py{plan.told}`.",
    ]
    if plan.quick:
        parts.append("A smoke test: too little was run to judge anything by it.")
    figure = f"![Cumulative regret on the four problems]({path.stem}.png)"
    parts += [settings(plan.n_rounds, plan.n_seeds), figure, *regret_tables(records)]
    parts += [*verdicts(records), *spread_table(spreads)]
    page = "\n\n".join(parts) + "\n"
    path.write_text(page)
    return page


@dataclass(frozen=True)
class Plan:
    """How much is run, in a smoke test or in earnest."""

    quick: bool
    seeds: int | None

    @property
    def n_rounds(self) -> int:
        return 20 if self.quick else 1000

    @property
    def n_seeds(self) -> int:
        return self.seeds or (2 if self.quick else 10)

    @property
    def told(self) -> str:
        """The part of the command that says so."""
        quick = " --quick" if self.quick else ""
        return quick + (f" --seeds {self.seeds}" if self.seeds else "")

    def jobs(self) -> list[Job]:
        """All runs, seed by seed."""
        order = product(range(self.n_seeds), PROBLEMS, AGENTS)
        return [Job(task, agent, seed, self.n_rounds) for seed, task, agent in order]

    def watches(self) -> list[Watch]:
        """All models whose draws are looked at."""
        lengths = (10, 20) if self.quick else (100, 400, 1600)
        order = product(MODELS, range(min(self.n_seeds, 4)))
        return [Watch(model, seed, lengths) for model, seed in order]


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse, run, write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a smoke test")
    parser.add_argument("--seeds", type=int, default=None, help="by default 10")
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--output", type=Path, default=Path("outputs"))
    options = parser.parse_args(arguments)
    plan = Plan(options.quick, options.seeds)
    stem = str(options.output / ("bandits_quick" if plan.quick else "bandits"))
    records = all_records(Path(f"{stem}.csv"), plan.jobs(), options.workers)
    spreads = all_spreads(Path(f"{stem}_spread.csv"), plan.watches(), options.workers)
    print(write_page(Path(f"{stem}.md"), plan, records, spreads))
    draw(records).savefig(f"{stem}.png")


if __name__ == "__main__":
    main()
