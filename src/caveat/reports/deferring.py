"""What handing the least certain rows to a person buys: risk against coverage."""

import numpy as np

from caveat.evaluation.estimates import Array
from caveat.reports.deferred import Deferred
from caveat.reports.markup import (
    Cell,
    count,
    hint,
    number,
    numeric,
    percent,
    table,
    term,
)
from caveat.reports.section import Section, figure, grid
from caveat.reports.subject import AnySubject, ClassificationSubject
from caveat.reports.svg import Chart, Scale, legend

SHARES = (0.05, 0.1, 0.2)
_MOST = 0.5  # share deferred up to which the curve is drawn
_STEPS = 100

_SLIDER = """<div class="slider" hidden><label for="defer">Hand to a person
<output id="defer-share" for="defer">10 %</output></label>
<input type="range" id="defer" min="0" max="{last}" value="{start}" step="1"
aria-describedby="defer-text"><p id="defer-text" aria-live="polite"></p></div>"""


def deferral_curve(subject: AnySubject) -> tuple[Array, list[Deferred]]:
    """What deferring does, at shares from nothing to a half.

    Parameters
    ----------
    subject : RegressionSubject or ClassificationSubject
        What is judged.

    Returns
    -------
    shares : array
        What was asked for.
    found : list of Deferred
        What it does.
    """
    shares = np.linspace(0.0, _MOST, _STEPS + 1).round(3)
    return shares, [Deferred.of(subject.curve, float(share)) for share in shares]


def deferral_section(subject: AnySubject) -> tuple[Section, dict[str, object]]:
    """The curve, a table of three shares, and the numbers of the slider.

    Parameters
    ----------
    subject : RegressionSubject or ClassificationSubject
        What is judged.

    Returns
    -------
    section : Section
    data : dict
        For the script of the page.
    """
    shares, found = deferral_curve(subject)
    chosen = [Deferred.of(subject.curve, share) for share in SHARES]
    body = grid(_curve_figure(subject, shares, found), _side(subject, chosen))
    data = {
        "share": shares.tolist(),
        "rows": [each.n_deferred for each in found],
        "risk": [round(each.after, 9) for each in found],
        "shown": [subject.risk(each.after) for each in found],
        "words": subject.risk_words,
        "before": subject.risk(found[0].before),
    }
    question = "What does handing rows to a person buy?"
    section = Section("deferral", "Deferral", question, _finding(subject), body)
    return section, data


def _finding(subject: AnySubject) -> str:
    if len(subject.curve.thresholds) == 1:
        return (
            "The model is equally sure of all rows: it has no order in which to hand "
            "them to a person."
        )
    return (
        f"Rows are {term('deferred')} in the order of their "
        f"{term(subject.score_words)}. A curve that falls means that the "
        f"model knows where it errs; a flat one that it does not."
    )


def _curve_figure(subject: AnySubject, shares: Array, found: list[Deferred]) -> str:
    risk = np.array([each.after for each in found])
    error = np.array([each.after_error for each in found])
    error = np.where(np.isfinite(error), error, 0.0)
    low, high = np.maximum(risk - 2 * error, 0.0), risk + 2 * error
    is_rate = isinstance(subject, ClassificationSubject)
    unit = f" ({subject.unit})" if subject.unit and not is_rate else ""
    chart = Chart(
        "chart-deferral",
        f"The {subject.risk_words} of the rows that are kept, against the share handed "
        f"to a person",
        f"From {subject.risk(found[0].after)} with no row handed on to "
        f"{subject.risk(found[-1].after)} with half of them.",
        Scale(0.0, _MOST),
        Scale.around(low, high, least=0.0, pad=0.08),
        "handed to a person",
        f"{subject.risk_words} of the rest{unit}",
        x_percent=True,
        y_percent=is_rate,
    )
    chart.band(shares, low, high)
    chart.line([0.0, _MOST], [risk[0], risk[0]], "ideal")
    chart.line(shares, risk, "line")
    start = int(np.abs(shares - 0.1).argmin())
    chart.marker(shares[start], risk[start])
    tips = [
        f"{each.asked:.1%} asked, {each.n_deferred:,} rows handed on: "
        f"{subject.risk_words} {subject.risk(each.after)}"
        for each in found
    ]
    chart.tips(shares, tips)
    signs = legend(
        ("line", subject.risk_words),
        ("ideal", "at random"),
        ("band", "± 2 standard errors"),
    )
    slider = _SLIDER.format(last=len(shares) - 1, start=start)
    return figure(
        chart, signs + slider, f"The {subject.risk_words} of the rows that are kept."
    )


def _side(subject: AnySubject, chosen: list[Deferred]) -> str:
    lines = [_line(subject, each) for each in chosen]
    headings = [
        hint("at most", "Share of rows to be handed to a person, at most."),
        hint("rows", "Rows that are handed on; those of one score stay together."),
        term(subject.risk_words, f"{subject.risk_words} of the rest"),
        hint(
            "change",
            f"Of the {subject.risk_words} against handing on no row; (chance) if rows "
            f"chosen at random might do as much.",
        ),
        hint("limit", f"The largest {subject.score_words} of a row that is kept."),
    ]
    caption = "Deferring 5, 10 and 20 %"
    whole = subject.risk(chosen[0].before)
    tail = f"<p>With no row handed on, the {subject.risk_words} is {whole}.</p>"
    return f"<div>{table(caption, headings, lines)}{tail}</div>"


def _line(subject: AnySubject, each: Deferred) -> list[Cell]:
    gain = "–" if each.gain != each.gain else _change(each)
    return [
        numeric(each.asked, percent(each.asked, 0)),
        numeric(each.n_deferred, count(each.n_deferred, "row").split()[0]),
        numeric(each.after, subject.risk(each.after)),
        numeric(-each.gain, gain),
        numeric(each.threshold, number(each.threshold)),
    ]


def _change(each: Deferred) -> str:
    sign = "−" if each.gain > 0.0 else "+" if each.gain < 0.0 else ""
    shown = f"{sign}{percent(abs(each.gain), 0)}"
    return shown if each.is_shown or each.is_reversed else f"{shown} (chance)"
