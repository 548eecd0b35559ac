"""The page: errors and log-likelihoods, and which networks over-fit."""

import math
from collections.abc import Iterator, Sequence

from caveat.papers.page import markdown_table
from caveat.papers.sequence.curves import Curves, all_curves, chosen
from caveat.papers.sequence.networks import VARIANTS, WIDTH
from caveat.papers.sequence.runs import BATCH_SIZE, LEARNING_RATE, Record
from caveat.papers.sequence.texts import MOST_WORDS, N_WORDS, TASKS
from caveat.papers.sequence.verdicts import (
    ERRORS,
    NAMES,
    NATS,
    at_any_rate,
    comparison,
    percent,
    verdicts,
)

_TITLE = "One mask per sequence: dropout in LSTMs (paper 000, section 4.2)"
_WORDS = """Paper 000 has no experiment here, but an expectation: "Currently, dropout
is not used with these models as the repeated application of noise over potentially
thousands of layers results in a very weak signal at the output. [...] The GP models
integrate over the parameters and thus avoid over-fitting. Seen as a GP approximation
one would expect there to exist a suitable dropout approximation for these tasks as
well." That approximation is one ω, and so the same masks, for a whole sequence. There
are no numbers of the paper to put beside ours."""
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
_TESTS = (("", "test"), ("", "test_stopped"), ("point_", "test"))
_ERRORS = {"ratings": "RMSE", "sentiment": "error, %"}


def render(records: Sequence[Record]) -> Iterator[str]:
    """The parts of the page.

    Parameters
    ----------
    records : sequence of Record
        Of all networks.

    Yields
    ------
    str
        The title, then Markdown.
    """
    yield _TITLE
    yield _WORDS
    yield "## What was run"
    yield _settings(records)
    yield _VARIANTS
    yield _SCORES
    for task in TASKS:
        yield f"## {NAMES[task]}"
        yield (
            "Validation rows, mean over seeds: log-likelihood in nats at its best "
            "epoch and after the last, what was lost in between; error likewise."
        )
        yield _validation(records, task)
        yield (
            "Test rows, mean over seeds (least to largest), after the last epoch, and "
            "stopped after the best one on validation rows:"
        )
        yield _test(records, task)
    yield "## Does one mask per sequence keep from over-fitting?"
    yield (
        "Test scores of one mask per sequence less those of the others, mean over "
        f"seeds. Better or worse means: in every seed, by more than {NATS:g} nats, "
        f"{ERRORS['ratings']:g} of RMSE or {ERRORS['sentiment']:.1%} of the labels; "
        "even is what is neither. The same margins hold for the words below. "
        + _chance(records)
    )
    yield comparison(records)
    yield "\n".join(f"- {line}" for line in verdicts(records))
    yield at_any_rate(records)


def _settings(records: Sequence[Record]) -> str:
    epochs = max(r.epoch for r in records)
    draws = max(r.n_draws for r in records if r.part == "validation")
    test = max(r.n_draws for r in records)
    sizes = ", ".join(
        f"{_rows(records, task, 'validation')} and {_rows(records, task, 'test')} "
        f"({task})"
        for task in TASKS
    )
    minutes = sum(r.seconds for r in records) / 60
    return (
        f"An LSTM of {WIDTH} units on vectors of {WIDTH} numbers for the "
        f"{N_WORDS:,} most frequent words; the last {MOST_WORDS['ratings']} words of a "
        f"review, the last {MOST_WORDS['sentiment']} of a sentence. Adam, rate "
        f"{LEARNING_RATE:g}, batches of {BATCH_SIZE}, {epochs} epochs, "
        f"{len({r.seed for r in records})} seeds; with one seed all variants have the "
        f"same first weights and order of rows. Validation and test rows: {sizes}. "
        f"{draws} draws after each epoch, {test} on test rows. "
        f"{len({r.key for r in records})} networks, {minutes:.0f} minutes of CPU time."
    )


def _chance(records: Sequence[Record]) -> str:
    own = chosen(records, "sentiment", "sequence")
    rows, error = _rows(records, "sentiment", "test"), float(own.test("error").mean())
    points = 100 * math.sqrt(error * (1.0 - error) / rows)
    return (
        f"(An error of {error:.0%} on {rows:,} sentences has a standard error of "
        f"{points:.1f} points: two seeds and one test set do not settle small "
        "differences.)"
    )


def _rows(records: Sequence[Record], task: str, part: str) -> int:
    return next(r.n_rows for r in records if (r.task, r.part) == (task, part))


def _validation(records: Sequence[Record], task: str) -> str:
    head = ["masks", "rate", "best epoch", "best", "last", "lost"]
    head += [f"least {_ERRORS[task]}", "last"]
    rows = []
    for variant in VARIANTS:
        picked = chosen(records, task, variant).drop_rate
        for own in all_curves(records, task, variant):
            mark = "*" if own.drop_rate == picked and variant != "none" else ""
            errors = percent(own, own.validation("error"))
            rows.append(
                [
                    variant,
                    f"{own.drop_rate:g}{mark}",
                    f"{own.best_epoch.mean():.1f}",
                    f"{own.best.mean():.3f}",
                    f"{own.validation('log_likelihood')[:, -1].mean():.3f}",
                    f"{own.lost.mean():.3f}",
                    _error(own, errors.min(1).mean()),
                    _error(own, errors[:, -1].mean()),
                ]
            )
    return markdown_table(head, rows)


def _test(records: Sequence[Record], task: str) -> str:
    error = _ERRORS[task]
    head = ["masks", "rate", f"last: {error}", "log-likelihood"]
    head += [f"stopped: {error}", "log-likelihood"]
    head += [f"last, masks off: {error}", "log-likelihood"]
    rows = []
    for variant in VARIANTS:
        own = chosen(records, task, variant)
        cells = [
            _spread(own, name, part)
            for prefix, part in _TESTS
            for name in (f"{prefix}error", f"{prefix}log_likelihood")
        ]
        rows.append([variant, f"{own.drop_rate:g}", *cells])
    return markdown_table(head, rows)


def _spread(own: Curves, name: str, part: str) -> str:
    values = own.test(name, part)
    if name.endswith("error"):
        shown = [_error(own, v) for v in percent(own, values)]
        mean = _error(own, percent(own, values).mean())
    else:
        shown, mean = [f"{v:.3f}" for v in values], f"{values.mean():.3f}"
    ends = [shown[int(k)] for k in (values.argmin(), values.argmax())]
    return f"{mean} ({ends[0]} to {ends[1]})"


def _error(own: Curves, value: float) -> str:
    return f"{value:.4f}" if own.task == "ratings" else f"{value:.1f}"
