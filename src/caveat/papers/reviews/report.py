"""The page of figure 2: errors, and where dropout's are lower.

.. [Nadeau2003] C. Nadeau, Y. Bengio. Inference for the generalization error. Machine
   Learning 52, 2003.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from caveat.papers.page import markdown_table
from caveat.papers.reviews.runs import METHODS, VERSIONS, Array, Record

_CLEAR = 2.0  # standard errors from which a difference is clear
_WIDE = 0.5  # share of the values of lambda0 that makes a wide range
_TITLE = "Figure 2 of paper 002: Amazon reviews"
_PAPER = """The paper: "Dropout was found to significantly improved generalization
performance for a wide range of parameter settings." It shows curves and gives no
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


class Curve(NamedTuple):
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


class Panel:
    """The records of one category in one version."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.version, self.category = records[0].version, records[0].category
        self.first = records[0]
        self.precisions = np.array(sorted({r.prior_precision for r in records}))
        repeats = sorted({r.repeat for r in records})
        self.n_repeats = len(repeats)
        table = {(r.repeat, r.prior_precision): r for r in records}
        # [Nadeau2003]_ eq. 9: each split is only partly new
        share = self.first.n_test / self.first.n_train
        self._factor = float(np.sqrt(1.0 / self.n_repeats + share))
        self._errors = {
            method: np.array(
                [
                    [getattr(table[k, p], method) for p in self.precisions]
                    for k in repeats
                ]
            )
            for method in METHODS
        }

    def curve(self, method: str) -> Curve:
        """Error of a method against lambda0."""
        errors = self._errors[method]
        gaps = errors - self._errors["plain"]
        spread = [a.std(0, ddof=1) for a in (errors, gaps)]
        return Curve(
            self.precisions,
            errors.mean(0),
            spread[0],
            gaps.mean(0),
            spread[1] * self._factor,
        )

    def against_best_plain(self, method: str) -> tuple[float, float]:
        """Least error less least error of plain, and its standard error."""
        ours = self._errors[method][:, self.curve(method).best]
        plain = self._errors["plain"][:, self.curve("plain").best]
        gaps = ours - plain
        return float(gaps.mean()), float(gaps.std(ddof=1) * self._factor)


def panels(records: Sequence[Record], version: str) -> list[Panel]:
    """The panels of a version, one per category."""
    own = [r for r in records if r.version == version]
    categories = dict.fromkeys(r.category for r in own)
    return [Panel([r for r in own if r.category == name]) for name in categories]


def render(records: Sequence[Record]) -> Iterator[str]:
    """The parts of the page.

    Parameters
    ----------
    records : sequence of Record
        Of all splits.

    Yields
    ------
    str
        The title, then Markdown.
    """
    yield _TITLE
    yield _PAPER
    seconds = sum(record.seconds for record in records)
    repeats = len({record.repeat for record in records})
    yield f"{repeats} repeats, {seconds:,.0f} s of CPU time in all. {_ERRORS}"
    for version in VERSIONS:
        own = panels(records, version)
        yield f"## `{version}`"
        yield _sizes(own)
        yield (
            "Least error over λ0, in %, ± standard deviation (λ0). The best is picked "
            "on the same test reviews, for dropout also among the rates:"
        )
        yield _least(own)
        yield (
            "At the same λ0, mean difference to no dropout in percentage points ± "
            "standard error, and on how many values of λ0 dropout is clearly lower / "
            f"not clearly different / clearly higher (by {_CLEAR:g} standard errors), "
            f"of all {len(own[0].precisions)}:"
        )
        yield _same_precision(own)
        yield _verdict(own)


def _sizes(own: Sequence[Panel]) -> str:
    parts = [
        f"{p.category} {p.first.n_train + p.first.n_test:,} x {p.first.n_features:,}"
        for p in own
    ]
    return "Reviews x covariates: " + ", ".join(parts) + "."


def _least(own: Sequence[Panel]) -> str:
    head = ["category", *(_name(method) for method in METHODS)]
    head += ["best dropout - best plain"]
    rows = []
    for panel in own:
        best = min(_rates(), key=lambda m: float(panel.curve(m).mean.min()))
        gap, error = panel.against_best_plain(best)
        cells = [_at_best(panel.curve(method)) for method in METHODS]
        rows.append([panel.category, *cells, f"{100 * gap:+.2f} ± {100 * error:.2f}"])
    return markdown_table(head, rows)


def _at_best(curve: Curve) -> str:
    k = curve.best
    error, spread = 100 * curve.mean[k], 100 * curve.deviation[k]
    return f"{error:.2f} ± {spread:.2f} ({curve.precisions[k]:g})"


def _same_precision(own: Sequence[Panel]) -> str:
    decades = np.log10(own[0].precisions)
    shown = np.flatnonzero(np.isclose(decades, decades.round()))
    head = ["category", "rate"]
    head += [f"λ0 = {own[0].precisions[k]:g}" for k in shown] + ["counts"]
    rows = []
    for panel in own:
        for method in _rates():
            curve = panel.curve(method)
            cells = [
                f"{100 * curve.gap[k]:+.1f} ± {100 * curve.gap_se[k]:.1f}"
                for k in shown
            ]
            counts = "/".join(str(n) for n in counted(curve))
            rows.append([panel.category, f"f = {METHODS[method]:g}", *cells, counts])
    return markdown_table(head, rows)


def counted(curve: Curve) -> tuple[int, int, int]:
    """Precisions where dropout is clearly lower, neither, and clearly higher."""
    lower = int((curve.gap < -_CLEAR * curve.gap_se).sum())
    higher = int((curve.gap > _CLEAR * curve.gap_se).sum())
    return lower, len(curve.gap) - lower - higher, higher


def _verdict(own: Sequence[Panel]) -> str:
    total = len(own) * len(own[0].precisions)
    parts = []
    for method in _rates():
        curves = [panel.curve(method) for panel in own]
        lower = sum(int((curve.gap < 0.0).sum()) for curve in curves)
        clearly, _, higher = np.sum([counted(curve) for curve in curves], axis=0)
        parts.append(
            f"- f = {METHODS[method]:g}: lower on {lower} of {total} (clearly on "
            f"{clearly}), clearly higher on {higher}"
        )
    mean, clear = _widest(own)
    return "\n".join(
        [
            "Dropout's error over all categories and values of λ0:\n",
            *parts,
            "\nThe claim, read as: one rate has the lower error on at least half of "
            f"the values of λ0 in every category, {_said(mean)}; read as clearly "
            f"lower, {_said(clear)}.",
        ]
    )


def _widest(own: Sequence[Panel]) -> tuple[float, float]:
    """Share of precisions with a lower, and clearly lower error.

    In the worst category, for the best rate.
    """
    shares = []
    for method in _rates():
        curves = [panel.curve(method) for panel in own]
        lower = min(float((curve.gap < 0.0).mean()) for curve in curves)
        clearly = min(counted(curve)[0] / len(curve.gap) for curve in curves)
        shares.append((lower, clearly))
    return max(share for share, _ in shares), max(share for _, share in shares)


def _said(share: float) -> str:
    holds = "**holds**" if share >= _WIDE else "**does not hold**"
    return f"{holds} (share {share:.0%})"


def _rates() -> list[str]:
    return [name for name, rate in METHODS.items() if rate]


def _name(method: str) -> str:
    return f"dropout, f = {METHODS[method]:g}" if METHODS[method] else "no dropout"
