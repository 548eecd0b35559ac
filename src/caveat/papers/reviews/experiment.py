"""Figure 2 of paper 002: praise or complaint, with and without dropout."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from caveat.data.reviews import CATEGORIES
from caveat.papers.experiment import Experiment
from caveat.papers.page import Claim, Part, bullets, flow, table, verdict
from caveat.papers.reviews.runs import (
    FIT_SHARE,
    METHODS,
    TEST,
    VALIDATION,
    VERSIONS,
    Array,
    ReviewRecord,
    Split,
    run_split,
)
from caveat.papers.style import ink, legend_below, name_outer, panels

_CLEAR = 2.0  # standard errors from which a difference is clear
_RATES = [name for name, rate in METHODS.items() if rate]
_WIDE = 0.5  # share of the values of lambda0 that makes a wide range
_WORDS = """Dropout was found to significantly improved generalization
performance for a wide range of parameter settings."""
_PAPER = """ It shows curves and gives no
numbers, names no drop rate, no range of λ0 and no intercept. It has 3,587 to 5,946
reviews and 123,099 to 193,220 covariates per category, 75 % to train, 40 repeats.
No stored version has both sizes: `full` has as many covariates but 2,000 reviews;
`top5000` has those reviews (less one) but 5,000 covariates. Raw counts, labels ±1, no
intercept, sign of x'μ."""
_ERRORS = """Standard deviations are over the random splits, as in the paper.
Differences are paired by split. The splits share reviews and so are not independent:
the standard error of a difference is its standard deviation times
sqrt(1/repeats + test/train) (Nadeau and Bengio 2003), and not times
sqrt(1/repeats)."""


class ErrorCurve(NamedTuple):
    """Errors of one method in one category; arrays have shape (precisions,).

    ``gap`` is the difference to no dropout at the same lambda0 and on the same split.
    """

    precisions: Array
    mean: Array
    deviation: Array
    gap: Array
    gap_se: Array

    @property
    def best(self) -> int:
        """Where the error is least."""
        return int(np.argmin(self.mean))


class CategoryPanel:
    """The records of one category in one version."""

    def __init__(self, all_records: Sequence[ReviewRecord]) -> None:
        records = [r for r in all_records if r.part == TEST]
        self.version, self.category = records[0].version, records[0].category
        self.first = records[0]
        self.precisions = np.array(sorted({r.prior_precision for r in records}))
        repeats = sorted({r.repeat for r in records})
        self.n_repeats = len(repeats)
        table = {(r.part, r.repeat, r.prior_precision): r for r in all_records}
        # [Nadeau2003]_ eq. 9: each split is only partly new
        share = self.first.n_test / self.first.n_train
        self._factor = float(np.sqrt(1.0 / self.n_repeats + share))
        parts = dict.fromkeys(r.part for r in all_records)
        errors = {
            part: {
                method: np.array(
                    [
                        [getattr(table[part, k, p], method) for p in self.precisions]
                        for k in repeats
                    ]
                )
                for method in METHODS
            }
            for part in parts
        }
        self._errors, self._held_out = errors[TEST], errors.get(VALIDATION, {})

    def curve(self, method: str) -> ErrorCurve:
        """Error of a method against lambda0."""
        errors = self._errors[method]
        gaps = errors - self._errors["plain"]
        spread = [a.std(0, ddof=1) for a in (errors, gaps)]
        return ErrorCurve(
            self.precisions,
            errors.mean(0),
            spread[0],
            gaps.mean(0),
            spread[1] * self._factor,
        )

    def against_best_plain(self, method: str) -> tuple[float, float]:
        """Least error less least error of plain, and its standard error."""
        ours = self._errors[method][:, self.curve(method).best]
        return self._compared(ours, self._errors["plain"][:, self.curve("plain").best])

    def chosen(self, methods: Sequence[str]) -> tuple[Array, Array]:
        """Test errors of what each split chooses on held-out training reviews.

        Among methods and values of λ0; also the λ0 that it chooses. Shape (repeats,)
        each.
        """
        held_out = np.concatenate([self._held_out[m] for m in methods], axis=1)
        errors = np.concatenate([self._errors[m] for m in methods], axis=1)
        place = held_out.argmin(1)
        own = errors[np.arange(self.n_repeats), place]
        return own, np.tile(self.precisions, len(methods))[place]

    def best_against_best(self) -> tuple[float, float]:
        """Dropout less plain, each as it was chosen, and the standard error."""
        return self._compared(self.chosen(_RATES)[0], self.chosen(["plain"])[0])

    def _compared(self, ours: Array, plain: Array) -> tuple[float, float]:
        gaps = ours - plain
        return float(gaps.mean()), float(gaps.std(ddof=1) * self._factor)


def by_category(records: Sequence[ReviewRecord], version: str) -> list[CategoryPanel]:
    """The panels of a version, one per category."""
    own = [r for r in records if r.version == version]
    categories = dict.fromkeys(r.category for r in own)
    return [
        CategoryPanel([r for r in own if r.category == name]) for name in categories
    ]


def counted(curve: ErrorCurve) -> tuple[int, int, int]:
    """Precisions where dropout is clearly lower, neither, and clearly higher."""
    lower = int((curve.gap < -_CLEAR * curve.gap_se).sum())
    higher = int((curve.gap > _CLEAR * curve.gap_se).sum())
    return lower, len(curve.gap) - lower - higher, higher


def _size(panel: CategoryPanel) -> str:
    first = panel.first
    return f"{panel.category} {first.n_train + first.n_test:,} x {first.n_features:,}"


def _least(panel: CategoryPanel) -> dict[str, str]:
    best = min(_RATES, key=lambda m: float(panel.curve(m).mean.min()))
    gap, error = panel.against_best_plain(best)
    return {
        "category": panel.category,
        **{label(method): _at_best(panel.curve(method)) for method in METHODS},
        "best dropout - best plain": f"{100 * gap:+.2f} ± {100 * error:.2f}",
    }


def _choice(panel: CategoryPanel) -> dict[str, str]:
    gap, error = panel.best_against_best()
    found = {"no dropout": panel.chosen(["plain"]), "dropout": panel.chosen(_RATES)}
    return {
        "category": panel.category,
        **{
            f"{name}, as chosen": f"{100 * own.mean():.2f} ± "
            f"{100 * own.std(ddof=1):.2f} ({np.median(precisions):g})"
            for name, (own, precisions) in found.items()
        },
        "dropout - no dropout": f"{100 * gap:+.2f} ± {100 * error:.2f}",
    }


def _best_verdict(own: Sequence[CategoryPanel]) -> str:
    gaps = [panel.best_against_best() for panel in own]
    lower = [gap < 0.0 for gap, _ in gaps]
    clearly = [gap < -_CLEAR * error for gap, error in gaps]
    return flow(f"""The claim, read as best against best: dropout has the lower error in
        every category, {verdict(all(lower))} ({sum(lower)} of {len(own)}); clearly
        lower, {verdict(all(clearly))} ({sum(clearly)} of {len(own)}).""")


def _at_best(curve: ErrorCurve) -> str:
    k = curve.best
    error, spread = 100 * curve.mean[k], 100 * curve.deviation[k]
    return f"{error:.2f} ± {spread:.2f} ({curve.precisions[k]:g})"


def _gaps(panel: CategoryPanel, method: str) -> dict[str, str]:
    curve, decades = panel.curve(method), np.log10(panel.precisions)
    return {
        "category": panel.category,
        "rate": f"f = {METHODS[method]:g}",
        **{
            f"λ0 = {precision:g}": f"{100 * gap:+.1f} ± {100 * error:.1f}"
            for precision, decade, gap, error in zip(
                panel.precisions, decades, curve.gap, curve.gap_se, strict=True
            )
            if np.isclose(decade, decade.round())
        },
        "counts": "/".join(map(str, counted(curve))),
    }


def _lower(own: Sequence[CategoryPanel], method: str) -> str:
    curves = [panel.curve(method) for panel in own]
    total = sum(len(curve.gap) for curve in curves)
    lower = sum(int((curve.gap < 0.0).sum()) for curve in curves)
    clearly, _, higher = np.sum([counted(curve) for curve in curves], axis=0)
    return f"""f = {METHODS[method]:g}: lower on {lower} of {total} (clearly on
        {clearly}), clearly higher on {higher}"""


def _verdict(own: Sequence[CategoryPanel]) -> str:
    mean, clear = _widest(own)
    return flow(f"""The claim, read as a share of λ0: one rate has the lower error on at
        least half of the values of λ0 in every category, {verdict(mean >= _WIDE)}
        (share {mean:.0%});
        read as clearly lower, {verdict(clear >= _WIDE)} (share {clear:.0%}).""")


def _widest(own: Sequence[CategoryPanel]) -> tuple[float, float]:
    """Share of precisions with a lower, and clearly lower error.

    In the worst category, for the best rate.
    """
    shares = []
    for method in _RATES:
        curves = [panel.curve(method) for panel in own]
        lower = min(float((curve.gap < 0.0).mean()) for curve in curves)
        clearly = min(counted(curve)[0] / len(curve.gap) for curve in curves)
        shares.append((lower, clearly))
    return max(share for share, _ in shares), max(share for _, share in shares)


def label(method: str) -> str:
    """As page and figure name it."""
    return f"dropout, f = {METHODS[method]:g}" if METHODS[method] else "no dropout"


_INK = {"plain": 1, "dropout_10": 3, "dropout_50": 0, "dropout_90": 2}
_SHIFT = 1.06  # between the error bars of neighbouring methods
_TOP = 40.0


def _panel(axes: Axes, panel: CategoryPanel) -> None:
    for place, method in enumerate(METHODS):
        curve = panel.curve(method)
        axes.errorbar(
            curve.precisions * _SHIFT**place,
            100 * curve.mean,
            yerr=100 * curve.deviation,
            label=label(method),
            elinewidth=0.7,
            **ink(_INK[method]),
        )
    axes.set_xscale("log")
    axes.set_ylim(5.0, _TOP)


_PRECISIONS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1e3, 3e3, 1e4)
_PRECISIONS_QUICK = (1.0, 10.0, 100.0, 1e3)
PARTS = (TEST, VALIDATION)  # test errors, and what λ0 and rate are chosen by


@dataclass(frozen=True)
class AmazonReviews(Experiment[Split, ReviewRecord]):
    """Four categories, two versions; a job is a random split, with all λ0."""

    name = "reviews"
    title = "Figure 2 of paper 002: Amazon reviews"
    record = ReviewRecord

    @property
    def precisions(self) -> tuple[float, ...]:
        """Values of λ0."""
        return _PRECISIONS_QUICK if self.quick else _PRECISIONS

    @property
    def parts(self) -> tuple[str, ...]:
        """What is run: tests, and choices by held-out reviews."""
        return PARTS

    def jobs(self, records: Sequence[ReviewRecord]) -> list[Split]:
        repeats = range(2 if self.quick else 40)
        return list(product(VERSIONS, CATEGORIES, repeats, self.parts))

    def key(self, record: ReviewRecord) -> tuple[Split, float]:
        return record.split, record.prior_precision

    def keys(self, job: Split) -> list[tuple[Split, float]]:
        return [(job, precision) for precision in self.precisions]

    def run(self, job: Split) -> list[ReviewRecord]:
        return run_split(job, self.precisions)

    def page(self, records: Sequence[ReviewRecord]) -> Iterator[Part]:
        yield Claim(_WORDS, end=_PAPER)
        seconds = sum(record.seconds for record in records)
        repeats = len({record.repeat for record in records})
        yield f"{repeats} repeats, {seconds:,.0f} s of CPU time in all. {_ERRORS}"
        for version in VERSIONS:
            own = by_category(records, version)
            yield f"## `{version}`"
            yield f"Reviews x covariates: {', '.join(map(_size, own))}."
            yield flow("""Least error over λ0, in %, ± standard deviation (λ0). The best
                is picked on the same test reviews, for dropout also among the
                rates:""")
            yield table(map(_least, own))
            if VALIDATION in self.parts:
                yield flow(f"""Best against best: each split chooses λ0, and for dropout
                    the rate, by the error on {1.0 - FIT_SHARE:.0%} of its training
                    reviews after a fit to the others; then the test error of that
                    choice, in %, ± standard deviation (median of the λ0 chosen):""")
                yield table(map(_choice, own))
                yield _best_verdict(own)
            yield flow(f"""At the same λ0, mean difference to no dropout in percentage
                points ± standard error, and on how many values of λ0 dropout is clearly
                lower / not clearly different / clearly higher (by {_CLEAR:g} standard
                errors), of all {len(own[0].precisions)}:""")
            yield table(_gaps(panel, method) for panel in own for method in _RATES)
            yield "Dropout's error over all categories and values of λ0:"
            yield bullets(_lower(own, method) for method in _RATES)
            yield _verdict(own)

    def in_brief(self, records: Sequence[ReviewRecord]) -> tuple[str, str]:
        found = []
        for version in VERSIONS:
            own = by_category(records, version)
            share, clearly = _widest(own)
            found.append(
                f"on `{version}` one drop rate has the lower error at {share:.0%} of "
                f"the values of λ0 or more in every category, clearly at {clearly:.0%}"
            )
            if VALIDATION in self.parts:
                gaps = [100 * panel.best_against_best()[0] for panel in own]
                found.append(
                    "with each at its own λ0, chosen by validation, dropout's error is "
                    f"lower by {-max(gaps):.1f} to {-min(gaps):.1f} points"
                )
        paper = "dropout improves generalisation for a wide range of settings"
        return paper, "; ".join(found)

    def figure(self, records: Sequence[ReviewRecord]) -> Figure:
        """A row per version; bars are standard deviations over splits."""
        rows = [by_category(records, version) for version in VERSIONS]
        figure, grid = panels(
            len(rows), len(rows[0]), height=4.2, sharex=True, sharey=True
        )
        for line, own in zip(grid, rows, strict=True):
            for axes, panel in zip(line, own, strict=True):
                _panel(axes, panel)
            line[0].set_ylabel(f"{own[0].version}\ntest error, %")
        for axes, panel in zip(grid[0], rows[0], strict=True):
            axes.set_title(panel.category)
        name_outer(grid, x="prior precision λ0")
        legend_below(figure, grid[0, 0], ncols=4)
        return figure
