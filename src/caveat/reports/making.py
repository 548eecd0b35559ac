"""Making a report: checks, numbers, sections, one page."""

import json
import platform
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from html import unescape
from typing import Any

import numpy as np
import torch

from caveat._version import __version__
from caveat.errors import CaveatWarning, InputTypeError
from caveat.predictive import Predictive
from caveat.reports.calibration import calibration_section
from caveat.reports.columns import as_table
from caveat.reports.deferred import Deferred
from caveat.reports.deferring import SHARES, deferral_section
from caveat.reports.drivers import Drivers, drivers_of
from caveat.reports.enough import enough_section
from caveat.reports.features import feature_section
from caveat.reports.foreign import checked_foreign, foreign_section
from caveat.reports.intervals import interval_section
from caveat.reports.markup import Cell, count, hint, percent, short, table, term, text
from caveat.reports.page import page_of
from caveat.reports.people import listed_rows, people_section
from caveat.reports.section import Section
from caveat.reports.sharpness import sharpness_section
from caveat.reports.sites import checked_sites, site_section
from caveat.reports.subject import (
    AnySubject,
    ClassificationSubject,
    RegressionSubject,
    subject_of,
)
from caveat.reports.verdict import Sentence, verdict_of
from caveat.reports.view import HTMLReport

_FEW_ROWS = 100
_ABOUT = {"target", "unit"}  # which have a place of their own
_TARGET, _UNIT = 60, 20  # characters of their names in sentences and at axes
_LONGEST = 400  # characters of a line about how the report was made


def report(
    predictive: Predictive,
    y: Any,
    *,
    x: Any = None,
    ood: Any = None,
    audit: Any = None,
    title: str | None = None,
    classes: Sequence[Any] | None = None,
    about: Mapping[str, Any] | None = None,
) -> HTMLReport:
    """One page about predictions whose outcome is known, for the person who decides.

    Parameters
    ----------
    predictive : Predictive
        Of rows that trained nothing, with one output or label per row. Draws should be
        kept; without them intervals are approximate, and the page says so.
    y : array or Tensor, shape (rows,)
        Observations, or class numbers; names of classes with ``classes``.
    x : data frame, pyarrow table, mapping of columns, or array, optional
        The features of the rows, for what drives the uncertainty.
    ood : array of shape (rows,), or Predictive, optional
        Out-of-distribution scores, higher being stranger; or the predictive of rows
        from elsewhere.
    audit : Sites, optional
        What :func:`caveat.audit` returned.
    title : str, optional
        Of the page.
    classes : sequence, optional
        Names of the classes, in the order of their numbers.
    about : mapping of str, optional
        How it was made: ``"command"``, ``"seed"``, ``"model"``, … are listed as they
        are; ``"target"`` and ``"unit"`` say what is predicted, and in which unit.

    Returns
    -------
    HTMLReport
        Show it in a notebook, or ``save("report.html")``.

    Examples
    --------
    >>> import torch
    >>> from caveat.predictive import GaussianPredictive
    >>> generator = torch.Generator().manual_seed(0)
    >>> draws = torch.randn(50, 400, generator=generator)
    >>> predictive = GaussianPredictive.from_draws(draws, precision=1.0)
    >>> y = predictive.sample(1, seed=0)[0]
    >>> made = report(predictive, y, title="A check")
    >>> len(made.verdict), made.html.startswith("<!DOCTYPE html>")
    (3, True)
    """
    facts = _checked_about(about)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        subject = subject_of(
            predictive,
            y,
            classes=classes,
            target=facts.get("target", "")[:_TARGET],
            unit=facts.get("unit", "")[:_UNIT],
        )
        if x is not None or ood is not None:
            subject = _with(subject, x, ood)
        made = _made(subject, audit, title, facts, caught)
    for warning in caught:
        if not issubclass(warning.category, CaveatWarning):
            warnings.warn(warning.message, warning.category, stacklevel=2)
    return made


def _made(
    subject: AnySubject,
    audit: Any,
    title: str | None,
    facts: Mapping[str, str],
    caught: list[warnings.WarningMessage],
) -> HTMLReport:
    drivers = None
    if subject.table is not None:
        drivers = drivers_of(subject.table, subject.scores)
    sentences = verdict_of(subject)
    deferral, numbers = deferral_section(subject)
    sections = [
        calibration_section(subject),
        sharpness_section(subject),
        deferral,
        interval_section(subject, drivers),
        *_given(subject, drivers),
        people_section(subject, drivers),
        *([] if audit is None else [site_section(checked_sites(audit))]),
        enough_section(subject),
        _making_section(subject, audit, facts),
    ]
    name = title or _title(subject)
    plain = tuple(plain_text(sentence.html) for sentence in sentences)
    html = page_of(
        name,
        _lead(subject),
        sentences,
        _tiles(subject),
        _notes(subject, caught),
        sections,
        _data(subject, sentences, plain, numbers),
    )
    return HTMLReport(name, html, plain)


def _given(subject: AnySubject, drivers: Drivers | None) -> list[Section]:
    """Sections about what was given beside the predictions."""
    found = []
    if drivers is not None:
        found.append(feature_section(subject, drivers))
    if subject.foreign is not None:
        found.append(foreign_section(subject))
    return found


def _with(subject: AnySubject, x: Any, ood: Any) -> AnySubject:
    columns = None if x is None else as_table(x, subject.n_rows)
    strange = None
    if ood is not None:
        strange = checked_foreign(ood, subject.predictive)
    return replace(subject, table=columns, foreign=strange)


def _checked_about(about: Mapping[str, Any] | None) -> dict[str, str]:
    if about is None:
        return {}
    if not isinstance(about, Mapping):
        raise InputTypeError(
            f"about must be a mapping, such as {{'command': '…', 'seed': 0}}. Got "
            f"{type(about).__name__}."
        )
    return {str(name): str(value) for name, value in about.items()}


def _title(subject: AnySubject) -> str:
    what = subject.target or "the predictions"
    return f"How far to trust {what}"


def _lead(subject: AnySubject) -> str:
    parts = [count(subject.n_rows, "row") + " whose outcome is known"]
    if isinstance(subject, ClassificationSubject):
        parts.append(f"{len(subject.classes):,} classes")
    if subject.n_draws:
        parts.append(f"{subject.n_draws:,} {term('draws')} each")
    return ", ".join(parts) + "."


def _tiles(subject: AnySubject) -> list[tuple[str, str, str]]:
    deferred = Deferred.of(subject.curve, 0.1)
    spared = subject.risk(deferred.after)
    rest = hint(
        f"{subject.risk_words} of the rest",
        f"The {subject.risk_words} of the rows that are left when at most 10 % of "
        f"them, the least certain, are handed to a person.",
    )
    last = (spared, rest, "without the least sure 10 %")
    if isinstance(subject, ClassificationSubject):
        right = 1.0 - float(subject.losses.mean())
        curve = subject.reliability
        return [
            (percent(right), term("accuracy"), "of answers are right"),
            (
                percent(float(subject.confidence.mean())),
                term("confidence", "mean confidence"),
                "what the model thinks",
            ),
            (
                percent(curve.ece.value),
                term("ECE"),
                f"by chance {percent(curve.ece_floor)}",
            ),
            last,
        ]
    level = f"{100 * subject.level:.0f} %"
    return [
        (percent(subject.inside), term("coverage"), f"of the {level} intervals"),
        (subject.risk(float(subject.losses.mean())), term("mean error"), "per row"),
        (subject.risk(subject.width.value), term("width"), f"of the {level} intervals"),
        last,
    ]


def _notes(subject: AnySubject, caught: list[warnings.WarningMessage]) -> list[str]:
    found = []
    if subject.n_rows < _FEW_ROWS:
        found.append(
            f"There are only {count(subject.n_rows, 'row')}: all bands are wide, and "
            f"most questions stay open. Bring a hundred or more."
        )
    if isinstance(subject, ClassificationSubject):
        found += _class_notes(subject)
    else:
        found += _regression_notes(subject)
    found += subject.notes
    for warning in caught:
        if issubclass(warning.category, CaveatWarning):
            found.append(" ".join(str(warning.message).split()))
    return list(dict.fromkeys(_once(found)))


def _class_notes(subject: ClassificationSubject) -> Iterator[str]:
    seen = zip(subject.classes, subject.counts, strict=True)
    absent = [name for name, number in seen if not number]
    if absent:
        shown = ", ".join(name[:40] for name in absent[:5])
        more = f" and {len(absent) - 5} more" * (len(absent) > 5)
        yield (
            f"No row was observed to be {shown}{more}: nothing is known about how such "
            f"rows are answered."
        )


def _regression_notes(subject: RegressionSubject) -> Iterator[str]:
    if not bool(subject.predictive.noise_variance.any()):
        yield (
            "The predictive has no observation noise: its intervals are for the "
            "output of the model, not for what will be observed."
        )
    measured, judged = len(subject.measured_rows), len(subject.judged_rows)
    if measured < subject.n_rows:
        yield (
            f"The width of intervals is the mean of {measured:,} rows drawn at random."
        )
    if judged < subject.n_rows:
        yield (
            f"Coverage and densities are judged on {judged:,} rows drawn at random; "
            f"errors and deferral on all {subject.n_rows:,}."
        )


def _once(notes: list[str]) -> list[str]:
    """Of notes that differ in their first word only, the first."""
    tails: dict[str, str] = {}
    for note in notes:
        tails.setdefault(note.partition(":")[2] or note, note)
    return list(tails.values())


def _making_section(
    subject: AnySubject, audit: Any, facts: Mapping[str, str]
) -> Section:
    predictive = subject.predictive
    lines = {
        **{name: value for name, value in facts.items() if name not in _ABOUT},
        "predictive": repr(predictive).splitlines()[0],
        "caveat": __version__,
        "Python": platform.python_version(),
        "PyTorch": str(torch.__version__),
        "NumPy": np.__version__,
        "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    }
    rows = [[Cell(short(k, 30)), Cell(short(v, _LONGEST))] for k, v in lines.items()]
    body = table("How this report was made", ["what", "value"], rows)
    absent = [
        words
        for given, words in (
            (subject.table, "features (x=)"),
            (subject.foreign, "out-of-distribution scores (ood=)"),
            (audit, "an audit of the network (audit=)"),
            (facts.get("seed"), "the seed (about=)"),
            (facts.get("command"), "the command (about=)"),
        )
        if given is None
    ]
    if absent:
        body += f'<p class="small">Not given: {text(", ".join(absent))}.</p>'
    finding = (
        "All numbers are about the rows at hand: errors of ± are over such rows, and "
        "do not know how another training would have come out."
    )
    return Section("making", "Making", "How was this made?", finding, body)


def _data(
    subject: AnySubject,
    sentences: Sequence[Sentence],
    plain: Sequence[str],
    numbers: Mapping[str, object],
) -> dict[str, object]:
    """The numbers of the page for programs, and for the script."""
    found: dict[str, object] = {
        "format": 1,
        "rows": subject.n_rows,
        "draws": subject.n_draws,
        "verdict": [
            {"state": sentence.state, "text": words}
            for sentence, words in zip(sentences, plain, strict=True)
        ],
        "deferral": numbers,
        "people": listed_rows(subject).rows.tolist(),
        "deferring": {
            f"{share:g}": Deferred.of(subject.curve, share).after for share in SHARES
        },
    }
    if isinstance(subject, ClassificationSubject):
        found["accuracy"] = 1.0 - float(subject.losses.mean())
        found["ece"] = subject.reliability.ece.value
    else:
        curve = subject.coverage
        found["mean_error"] = float(subject.losses.mean())
        found["coverage"] = [curve.levels.tolist(), curve.observed.tolist()]
    return json.loads(json.dumps(found), parse_constant=lambda _: None)


def plain_text(html: str) -> str:
    """Our own HTML without its tags."""
    return unescape(re.sub(r"<[^>]+>", "", html)).replace("\u00a0", " ")
