"""Whether stated probabilities come true: coverage, transform, reliability."""

import numpy as np

from caveat.reports.bands import share_band
from caveat.reports.markup import (
    Cell,
    count,
    hint,
    number,
    numeric,
    percent,
    table,
    term,
    words,
)
from caveat.reports.section import Section, figure, grid
from caveat.reports.subject import (
    AnySubject,
    ClassificationSubject,
    RegressionSubject,
    by_side,
)
from caveat.reports.svg import Chart, Scale, legend

_QUESTION = "Do stated probabilities come true?"
_MOST_CLASSES = 20  # lines of the table of classes
_UNIT = Scale(0.0, 1.0)


def calibration_section(subject: AnySubject) -> Section:
    """Coverage against level and the transform; or reliability and class counts.

    Parameters
    ----------
    subject : RegressionSubject or ClassificationSubject
        What is judged.

    Returns
    -------
    Section
    """
    finding, body = by_side(subject, _of_numbers, _of_classes)
    return Section("calibration", "Calibration", _QUESTION, finding, body)


def _of_numbers(subject: RegressionSubject) -> tuple[str, str]:
    curve = subject.coverage
    low, high = share_band(curve.levels, curve.n_rows)
    outside = int(((curve.observed < low) | (curve.observed > high)).sum())
    n_levels = len(curve.levels)
    finding = (
        f"At {n_levels - outside} of {count(n_levels, 'level')} the "
        f"{term('coverage')} lies in the {term('expected range')} of a "
        f"{term('calibrated')} model on {count(curve.n_rows, 'row')}. Above the "
        f"diagonal intervals are too wide, below it too narrow."
    )
    return finding, grid(_coverage_figure(subject), _transform_figure(subject))


def _coverage_figure(subject: RegressionSubject) -> str:
    curve = subject.coverage
    low, high = share_band(curve.levels, curve.n_rows)
    chart = Chart(
        "chart-coverage",
        "Share of observed values inside intervals, against what the intervals say",
        f"At the level {subject.level:.0%}, {subject.inside:.1%} are inside. The shade "
        f"is where 95 % of calibrated models would be.",
        _UNIT,
        _UNIT,
        "what the intervals say",
        "observed inside",
        x_percent=True,
        y_percent=True,
    )
    ends = np.array([0.0, 1.0])
    chart.band(
        np.concatenate([[0.0], curve.levels, [1.0]]),
        np.concatenate([[0.0], low, [1.0]]),
        np.concatenate([[0.0], high, [1.0]]),
    )
    chart.line(ends, ends, "ideal")
    chart.line(curve.levels, curve.observed, "line")
    chart.dots(curve.levels, curve.observed, "dot")
    chart.tips(
        curve.levels,
        [
            f"{level:.0%} intervals hold {seen:.1%} (expected {a:.1%} to {b:.1%})"
            for level, seen, a, b in zip(
                curve.levels, curve.observed, low, high, strict=True
            )
        ],
    )
    signs = legend(("dot", "observed"), ("ideal", "ideal"), ("band", "chance, 95 %"))
    return figure(chart, signs, "Coverage of intervals at each level.")


def _transform_figure(subject: RegressionSubject) -> str:
    n_rows = len(subject.transform)
    n_bins = int(np.clip(n_rows // 10, 4, 20))
    counts, edges = np.histogram(subject.transform, bins=n_bins, range=(0.0, 1.0))
    share = counts / n_rows
    low, high = (float(v) for v in share_band(1.0 / n_bins, n_rows))
    chart = Chart(
        "chart-transform",
        "How often observed values lie in each part of the predicted distribution",
        f"Even bars mean calibrated; {n_bins} bars, each expected to hold "
        f"{1 / n_bins:.1%} of rows, {low:.1%} to {high:.1%} by chance.",
        _UNIT,
        Scale.around(share, [high], least=0.0, pad=0.08),
        "probability transform of the observed value",
        "share of rows",
        y_percent=True,
    )
    tips = [
        f"{a:.2f} to {b:.2f}: {number_of:,} rows, {one:.1%} (expected {1 / n_bins:.1%})"
        for a, b, number_of, one in zip(
            edges[:-1], edges[1:], counts, share, strict=True
        )
    ]
    chart.band([0.0, 1.0], [low, low], [high, high])
    chart.bars(edges, share, "bar", tips)
    for limit in (low, high):
        chart.line([0.0, 1.0], [limit] * 2, "limit")
    chart.line([0.0, 1.0], [1.0 / n_bins] * 2, "ideal")
    signs = legend(("bar", "observed"), ("ideal", "ideal"), ("band", "chance, 95 %"))
    caption = (
        f"{term('probability transform', 'Probability transform')}: high ends mean "
        f"intervals too narrow, a hill in the middle too wide, a slope predictions too "
        f"low or too high."
    )
    return figure(chart, signs, caption)


def _of_classes(subject: ClassificationSubject) -> tuple[str, str]:
    curve = subject.reliability
    finding = (
        f"{term('confidence', 'Confidence')} and {term('accuracy')} lie "
        f"{percent(curve.ece.value)} apart on average ({term('ECE')}; right "
        f"probabilities would show {percent(curve.ece_floor)} on as many rows). Above "
        f"the diagonal the model is too timid, below it too sure."
    )
    parts = grid(_reliability_figure(subject), _class_table(subject))
    return finding, parts


def _reliability_figure(subject: ClassificationSubject) -> str:
    curve = subject.reliability
    low, high = share_band(curve.confidence, curve.counts)
    chart = Chart(
        "chart-reliability",
        "Share of right answers, against the confidence of the model",
        f"{len(curve.counts)} groups of rows by confidence. The bars are where 95 % of "
        f"calibrated models would be.",
        Scale(0.5 if len(subject.classes) == 2 else 0.0, 1.0),
        _UNIT,
        "confidence",
        "answers that are right",
        x_percent=True,
        y_percent=True,
    )
    ends = np.array([chart.x.low, 1.0])
    chart.line(ends, ends, "ideal")
    chart.uprights(curve.confidence, low, high, "range")
    chart.line(curve.confidence, curve.accuracy, "line")
    sizes = 2.5 + 4.0 * np.sqrt(curve.counts / curve.counts.max())
    for k, size in enumerate(sizes):
        chart.dots(curve.confidence[k : k + 1], curve.accuracy[k : k + 1], "dot", size)
    chart.tips(
        curve.confidence,
        [
            f"{n:,} rows with a confidence of {c:.1%}: {a:.1%} right (expected "
            f"{x:.1%} to {z:.1%})"
            for n, c, a, x, z in zip(
                curve.counts, curve.confidence, curve.accuracy, low, high, strict=True
            )
        ],
    )
    signs = legend(("dot", "observed"), ("ideal", "ideal"), ("band", "chance, 95 %"))
    return figure(chart, signs, "Reliability: larger dots stand for more rows.")


def _class_table(subject: ClassificationSubject) -> str:
    """Rows of each class beside the number that the probabilities add up to."""
    probs = subject.predictive.probs
    expected = probs.double().sum(0).numpy(force=True)
    # the variance of a sum of independent trials, sum p (1 - p)
    variance = expected - probs.double().square().sum(0).numpy(force=True)
    reach = 1.96 * np.sqrt(np.maximum(variance, 0.0)) + 0.5
    order = np.argsort(-subject.counts, kind="stable")[:_MOST_CLASSES]
    lines = []
    for k in order:
        hits = subject.answers[subject.labels == k] == k
        found = percent(float(hits.mean())) if len(hits) else "no such row"
        fits = abs(subject.counts[k] - expected[k]) <= reach[k]
        lines.append(
            [
                words(subject.classes[k]),
                numeric(float(subject.counts[k]), f"{subject.counts[k]:,}"),
                numeric(float(expected[k]), number(float(expected[k]))),
                Cell("yes" if fits else "<strong>no</strong>", "yes" if fits else "no"),
                numeric(float(hits.mean()) if len(hits) else -1.0, found),
            ]
        )
    left = len(subject.classes) - len(order)
    caption = "Classes: how often observed, and how often predicted"
    if left:
        caption += f" (the {len(order)} most frequent; {left} more)"
    headings = [
        "class",
        "observed",
        hint("foreseen", "Sum of the probabilities given to this class."),
        hint("fits", "Whether chance explains the difference (95 %)."),
        hint("recognised", "Share of the rows of this class that were recognised."),
    ]
    return table(caption, headings, lines)
