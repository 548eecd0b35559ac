"""How precise predictions claim to be, and whether errors grow with that claim."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from caveat.errors import CaveatError
from caveat.evaluation import (
    Estimate,
    accuracy,
    brier,
    crps,
    log_likelihood,
    rmse,
    sharpness,
)
from caveat.evaluation.estimates import Array
from caveat.reports.bands import share_band, spread_band
from caveat.reports.drivers import some_rows
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
from caveat.reports.svg import Chart, Scale, histogram, legend

_SLOW_ROWS = 5_000  # of scores that sort the draws of every row
_CONFUSIONS = 8  # lines of the table of confusions


def sharpness_section(subject: AnySubject) -> Section:
    """Spread and errors against it; or doubt and error rates against it.

    Parameters
    ----------
    subject : RegressionSubject or ClassificationSubject
        What is judged.

    Returns
    -------
    Section
    """
    finding, body = by_side(subject, _of_numbers, _of_classes)
    question = "How precise is it, and does it err where it says so?"
    return Section("sharpness", "Sharpness", question, finding, body)


def _of_numbers(subject: RegressionSubject) -> tuple[str, str]:
    tenths = np.quantile(subject.std, [0.1, 0.5, 0.9], method="inverted_cdf")
    low, middle, high = tenths.tolist()
    share = subject.not_known[np.isfinite(subject.not_known)]
    part = percent(float(share.mean()), 0) if len(share) else "an unknown part"
    finding = (
        f"The {term('spread')} of the middle row is {subject.risk(middle)}; for eight "
        f"rows in ten it lies between {number(low)} and {number(high)}. On average "
        f"{part} of the variance is {term('not known')}, which more data would reduce."
    )
    charts = grid(_error_figure(subject), _spread_figure(subject))
    return finding, charts + _number_metrics(subject)


def _error_figure(subject: RegressionSubject) -> str:
    rows = np.flatnonzero(np.isfinite(subject.std))
    if len(rows) == 0:
        return "<p>The spread of every row is infinite: there is nothing to draw.</p>"
    groups = equal_groups(subject.std[rows])
    n_rows = np.bincount(groups)
    predicted = np.sqrt(np.bincount(groups, subject.std[rows] ** 2) / n_rows)
    observed = np.sqrt(np.bincount(groups, subject.losses[rows] ** 2) / n_rows)
    low, high = (factor * predicted for factor in spread_band(n_rows))
    chart = Chart(
        "chart-error",
        "Observed error against predicted spread",
        f"{len(n_rows)} groups of rows by spread. On the diagonal errors are as large "
        f"as predicted; above it they are larger.",
        Scale.around(predicted),
        Scale.around(observed, low, high, least=0.0),
        f"predicted spread{_in(subject.unit)}",
        f"observed error (RMSE){_in(subject.unit)}",
    )
    ends = np.array([chart.x.low, chart.x.high])
    chart.uprights(predicted, low, high, "range")
    chart.line(ends, ends, "ideal")
    chart.dots(predicted, observed, "dot", 4.0)
    chart.tips(
        predicted,
        [
            f"{n:,} rows with a spread of {number(p)}: RMSE {number(o)} (expected "
            f"{number(a)} to {number(b)})"
            for n, p, o, a, b in zip(
                n_rows, predicted, observed, low, high, strict=True
            )
        ],
    )
    signs = legend(("dot", "group of rows"), ("ideal", "ideal"), ("band", "chance"))
    caption = (
        "Rows in groups by spread. The bars are where 95 % would lie if the spread "
        "were right and errors Gaussian."
    )
    return figure(chart, signs, caption)


def _spread_figure(subject: RegressionSubject) -> str:
    edges, counts, beyond = histogram(subject.std)
    chart = Chart(
        "chart-spread",
        "How many rows have which predicted spread",
        f"From {number(float(edges[0]))} to {number(float(edges[-1]))}; "
        f"{beyond} rows beyond.",
        Scale(float(edges[0]), float(edges[-1])),
        Scale.around(counts, least=0.0, pad=0.08),
        f"predicted spread{_in(subject.unit)}",
        "rows",
    )
    chart.bars(edges, counts, "bar", range_tips(edges, counts))
    caption = "Further left is sharper: better, if calibration holds."
    if beyond:
        caption += f" {count(beyond, 'row')} beyond the right end."
    return figure(chart, "", caption)


def _number_metrics(subject: RegressionSubject) -> str:
    predictive, y = subject.judged
    most = some_rows(len(predictive), _SLOW_ROWS)
    slow = predictive if len(most) == len(predictive) else predictive[most]
    likely = partial(log_likelihood, predictive, y)
    lines = [
        _line("mean error", Estimate.of_mean(subject.losses), "low"),
        _line("RMSE", rmse(subject.predictive, subject.y), "low"),
        _line("width", subject.width, "low if calibrated"),
        _try(subject, "CRPS", partial(crps, slow, y[most]), "low"),
        _try(subject, "log-likelihood", likely, "high"),
    ]
    if len(most) < subject.n_rows:
        subject.notes.append(f"CRPS is that of {len(most):,} rows drawn at random.")
    return _metrics([line for line in lines if line])


def _of_classes(subject: ClassificationSubject) -> tuple[str, str]:
    sure = float((subject.confidence >= 0.9).mean())
    wrong = subject.losses[subject.confidence >= 0.9]
    part = ""
    if len(wrong):
        share = percent(float(wrong.mean())) if wrong.any() else "none"
        part = f", and {share} of these are wrong"
    finding = (
        f"{percent(sure)} of the answers are given with a {term('confidence')} of 90 % "
        f"or more{part}. Errors should be frequent where confidence is low, and rare "
        f"where it is high."
    )
    charts = grid(_rate_figure(subject), _confidence_figure(subject))
    return finding, charts + grid(_class_metrics(subject), _confusions(subject))


def _rate_figure(subject: ClassificationSubject) -> str:
    groups = equal_groups(subject.entropy)
    n_rows = np.bincount(groups)
    doubt = np.bincount(groups, subject.entropy) / n_rows
    expected = np.clip(np.bincount(groups, subject.scores) / n_rows, 0.0, 1.0)
    observed = np.bincount(groups, subject.losses) / n_rows
    low, high = share_band(expected, n_rows)
    chart = Chart(
        "chart-error",
        "Error rate against the entropy of the probabilities",
        f"{len(n_rows)} groups of rows by entropy, with the error rate that their "
        f"probabilities promise.",
        Scale.around(doubt),
        Scale.around(observed, high, least=0.0, pad=0.08),
        "entropy (nats)",
        "error rate",
        y_percent=True,
    )
    chart.uprights(doubt, low, high, "range")
    chart.line(doubt, expected, "ideal")
    chart.dots(doubt, observed, "dot", 4.0)
    chart.tips(
        doubt,
        [
            f"{n:,} rows with an entropy of {number(d)}: {o:.1%} wrong (promised "
            f"{e:.1%}; {a:.1%} to {b:.1%} by chance)"
            for n, d, o, e, a, b in zip(
                n_rows, doubt, observed, expected, low, high, strict=True
            )
        ],
    )
    signs = legend(("dot", "observed"), ("ideal", "promised"), ("band", "chance, 95 %"))
    caption = f"Rows in groups by {term('entropy')}: doubt should go with errors."
    return figure(chart, signs, caption)


def _confidence_figure(subject: ClassificationSubject) -> str:
    wrong = subject.losses > 0.0
    least = 1.0 / len(subject.classes)
    edges = np.linspace(least, 1.0, 21)
    # rounding may leave a confidence a little outside
    kept = np.clip(subject.confidence, least, 1.0)
    everyone, _ = np.histogram(kept, edges)
    failed, _ = np.histogram(kept[wrong], edges)
    chart = Chart(
        "chart-confidence",
        "How many answers have which confidence, and how many of them are wrong",
        f"{int(wrong.sum())} of {len(wrong)} answers are wrong.",
        Scale(least, 1.0),
        Scale.around(everyone, least=0.0, pad=0.08),
        "confidence",
        "rows",
        x_percent=True,
    )
    tips = [
        f"confidence {a:.0%} to {b:.0%}: {n:,} rows, {w:,} of them wrong"
        for a, b, n, w in zip(edges[:-1], edges[1:], everyone, failed, strict=True)
    ]
    chart.bars(edges, everyone, "bar", [""] * len(tips), hits=False)
    chart.bars(edges, failed, "bar2", tips)
    signs = legend(("bar", "all answers"), ("bar2", "wrong ones"))
    return figure(chart, signs, "Further right is sharper: better, if calibrated.")


def _class_metrics(subject: ClassificationSubject) -> str:
    predictive, y = subject.predictive, subject.y
    return _metrics(
        [
            _line("accuracy", accuracy(predictive, y), "high"),
            _line("log-likelihood", log_likelihood(predictive, y), "high"),
            _line("Brier score", brier(predictive, y), "low"),
            _line("ECE", subject.reliability.ece, "low"),
            _line("entropy", sharpness(predictive), "low if calibrated"),
        ]
    )


def _confusions(subject: ClassificationSubject) -> str:
    wrong = subject.losses > 0.0
    n_classes = len(subject.classes)
    pairs = subject.labels[wrong] * n_classes + subject.answers[wrong]
    kinds, counts = np.unique(pairs, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:_CONFUSIONS]
    if len(order) == 0:
        return "<p>No answer is wrong, so nothing is confused.</p>"
    lines = []
    for k in order:
        true, answer = divmod(int(kinds[k]), n_classes)
        share = counts[k] / subject.counts[true]
        lines.append(
            [
                words(subject.classes[true]),
                words(subject.classes[answer]),
                numeric(float(counts[k]), f"{counts[k]:,}"),
                numeric(float(share), percent(float(share))),
            ]
        )
    headings = [
        hint("observed", "The class that was observed."),
        hint("answered", "The class that the model answered instead."),
        "rows",
        hint("of that class", "Share of the rows of the observed class."),
    ]
    return table("What is confused most often", headings, lines)


def equal_groups(values: Array, most: int = 12) -> NDArray[np.int64]:
    """Groups of about equally many rows, in the order of the values; ties together."""
    n_groups = int(np.clip(len(values) // 10, 1, most))
    inner = np.quantile(values, np.arange(1, n_groups) / n_groups, method="lower")
    codes = np.searchsorted(np.unique(inner), values)
    return np.asarray(np.unique(codes, return_inverse=True)[1])


def range_tips(edges: Array, counts: Array) -> list[str]:
    """What stands at each bar of a histogram of rows."""
    return [
        f"{number(float(a))} to {number(float(b))}: {count(int(n), 'row')}"
        for a, b, n in zip(edges[:-1], edges[1:], counts, strict=True)
    ]


def _metrics(lines: list[list[Cell]]) -> str:
    headings = [
        "metric",
        "value",
        hint("± standard error", "How far it would move on other rows of this kind."),
        hint("best", "Which values are good."),
    ]
    return table("In numbers", headings, lines)


def _line(name: str, found: Estimate, best: str) -> list[Cell]:
    value, error = str(found).replace("-", "−").split(" ± ")
    return [
        Cell(term(name), name),
        numeric(found.value, value),
        numeric(found.error, error),
        Cell(best),
    ]


def _try(
    subject: RegressionSubject, name: str, measure: "partial[Estimate]", best: str
) -> list[Cell]:
    """A line, or a note that says why it cannot be measured."""
    try:
        return _line(name, measure(), best)
    except CaveatError as error:
        subject.notes.append(f"{name} is left out. {error}")
        return []


def _in(unit: str) -> str:
    return f" ({unit})" if unit else ""
