"""LSTMs with one mask per sequence: do they over-fit less? (paper 000, section 4.2)"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from caveat.papers.experiment import Experiment
from caveat.papers.page import Claim, Part, bullets, flow, judged, markdown_table
from caveat.papers.sequence.curves import (
    Array,
    LearningCurves,
    all_curves,
    chosen,
    clear,
    gained,
)
from caveat.papers.sequence.networks import VARIANTS, WIDTH
from caveat.papers.sequence.runs import (
    BATCH_SIZE,
    LEARNING_RATE,
    ReaderEffort,
    ReaderJob,
    ReaderRecord,
    run_job,
)
from caveat.papers.sequence.texts import MOST_WORDS, N_WORDS, TASKS
from caveat.papers.style import ink, legend_below, name_outer, panels

Key = tuple[ReaderJob, str, int, int]

NATS = 0.01  # what a difference must exceed in every seed to count
_MARGINS = {"ratings": 0.001, "sentiment": 0.005}  # likewise, of errors
_EFFORT = ReaderEffort(epochs=15, n_draws=10, n_test_draws=50)
_EFFORT_QUICK = ReaderEffort(epochs=2, n_draws=3, n_test_draws=5, most_rows=300)
_NAMES = {"ratings": "Ratings of films", "sentiment": "SST-2"}
_ERRORS = {"ratings": "RMSE", "sentiment": "error, %"}
_WHEN = {
    "test": "after the last epoch",
    "test_stopped": "of networks stopped at their best",
}
_TESTS = (("", "test"), ("", "test_stopped"), ("point_", "test"))
_WORDS = """Currently, dropout
is not used with these models as the repeated application of noise over potentially
thousands of layers results in a very weak signal at the output. [...] The GP models
integrate over the parameters and thus avoid over-fitting. Seen as a GP approximation
one would expect there to exist a suitable dropout approximation for these tasks as
well."""
_MEANING = (
    " That approximation is one ω, and so the same masks, for a whole sequence. There\n"
    "are no numbers of the paper to put beside ours."
)
_VARIANTS = """- none: no masks.
- ordinary: a new mask at each step on the vectors of the words, and one on the last
  state; none on the state that is fed back.
- sequence: for each sequence one mask over the words of the vocabulary (a dropped word
  is missing wherever it stands), one on the vectors and one on the state that is fed
  back, the same at all steps (`caveat.noise.LSTM`), and one on the last state."""
_SCORES = """Networks with masks predict by the mean of their draws (`MCDropout`). The
precision of a rating is chosen on the validation rows after each epoch, for each
network its own, as paper 001 does, so that no likelihood suffers from a poor one. There
is no weight decay: masks are all that differ. The rate of the masks, marked *, is the
one with the best validation log-likelihood at any epoch; test rows have no part in it.
Step size, batches and first weights were fixed before, by trials without masks or with
one rate. All is smaller than in the authors' later code (128 units, pieces of 200
words, 20,000 words, rate 0.5), to run in minutes."""


def _settings(records: Sequence[ReaderRecord]) -> str:
    epochs = max(r.epoch for r in records)
    draws = max(r.n_draws for r in records if r.part == "validation")
    test = max(r.n_draws for r in records)
    sizes = ", ".join(
        f"{_rows(records, task, 'validation')} and {_rows(records, task, 'test')} "
        f"({task})"
        for task in TASKS
    )
    minutes = sum(r.seconds for r in records) / 60
    return flow(f"""An LSTM of {WIDTH} units on vectors of {WIDTH} numbers for the
        {N_WORDS:,} most frequent words; the last {MOST_WORDS["ratings"]} words of a
        review, the last {MOST_WORDS["sentiment"]} of a sentence. Adam, rate
        {LEARNING_RATE:g}, batches of {BATCH_SIZE}, {epochs} epochs,
        {len({r.seed for r in records})} seeds; with one seed all variants have the same
        first weights and order of rows. Validation and test rows: {sizes}. {draws}
        draws after each epoch, {test} on test rows. {len({r.job for r in records})}
        networks, {minutes:.0f} minutes of CPU time.""")


def _margins(records: Sequence[ReaderRecord]) -> str:
    own = chosen(records, "sentiment", "sequence")
    rows, error = _rows(records, "sentiment", "test"), float(own.test("error").mean())
    points = 100 * math.sqrt(error * (1.0 - error) / rows)
    return flow(f"""Test scores of one mask per sequence less those of the others, mean
        over seeds. Better or worse means: in every seed, by more than {NATS:g} nats,
        {_MARGINS["ratings"]:g} of RMSE or {_MARGINS["sentiment"]:.1%} of the labels;
        even is what is neither. The same margins hold for the words below. (An error of
        {error:.0%} on {rows:,} sentences has a standard error of {points:.1f} points:
        two seeds and one test set do not settle small differences.)""")


def _rows(records: Sequence[ReaderRecord], task: str, part: str) -> int:
    return next(r.n_rows for r in records if (r.task, r.part) == (task, part))


def _validation(records: Sequence[ReaderRecord], task: str) -> str:
    head = ["masks", "rate", "best epoch", "best", "last", "lost"]
    head += [f"least {_ERRORS[task]}", "last"]
    rows = []
    for variant in VARIANTS:
        picked = chosen(records, task, variant).drop_rate
        for own in all_curves(records, task, variant):
            mark = "*" if own.drop_rate == picked and variant != "none" else ""
            rows.append([variant, f"{own.drop_rate:g}{mark}", *_course(own)])
    return markdown_table(head, rows)


def _course(own: LearningCurves) -> Iterator[str]:
    yield f"{own.best_epoch.mean():.1f}"
    last = own.validation("log_likelihood")[:, -1]
    for values in (own.best, last, own.lost):
        yield f"{values.mean():.3f}"
    errors = own.validation("error")
    yield _error(own, errors.min(1).mean())
    yield _error(own, errors[:, -1].mean())


def _test(records: Sequence[ReaderRecord], task: str) -> str:
    head = ["masks", "rate"]
    for when in ("last", "stopped", "last, masks off"):
        head += [f"{when}: {_ERRORS[task]}", "log-likelihood"]
    rows = []
    for variant in VARIANTS:
        own = chosen(records, task, variant)
        cells = [
            _spread(own, prefix + name, part)
            for prefix, part in _TESTS
            for name in ("error", "log_likelihood")
        ]
        rows.append([variant, f"{own.drop_rate:g}", *cells])
    return markdown_table(head, rows)


def _spread(own: LearningCurves, name: str, part: str) -> str:
    """Mean, least and largest over seeds."""
    values = own.test(name, part)
    found = (float(v) for v in (values.mean(), values.min(), values.max()))
    is_error = name.endswith("error")
    mean, *ends = (_error(own, v) if is_error else f"{v:.3f}" for v in found)
    return f"{mean} ({' to '.join(ends)})"


def _error(own: LearningCurves, value: float) -> str:
    return f"{value:.4f}" if own.task == "ratings" else f"{100 * value:.1f}"


def _comparison(records: Sequence[ReaderRecord]) -> str:
    """One mask per sequence less the others, on test rows."""
    head = ["task", "against", "lost on validation rows"]
    for when in ("last", "stopped"):
        head += [f"{when}: log-likelihood", f"{when}: error"]
    rows = []
    for task in TASKS:
        *others, ours = (chosen(records, task, v) for v in VARIANTS)
        rows += [[_NAMES[task], o.variant, *_against(ours, o)] for o in others]
    return markdown_table(head, rows)


def _against(ours: LearningCurves, other: LearningCurves) -> Iterator[str]:
    yield f"{ours.lost.mean():.3f} against {other.lost.mean():.3f}"
    for part in _WHEN:
        likelihood, error = gained(ours, other, part)
        yield f"{likelihood.mean():+.3f} ({_judged(likelihood, NATS)})"
        gap = -float(error.mean())
        shown = f"{gap:+.4f}" if ours.task == "ratings" else f"{100 * gap:+.1f} points"
        yield f"{shown} ({_judged(error, _MARGINS[ours.task])})"


def _judged(gains: Array, margin: float) -> str:
    if clear(gains, margin):
        return judged("better")
    return judged("worse" if clear(-gains, margin) else "even")


def _verdicts(records: Sequence[ReaderRecord]) -> Iterator[str]:
    """What holds, on which task."""
    own = {t: [chosen(records, t, v) for v in VARIANTS] for t in TASKS}
    falls = ", ".join(f"{own[t][0].lost.mean():.3f} on {t}" for t in TASKS)
    overfit = _said(clear(own[t][0].lost, NATS) for t in TASKS)
    yield f"""Without dropout the validation log-likelihood falls after its best epoch,
        in every seed: {overfit} ({falls})."""
    for k, name in enumerate(VARIANTS[:-1]):
        pairs = [(own[t][-1], own[t][k]) for t in TASKS]
        less = _said(clear(b.lost - a.lost, NATS) for a, b in pairs)
        yield f"""With one mask per sequence it falls less than with {name}, in every
            seed: {less}."""
        for part, when in _WHEN.items():
            gains = [gained(*pair, part) for pair in pairs]
            errors = [error for _, error in gains]
            yield f"""On test rows {when} it has a higher log-likelihood than {name}, in
                every seed: {_said(clear(g, NATS) for g, _ in gains)}; and a lower
                error: {_said(map(clear, errors, _MARGINS.values()))}."""


def _said(on_tasks: Iterable[bool]) -> str:
    """Whether it is so on both tasks, or on which."""
    found = [t for t, is_so in zip(TASKS, on_tasks, strict=True) if is_so]
    if len(found) == len(TASKS):
        return judged("**holds** on both")
    return judged(f"**holds** on {found[0]} only" if found else "**does not hold**")


def _at_any_rate(records: Sequence[ReaderRecord]) -> str:
    """The same where the choice of a rate has no part, since it can be a near tie."""
    lost, best = [], []
    for task in TASKS:
        ordinary, ours = (all_curves(records, task, v) for v in VARIANTS[1:])
        most = max(float(c.lost.mean()) for c in ours)
        least = min(float(c.lost.mean()) for c in ordinary)
        lost.append(f"{most:.3f} against {least:.3f} on {task}")
        gap = [max(float(c.best.mean()) for c in own) for own in (ours, ordinary)]
        best.append(f"{gap[0] - gap[1]:+.3f} on {task}")
    return flow(f"""Whatever the rates: the most that one mask per sequence loses,
        against the least that ordinary masks lose, is {" and ".join(lost)}. At its best
        epoch its validation log-likelihood less that of ordinary masks is
        {" and ".join(best)}.""")


_LABELS = {
    "none": "no dropout",
    "ordinary": "ordinary dropout",
    "sequence": "one mask per sequence",
}
_COLUMNS = {
    "train_loss": "training\nloss",
    "error": "validation\nerror",
    "log_likelihood": "validation\nlog-likelihood",
}
_TITLES = {"ratings": "ratings", "sentiment": "SST-2"}
_DRAWN_ERRORS = {"ratings": "RMSE", "sentiment": "share wrong"}


def _curve(axes: Axes, own: LearningCurves, column: str, k: int) -> None:
    """The mean over seeds, and the range of their values."""
    values = own.validation(column)
    epochs = range(1, values.shape[1] + 1)
    low, high = values.min(0), values.max(0)
    axes.fill_between(epochs, low, high, color=ink(k)["color"], alpha=0.15, linewidth=0)
    every = (k, max(len(epochs) // 5, 1))
    label = _LABELS[own.variant]
    axes.plot(epochs, values.mean(0), label=label, markevery=every, **ink(k))


@dataclass(frozen=True)
class MaskPerSequence(Experiment[ReaderJob, ReaderRecord]):
    """Film reviews and sentences, read by LSTMs; a job is a network."""

    name = "sequence"
    title = "One mask per sequence: dropout in LSTMs (paper 000, section 4.2)"
    record = ReaderRecord

    @property
    def effort(self) -> ReaderEffort:
        """How much is run."""
        return _EFFORT_QUICK if self.quick else _EFFORT

    def jobs(self, records: Sequence[ReaderRecord]) -> list[ReaderJob]:
        """Seed by seed; the longest first: all cores end at about the same time."""
        seeds, rates = ((0,), (0.25,)) if self.quick else ((0, 1), (0.25, 0.5))
        return [
            ReaderJob(task, variant, rate, seed)
            for seed, variant, task in product(seeds, reversed(VARIANTS), TASKS)
            for rate in (rates if variant != "none" else (0.0,))
        ]

    def key(self, record: ReaderRecord) -> Key:
        epoch = 0 if record.part == "test_stopped" else record.epoch
        return record.job, record.part, epoch, record.n_draws

    def keys(self, job: ReaderJob) -> list[Key]:
        """With numbers of epochs and draws: another effort is another network."""
        epochs, (n_draws, n_test) = self.effort.epochs, self.effort.draws(job.variant)
        steps = [(job, "validation", k, n_draws) for k in range(1, epochs + 1)]
        tests = [(job, "test", epochs, n_test), (job, "test_stopped", 0, n_test)]
        return steps + tests

    def run(self, job: ReaderJob) -> list[ReaderRecord]:
        return run_job(job, self.effort)

    def page(self, records: Sequence[ReaderRecord]) -> Iterator[Part]:
        lead = "Paper 000 has no experiment here, but an expectation: "
        yield Claim(_WORDS, lead=lead, end=_MEANING)
        yield "## What was run"
        yield _settings(records)
        yield _VARIANTS
        yield _SCORES
        for task in TASKS:
            yield f"## {_NAMES[task]}"
            yield flow("""Validation rows, mean over seeds: log-likelihood in nats at
                its best epoch and after the last, what was lost in between; error
                likewise.""")
            yield _validation(records, task)
            yield flow("""Test rows, mean over seeds (least to largest), after the last
                epoch, and stopped after the best one on validation rows:""")
            yield _test(records, task)
        yield "## Does one mask per sequence keep from over-fitting?"
        yield _margins(records)
        yield _comparison(records)
        yield bullets(_verdicts(records))
        yield _at_any_rate(records)

    def in_brief(self, records: Sequence[ReaderRecord]) -> tuple[str, str]:
        lost = []
        for task in TASKS:
            each = (chosen(records, task, v).lost.mean() for v in VARIANTS)
            lost.append(f"{', '.join(f'{nats:.2f}' for nats in each)} on {task}")
        paper = """a suitable dropout for recurrent networks should exist that avoids
            over-fitting"""
        ours = f"""after its best epoch the validation log-likelihood falls, in nats
            without dropout, with ordinary masks and with one mask per sequence, by
            {" and by ".join(lost)}"""
        return paper, ours

    def figure(self, records: Sequence[ReaderRecord]) -> Figure:
        """Training loss, validation error and log-likelihood over epochs."""
        figure, grid = panels(len(TASKS), len(_COLUMNS), height=4.1, sharex=True)
        for row, task in zip(grid, TASKS, strict=True):
            curves = [chosen(records, task, variant) for variant in VARIANTS]
            for axes, column in zip(row, _COLUMNS, strict=True):
                for k, own in enumerate(curves):
                    _curve(axes, own, column, k)
            row[0].set_ylabel(_TITLES[task])
            row[1].set_ylabel(_DRAWN_ERRORS[task])
        for axes, title in zip(grid[0], _COLUMNS.values(), strict=True):
            axes.set_title(title)
        name_outer(grid, x="epoch")
        legend_below(figure, grid[0, 0], ncols=len(VARIANTS))
        return figure
