"""The page: what an ensemble costs and gains over one dropout network."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from caveat.papers.ensemble.comparison import (
    DROPOUT,
    LONG,
    MC,
    N_MEMBERS,
    PLAIN,
    SHORT,
    STANDARD,
    Effort,
    Result,
)
from caveat.papers.ensemble.networks import BATCH_SIZE, HIDDEN, LEARNING_RATE
from caveat.papers.lenet import Images
from caveat.papers.page import markdown_table

CONFIDENCE = 0.95
SIMILAR = 0.1  # of the gap between one plain network and the ensemble

_TITLE = "MC dropout against ensembles of networks (paper 000, section 4.2)"
_CLAIM = (
    'The paper: "Model ensembles are often used in deep learning as well, where the '
    "same model is trained several times and at test time the results of all models "
    "are averaged. This is computationally very expensive [...]. One would expect that "
    "stochastically simulating forward passes through a dropout network will result in "
    'similar performance." It gives no numbers.'
)
_NET = "one plain network"


@dataclass(frozen=True)
class Gain:
    """How much better the first of two ways is, on average over replicates.

    Attributes
    ----------
    value, error : float
        The average and its standard error.
    n_replicates : int
    """

    value: float
    error: float
    n_replicates: int

    @property
    def verdict(self) -> str:
        """In words, by Student's t: few replicates say little about their spread."""
        limit = stats.t.ppf(0.5 + CONFIDENCE / 2.0, self.n_replicates - 1) * self.error
        if abs(self.value) <= limit:
            return f"no difference at {CONFIDENCE:.0%}"
        return "MC dropout is better" if self.value > 0 else "the ensemble is better"


def render(results: Sequence[Result], images: Images, effort: Effort) -> Iterator[str]:
    """The parts of the page.

    Parameters
    ----------
    results : sequence of Result
        Of validation and test.
    images : Images
        What the networks were trained on.
    effort : Effort
        How much was run.

    Yields
    ------
    str
        The title, then Markdown.
    """
    yield _TITLE
    yield _CLAIM
    yield _settings(results, images, effort)
    yield "## What was chosen, on held-out training images"
    yield _choices(results)
    yield "## Test images"
    yield _table(results)
    yield (
        "Averages over replicates ± standard error over replicates. A cost of training "
        "of 1 is one network for all epochs; a cost of testing of 1 is one pass "
        "through one network. Ensembles of fewer than all members are averages over "
        "all such sets of members, those of few passes over disjoint groups of draws."
    )
    yield _trust(effort.n_replicates)
    yield "## The claim"
    yield "\n".join(f"- {line}" for line in _claims(results))


def select(results: Sequence[Result], method: str, n_passes: int) -> list[Result]:
    """One result per replicate, on the test images."""
    wanted = ("test", method, n_passes)
    return [r for r in results if (r.part, r.method, r.n_passes) == wanted]


def passes(results: Sequence[Result], method: str) -> list[int]:
    """The numbers of passes of a method, on the test images."""
    own = (r for r in results if (r.part, r.method) == ("test", method))
    return sorted({r.n_passes for r in own})


def gain(first: Sequence[Result], second: Sequence[Result], name: str) -> Gain:
    """How much better the first is, paired by replicate."""
    sign = -1.0 if name == "error" else 1.0
    gaps = [
        sign * (getattr(a, name) - getattr(b, name))
        for a, b in zip(first, second, strict=True)
    ]
    return Gain(float(np.mean(gaps)), _error_of_mean(gaps), len(gaps))


def _settings(results: Sequence[Result], images: Images, effort: Effort) -> str:
    n_train = effort.n_train or len(images.train)
    n_test = len(images.test.first(effort.n_images))
    hidden = "-".join(map(str, HIDDEN))
    return (
        f"{images.name}, {n_train:,} images to train on, {n_test:,} to test on. "
        f"Perceptrons 784-{hidden}-10 with dropout before every weight layer, as the "
        f"theory has it, trained as a fleet by Adam (batch {BATCH_SIZE}, rate "
        f"{LEARNING_RATE:g} falling along a cosine), {effort.epochs} epochs; not "
        "LeNet, because these take much less time, so that everything can be repeated: "
        f"{effort.n_replicates} replicates of one dropout network, "
        f"{N_MEMBERS} plain networks trained as long (*ensemble*), and {N_MEMBERS} "
        f"plain networks of {effort.epochs // N_MEMBERS} epochs each (*short "
        "ensemble*, which costs as much to train as the one dropout network). Members "
        "differ in first weights and order of images."
    )


def _choices(results: Sequence[Result]) -> str:
    rows = [
        [r.method, r.kind, f"{100 * r.error:.2f}", f"{r.log_likelihood:.4f}"]
        for r in results
        if r.part == "validation"
    ]
    chosen = dict.fromkeys(r.kind for r in results if r.part == "test")
    table = markdown_table(["network", "setting", "error %", "mean log p"], rows)
    held_out = (
        "One network for each setting, by log-likelihood on the last training images, "
        f"which it did not see. Chosen: {'; '.join(chosen)}."
    )
    ends = [str(kinds[k]) for kinds in (DROPOUT, PLAIN) for k in (0, -1)]
    found = [kind for kind in chosen if kind in ends]
    if found:
        held_out += f" At an end of what was tried: {'; '.join(found)}."
    return f"{table}\n\n{held_out}"


def _table(results: Sequence[Result]) -> str:
    head = ["way to predict", "cost of training", "cost of testing"]
    head += ["error %", "mean log p"]
    full = select(results, MC, passes(results, MC)[-1])[0].epochs
    rows = []
    for method in (STANDARD, MC, SHORT, LONG):
        for n_passes in passes(results, method):
            own = select(results, method, n_passes)
            rows.append(
                [
                    f"{method}, {n_passes}",
                    f"{own[0].epochs / full:.2g}",
                    str(n_passes),
                    _shown([100 * r.error for r in own], 3),
                    _shown([r.log_likelihood for r in own], 4),
                ]
            )
    return markdown_table(head, rows)


def _claims(results: Sequence[Result]) -> Iterator[str]:
    most = passes(results, MC)[-1]
    short, long = (select(results, m, N_MEMBERS) for m in (SHORT, LONG))
    yield _contest(
        results, f"Equal cost of training, T = {most}", (most, short), "short ensemble"
    )
    yield _contest(
        results,
        f"Equal cost of training and of testing, T = {N_MEMBERS}",
        (N_MEMBERS, short),
        "short ensemble",
    )
    yield _contest(
        results,
        f"Equal cost of testing, T = {N_MEMBERS} ({N_MEMBERS} times the training for "
        "the ensemble)",
        (N_MEMBERS, long),
        "ensemble",
    )
    yield _contest(
        results,
        f"The most of both, T = {most} ({N_MEMBERS} times the training for the "
        "ensemble)",
        (most, long),
        "ensemble",
    )
    yield _why(results)
    yield _share(results, most)


def _trust(n_replicates: int) -> str:
    return (
        f"A standard error from {n_replicates} replicates is itself uncertain by about "
        f"{1.0 / math.sqrt(2.0 * (n_replicates - 1)):.0%}, so a very small one may be "
        "luck; verdicts below are by Student's t."
    )


def _why(results: Sequence[Result]) -> str:
    """What short trainings lose, beside what averaging them wins back."""
    short, long = (select(results, method, 1) for method in (SHORT, LONG))
    lost = gain(long, short, "error")
    won = gain(select(results, SHORT, N_MEMBERS), short, "error")
    return (
        f"Why short trainings lose: a single one costs {100 * lost.value:.2f} ± "
        f"{100 * lost.error:.2f} points of error, and averaging {N_MEMBERS} of them "
        f"wins back {100 * won.value:.2f} ± {100 * won.error:.2f}."
    )


def _contest(
    results: Sequence[Result], title: str, pair: tuple[int, list[Result]], name: str
) -> str:
    n_draws, other = pair
    own = select(results, MC, n_draws)
    error, likelihood = (gain(own, other, k) for k in ("error", "log_likelihood"))
    return (
        f"{title}, MC dropout against the {name} of {N_MEMBERS}: error "
        f"{100 * error.value:+.3f} ± {100 * error.error:.3f} points better, "
        f"{error.verdict}; log-likelihood {likelihood.value:+.4f} ± "
        f"{likelihood.error:.4f} better, {likelihood.verdict}."
    )


def share_of_gain(results: Sequence[Result], n_draws: int, name: str) -> float:
    """MC dropout's gain over one plain network as a share of the ensemble's gain."""
    plain, ensemble = select(results, LONG, 1), select(results, LONG, N_MEMBERS)
    own = gain(select(results, MC, n_draws), plain, name).value
    return own / gain(ensemble, plain, name).value


def _share(results: Sequence[Result], most: int) -> str:
    shares = [share_of_gain(results, most, k) for k in ("error", "log_likelihood")]
    similar = min(shares) >= 1.0 - SIMILAR
    plain = select(results, LONG, 1)
    error, likelihood = (
        gain(select(results, MC, most), plain, k) for k in ("error", "log_likelihood")
    )
    return (
        f"Over {_NET}, MC dropout with T = {most} gains {100 * error.value:.3f} ± "
        f"{100 * error.error:.3f} points of error and {likelihood.value:.4f} ± "
        f"{likelihood.error:.4f} of log-likelihood: {shares[0]:.0%} and "
        f"{shares[1]:.0%} of what the ensemble of {N_MEMBERS} gains, for one "
        f'training instead of {N_MEMBERS}. "Similar performance" (at least '
        f"{1.0 - SIMILAR:.0%} of both): {'holds' if similar else 'does not hold'}."
    )


def _shown(values: Sequence[float], digits: int) -> str:
    return f"{np.mean(values):.{digits}f} ± {_error_of_mean(values):.{digits}f}"


def _error_of_mean(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1) / math.sqrt(len(values)))
