"""Which features go with uncertainty."""

import numpy as np

from caveat.reports.drivers import Driver, Drivers
from caveat.reports.markup import (
    Cell,
    count,
    hint,
    number,
    numeric,
    percent,
    short,
    table,
    term,
    text,
)
from caveat.reports.section import Section
from caveat.reports.subject import AnySubject

_MOST = 12  # columns that are listed


def feature_section(subject: AnySubject, drivers: Drivers) -> Section:
    """A table of the columns, the strongest first.

    Parameters
    ----------
    subject : RegressionSubject or ClassificationSubject
        What is judged.
    drivers : Drivers
        The columns.

    Returns
    -------
    Section
    """
    listed = drivers.found[:_MOST]
    sure = [driver for driver in listed if driver.is_sure]
    body = _table(subject, listed) if listed else ""
    body += _rest(subject, drivers)
    question = "What makes it uncertain?"
    return Section("features", "Features", question, _finding(subject, sure), body)


def _finding(subject: AnySubject, sure: list[Driver]) -> str:
    if len(subject.curve.thresholds) == 1:
        return "The model is equally sure of all rows, whatever their features."
    if not sure:
        return (
            f"No column goes with the {subject.score_words} by more than chance, each "
            f"looked at on its own."
        )
    first = sure[0]
    return (
        f"The {term(subject.score_words)} goes most with "
        f"<b>{short(first.column.name)}</b>, which explains "
        f"{percent(first.share, 0)} of its differences between rows; it {first.trend}. "
        f"Columns are looked at one by one: this shows where doubt is, not what causes "
        f"it."
    )


def _table(subject: AnySubject, listed: tuple[Driver, ...]) -> str:
    headings = [
        "column",
        term("share explained"),
        hint(
            f"{subject.score_words} by value",
            "Its mean in groups of rows: by value, or by category.",
        ),
        hint("highest where", "The group with the largest mean, and that mean."),
        hint("lowest where", "The group with the smallest mean, and that mean."),
    ]
    lines = [
        [
            Cell(short(driver.column.name, 28), driver.column.name[:60]),
            _share(driver),
            Cell(_spark(driver)),
            _place(driver, int(np.nanargmax(driver.means))),
            _place(driver, int(np.nanargmin(driver.means))),
        ]
        for driver in listed
    ]
    return table("Columns, the strongest first", headings, lines)


def _share(driver: Driver) -> Cell:
    if not driver.is_sure:
        return numeric(driver.share, f"{percent(driver.share, 0)} (chance)")
    return numeric(driver.share, percent(driver.share, 0))


def _place(driver: Driver, group: int) -> Cell:
    mean = number(float(driver.means[group]))
    return Cell(f"{short(driver.groups[group], 24)} <small>({mean})</small>")


def _spark(driver: Driver) -> str:
    """The mean score of each group as small bars."""
    means = np.where(np.isfinite(driver.means), driver.means, 0.0)
    top = means.max() or 1.0
    width = 96.0 / len(means)
    bars = "".join(
        f'<rect class="bar" x="{k * width:.1f}" y="{26 - 24 * height:.1f}" '
        f'width="{width - 1:.1f}" height="{24 * height:.1f}"><title>{text(name[:60])}: '
        f"{number(float(mean))}, {count(int(rows), 'row')}</title></rect>"
        for k, (name, mean, rows, height) in enumerate(
            zip(
                driver.groups,
                means,
                driver.counts,
                (means / top).clip(0.0, 1.0),
                strict=True,
            )
        )
    )
    words = text(f"{driver.column.name[:60]}: uncertainty {driver.trend}")
    return (
        f'<svg class="spark" viewBox="0 0 96 26" role="img" aria-label="{words}">'
        f"{bars}</svg>"
    )


def _rest(subject: AnySubject, drivers: Drivers) -> str:
    parts = []
    more = len(drivers.found) - _MOST
    if more > 0:
        parts.append(f"{count(more, 'weaker column')} not listed.")
    if drivers.constant:
        parts.append(f"Constant: {_names(drivers.constant)}.")
    if drivers.too_many:
        parts.append(
            f"Nearly a value of its own for each row, like an identifier: "
            f"{_names(drivers.too_many)}."
        )
    if len(drivers.rows) < subject.n_rows:
        parts.append(f"Looked at {count(len(drivers.rows), 'row')}, drawn at random.")
    return f'<p class="small">{" ".join(parts)}</p>' if parts else ""


def _names(names: tuple[str, ...]) -> str:
    shown = ", ".join(short(name, 30) for name in names[:8])
    return shown + f" and {len(names) - 8} more" * (len(names) > 8)
