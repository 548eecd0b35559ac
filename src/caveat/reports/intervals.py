"""Predictions row by row: intervals in order, or along a feature."""

import numpy as np

from caveat.evaluation.estimates import Array
from caveat.reports.columns import Rows
from caveat.reports.drivers import Drivers
from caveat.reports.markup import count, number, percent, term, text
from caveat.reports.section import Section, figure
from caveat.reports.subject import (
    AnySubject,
    ClassificationSubject,
    RegressionSubject,
)
from caveat.reports.svg import Chart, Scale, legend

_SHOWN = 80  # rows in a chart
_FEATURES = 3  # along which rows are drawn


def interval_section(subject: AnySubject, drivers: Drivers | None) -> Section:
    """Intervals, or confidences, of some rows in order and along features.

    Parameters
    ----------
    subject : RegressionSubject or ClassificationSubject
        What is judged.
    drivers : Drivers, optional
        The columns; the strongest of numbers are drawn along.

    Returns
    -------
    Section
    """
    is_class = isinstance(subject, ClassificationSubject)
    order = (
        subject.confidence
        if isinstance(subject, ClassificationSubject)
        else subject.mean
    )
    rows = spaced(order)
    charts, names = [_sorted_figure(subject, rows)], list[str]()
    for k, (name, values) in enumerate(_along(drivers)):
        looked_at = drivers.rows if drivers is not None else rows
        charts.append(_feature_figure(subject, looked_at, name, values, k))
        names.append(name)
    shown = f"{count(len(rows), 'row')} of {subject.n_rows:,}"
    finding = _finding(subject, shown if len(rows) < subject.n_rows else "All rows")
    options = "".join(
        f'<option value="{k}">{text(name[:60])}</option>'
        for k, name in enumerate(names)
    )
    choice = (
        f'<p class="choice" hidden><label>Along the feature <select id="along">'
        f"{options}</select></label></p>"
    ) * (len(names) > 1)
    question = "What do single predictions look like?"
    body = f'{choice}<div class="grid panels">{"".join(charts)}</div>'
    name = "Row by row" if is_class else "Intervals"
    return Section("intervals", name, question, finding, body)


def spaced(values: Array, most: int = _SHOWN) -> Rows:
    """Rows evenly spaced in the order of their values, at most so many."""
    order = np.argsort(values, kind="stable")
    order = order[np.isfinite(values[order])]
    places = np.linspace(0, len(order) - 1, min(most, len(order))).round().astype(int)
    return np.asarray(order[places], dtype=np.int64)


def _finding(subject: AnySubject, shown: str) -> str:
    if isinstance(subject, ClassificationSubject):
        return (
            f"{shown}, evenly spaced in the order of {term('confidence')}; crosses are "
            f"wrong answers, which should gather where confidence is low."
        )
    level = f"{100 * subject.level:.0f} %"
    return (
        f"{shown}, evenly spaced in their order, with their {level} intervals; about "
        f"{percent(1 - subject.level, 0)} of the observed values, the crosses, should "
        f"lie outside."
    )


def _along(drivers: Drivers | None) -> list[tuple[str, Array]]:
    """Names and values of the columns of numbers that matter most."""
    if drivers is None:
        return []
    numbers = [
        (driver.column.name, driver.column.numbers)
        for driver in drivers.found
        if driver.column.numbers is not None
    ]
    several = [each for each in numbers if len(np.unique(each[1])) > 5]
    return several[:_FEATURES]


def _sorted_figure(subject: AnySubject, rows: Rows) -> str:
    label = (
        "rows, in order of confidence"
        if isinstance(subject, ClassificationSubject)
        else "rows, in order of prediction"
    )
    places = np.arange(len(rows), dtype=float)
    return _panel(subject, rows, places, label, "chart-sorted", f"Sorted: {label}.")


def _feature_figure(
    subject: AnySubject, rows: Rows, name: str, values: Array, number_of: int
) -> str:
    chosen = spaced(values)
    identifier = f"chart-along-{number_of}"
    caption = f"Along <b>{text(name[:60])}</b>."
    return _panel(subject, rows[chosen], values[chosen], name, identifier, caption)


def _panel(
    subject: AnySubject,
    rows: Rows,
    places: Array,
    label: str,
    identifier: str,
    caption: str,
) -> str:
    if isinstance(subject, ClassificationSubject):
        return _class_panel(subject, rows, places, label, identifier, caption)
    return _number_panel(subject, rows, places, label, identifier, caption)


def _number_panel(
    subject: RegressionSubject,
    rows: Rows,
    places: Array,
    label: str,
    identifier: str,
    caption: str,
) -> str:
    lower, upper = subject.intervals(rows)
    mean, observed = subject.mean[rows], subject.observed[rows]
    outside = (observed < lower) | (observed > upper)
    chart = Chart(
        identifier,
        f"Intervals and observed values of {len(rows)} rows: {label[:80]}",
        f"{int(outside.sum())} of {len(rows)} observed values lie outside.",
        Scale.around(places),
        Scale.around(lower, upper, observed),
        label,
        subject.with_unit,
    )
    chart.uprights(places, lower, upper, "interval")
    chart.dots(places, mean, "mean", 1.6)
    chart.dots(places[~outside], observed[~outside], "seen", 2.2)
    chart.crosses(places[outside], observed[outside], "cross")
    chart.tips(
        places,
        [
            f"row {row}: predicted {number(m)}, {number(a)} to {number(b)}; observed "
            f"{number(o)}"
            for row, m, a, b, o in zip(
                rows + subject.first_row, mean, lower, upper, observed, strict=True
            )
        ],
    )
    signs = legend(
        ("interval", "interval"), ("seen", "observed inside"), ("cross", "outside")
    )
    return figure(chart, signs, caption)


def _class_panel(
    subject: ClassificationSubject,
    rows: Rows,
    places: Array,
    label: str,
    identifier: str,
    caption: str,
) -> str:
    sure, wrong = subject.confidence[rows], subject.losses[rows] > 0.0
    chart = Chart(
        identifier,
        f"Confidence of {len(rows)} answers: {label[:80]}",
        f"{int(wrong.sum())} of {len(rows)} answers are wrong.",
        Scale.around(places),
        Scale(0.0, 1.03),
        label,
        "confidence",
        y_percent=True,
    )
    chart.dots(places[~wrong], sure[~wrong], "dot", 2.6)
    chart.crosses(places[wrong], sure[wrong], "cross")
    names, first = subject.classes, subject.first_row
    chart.tips(
        places,
        [
            f"row {row + first}: {names[subject.answers[row]][:14]} with {c:.1%}; "
            f"observed {names[subject.labels[row]][:14]}"
            for row, c in zip(rows, sure, strict=True)
        ],
    )
    signs = legend(("dot", "right"), ("cross", "wrong"))
    return figure(chart, signs, caption)
