"""The rows that need a person: the least certain, and the sure ones that failed."""

from dataclasses import dataclass
from typing import final

import numpy as np

from caveat.evaluation.estimates import Array
from caveat.predictive import Predictive
from caveat.reports.columns import Rows, as_column
from caveat.reports.deferred import Deferred
from caveat.reports.drivers import Drivers
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
    words,
)
from caveat.reports.section import Section
from caveat.reports.subject import (
    AnySubject,
    ClassificationSubject,
    RegressionSubject,
)

MOST = 50  # rows that are listed
_SURPRISES = 15  # of these, at most, for being sure and wrong
_STRANGE = 3.0  # spreads between observation and prediction
_SURE = 0.9  # confidence of an answer that should not be wrong
_COLUMNS = 6  # features beside each row

_WHY = hint(
    "why",
    "Least sure: among the rows with the largest doubt. Sure, but wrong: three spreads "
    "away, or wrong with a confidence of 90 % or more.",
)
_PREDICTED = hint("predicted", "The mean of the prediction.")
_ANSWER = hint("answer", "The most probable class.")
_OBSERVED = hint("observed", "What was observed.")
_DEFERRAL = '<a href="#deferral">Deferral</a>'
UNSURE, SURPRISE = "least sure", "sure, but wrong"


@final
@dataclass(frozen=True)
class Listed:
    """Rows for a person, in order, and why each is there.

    Attributes
    ----------
    rows : array of int
        Their numbers.
    reasons : tuple of str
        ``"least sure"`` or ``"sure, but wrong"``.
    """

    rows: Rows
    reasons: tuple[str, ...]


def listed_rows(subject: AnySubject) -> Listed:
    """Up to fifty rows: the least certain ones, and sure ones that failed.

    Parameters
    ----------
    subject : RegressionSubject or ClassificationSubject
        What is judged.

    Returns
    -------
    Listed
    """
    surprise = surprises(subject)
    order = _highest(surprise, MOST + _SURPRISES)
    unsure = _highest(subject.scores, MOST)
    known = set(unsure.tolist())
    failed = [row for row in order if surprise[row] > 0.0 and row not in known]
    failed = failed[:_SURPRISES]
    kept = unsure[: MOST - len(failed)]
    rows = np.array([*kept, *failed], dtype=np.int64)
    return Listed(rows, (UNSURE,) * len(kept) + (SURPRISE,) * len(failed))


def surprises(subject: AnySubject) -> Array:
    """How much a row was sure and failed; 0 where it was not."""
    if isinstance(subject, ClassificationSubject):
        failed = (subject.losses > 0.0) & (subject.confidence >= _SURE)
        return np.where(failed, subject.confidence, 0.0)
    found = surprise_of(subject)
    return np.where(found > _STRANGE, found, 0.0)


def surprise_of(subject: RegressionSubject) -> Array:
    """Distance between observation and prediction, in spreads."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = subject.losses / subject.std
    return np.where(subject.losses == 0.0, 0.0, found)


def people_section(subject: AnySubject, drivers: Drivers | None) -> Section:
    """The table of rows.

    Parameters
    ----------
    subject : RegressionSubject or ClassificationSubject
        What is judged.
    drivers : Drivers, optional
        The columns; the strongest stand beside each row.

    Returns
    -------
    Section
    """
    listed = listed_rows(subject)
    n_failed = listed.reasons.count(SURPRISE)
    finding = (
        f"{count(len(listed.rows) - n_failed, 'row')} with the largest "
        f"{subject.score_words}"
    )
    if n_failed:
        finding += (
            f", and {count(n_failed, 'row')} of which the model was sure and which "
            f"came out otherwise: look at their data, too"
        )
    finding += "."
    if not Deferred.of(subject.curve, 0.1).is_shown:
        finding += (
            f" Whether the model errs more on rows like these is not shown "
            f"({_DEFERRAL}): choose rows by what you know of them, too."
        )
    heads, columns = _named(subject, listed.rows)
    if isinstance(subject, ClassificationSubject):
        more = _of_classes(subject, listed.rows)
    else:
        more = _of_numbers(subject, listed.rows)
    reasons = [words(reason) for reason in listed.reasons]
    parts = [*zip(heads, columns, strict=True), *more, (_WHY, reasons)]
    if subject.foreign is not None and not isinstance(subject.foreign, Predictive):
        strange = [numeric(float(v)) for v in subject.foreign[listed.rows]]
        parts.append((term("out-of-distribution score", "strange"), strange))
    parts += _features(subject, drivers, listed.rows)
    body = table(
        "Rows that need a person, the least certain first",
        [heading for heading, _ in parts],
        zip(*(cells for _, cells in parts), strict=True),
        identifier="people-table",
        sortable=True,
    )
    name = "Rows for a person"
    return Section("people", name, "Which rows need a person?", finding, body)


def _highest(scores: Array, most: int) -> Rows:
    """Rows of the highest scores, in order, without sorting all of them."""
    if len(scores) > most:
        some = np.argpartition(-scores, most - 1)[:most]
    else:
        some = np.arange(len(scores))
    order = np.lexsort((some, -scores[some]))
    return np.asarray(some[order], dtype=np.int64)


def _named(subject: AnySubject, rows: Rows) -> tuple[list[str], list[list[Cell]]]:
    first = subject.first_row
    heads = [hint("row", f"Its number, counted from {first}.")]
    cells = [[numeric(float(row), f"{row:,}") for row in rows + first]]
    names = None if subject.table is None else subject.table.row_names
    if names is not None:
        heads.append("name")
        cells.append([words(names[int(row)]) for row in rows])
    return heads, cells


def _of_numbers(subject: RegressionSubject, rows: Rows) -> list[tuple[str, list[Cell]]]:
    lower, upper = subject.intervals(rows)
    level = f"{100 * subject.level:.0f} % interval"
    spans = [
        Cell(f"{number(a)} to {number(b)}", b - a, True)
        for a, b in zip(lower.tolist(), upper.tolist(), strict=True)
    ]
    known = [numeric(v, percent(v, 0)) for v in subject.not_known[rows].tolist()]
    return [
        (_PREDICTED, _numbers(subject.mean[rows])),
        (term("90 % interval", level), spans),
        (_OBSERVED, _numbers(subject.observed[rows])),
        (term("spread"), _numbers(subject.std[rows])),
        (term("surprise"), _numbers(surprise_of(subject)[rows])),
        (term("not known"), known),
    ]


def _of_classes(
    subject: ClassificationSubject, rows: Rows
) -> list[tuple[str, list[Cell]]]:
    names = subject.classes
    sure = [numeric(v, percent(v)) for v in subject.confidence[rows].tolist()]
    return [
        (_ANSWER, [words(names[k]) for k in subject.answers[rows]]),
        (term("confidence"), sure),
        (_OBSERVED, [words(names[k]) for k in subject.labels[rows]]),
        (term("entropy"), _numbers(subject.entropy[rows])),
        (term("mutual information"), _numbers(subject.information[rows])),
    ]


def _features(
    subject: AnySubject, drivers: Drivers | None, rows: Rows
) -> list[tuple[str, list[Cell]]]:
    """The values of the most telling columns."""
    if drivers is None or subject.table is None:
        return []
    place = {name: k for k, name in reversed(list(enumerate(subject.table.names)))}
    left_out = [*drivers.too_many, *(d.column.name for d in drivers.found)]
    found: list[tuple[str, list[Cell]]] = []
    for name in left_out[:_COLUMNS]:
        column = as_column(name, subject.table.take(place[name], rows))
        values = [column.word(k) for k in range(len(rows))]
        if column.numbers is None:
            cells = [words(value) for value in values]
        else:
            keys = column.numbers.tolist()
            cells = [numeric(k, v) for k, v in zip(keys, values, strict=True)]
        found.append((short(name, 20), cells))
    return found


def _numbers(values: Array) -> list[Cell]:
    return [numeric(value) for value in values.tolist()]
