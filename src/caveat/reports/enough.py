"""Whether there were enough draws: Monte Carlo error beside what it disturbs."""

import math

import numpy as np

from caveat.evaluation.estimates import Array
from caveat.reports.markup import count, number, percent, term
from caveat.reports.section import Section, figure, grid
from caveat.reports.subject import AnySubject, ClassificationSubject
from caveat.reports.svg import Chart, Scale, histogram

GOAL = 0.1  # error over spread: it widens an interval by half a percent
_FLIPS = 0.01  # share of labels that more draws may change

_QUESTION = "Were there enough draws?"


def enough_section(subject: AnySubject) -> Section:
    """How far predictions would move with other draws.

    Parameters
    ----------
    subject : RegressionSubject or ClassificationSubject
        What is judged.

    Returns
    -------
    Section
    """
    finding, body = _found(subject)
    return Section("draws", "Number of draws", _QUESTION, finding, body)


def _found(subject: AnySubject) -> tuple[str, str]:
    n_draws = subject.n_draws
    if n_draws == 0:
        return (
            "Nothing was sampled: these predictions need no draws, and have no "
            f"{term('Monte Carlo error')}.",
            "",
        )
    if n_draws == 1:
        return (
            f"There is one of the {term('draws')} only, so nothing is known about how "
            f"far predictions would move with others. Take 50 or more.",
            "",
        )
    errors, all_rows = subject.relative_error()
    rows = "" if all_rows else f" (on {count(len(errors), 'row')} drawn at random)"
    if isinstance(subject, ClassificationSubject):
        return _of_classes(errors, n_draws, rows)
    return _of_numbers(errors, n_draws, rows)


def _of_numbers(errors: Array, n_draws: int, rows: str) -> tuple[str, str]:
    worst = float(np.quantile(errors, 0.95, method="higher"))
    middle = float(np.median(errors))
    fact = (
        f"With {count(n_draws, 'draw')} the {term('Monte Carlo error')} of a "
        f"prediction is {percent(middle)} of its {term('spread')} for the middle row, "
        f"and at most {percent(worst)} for 95 % of rows{rows}"
    )
    if worst <= GOAL:
        finding = f"{fact}. That is enough: it widens no interval noticeably."
    elif math.isfinite(worst):
        needed = math.ceil(n_draws * (worst / GOAL) ** 2)
        finding = (
            f"{fact}. More would help: about {number(needed, 2)} draws bring it below "
            f"{percent(GOAL, 0)}."
        )
    else:
        finding = f"{fact}. More draws are needed."
    edges, counts, beyond = histogram(errors)
    chart = Chart(
        "chart-draws",
        "Monte Carlo error of predictions, as a share of their spread",
        f"95 % of rows lie below {worst:.1%}.",
        Scale(min(float(edges[0]), 0.0), max(float(edges[-1]), GOAL * 1.1)),
        Scale.around(counts, least=0.0, pad=0.08),
        "Monte Carlo error over spread",
        "rows",
        x_percent=True,
    )
    tips = [
        f"{a:.2%} to {b:.2%}: {int(n):,} rows"
        for a, b, n in zip(edges[:-1], edges[1:], counts, strict=True)
    ]
    chart.bars(edges, counts, "bar", tips)
    chart.upright(GOAL, "ideal")
    caption = "Left of the dashed line the number of draws does not matter."
    if beyond:
        caption += f" {count(beyond, 'row')} beyond the right end."
    return finding, grid(figure(chart, "", caption))


def _of_classes(errors: Array, n_draws: int, rows: str) -> tuple[str, str]:
    # the lead of the first class is less than two of its errors, added up cautiously
    open_rows = ~(errors <= 0.5)
    share = float(open_rows.mean())
    fact = (
        f"With {count(n_draws, 'draw')}, {percent(share)} of the answers are so close "
        f"that other draws might change them ({term('Monte Carlo error')}){rows}"
    )
    if share <= _FLIPS:
        return f"{fact}. That is enough.", ""
    return (
        f"{fact}. Four times as many draws would halve the error; such rows are the "
        f"uncertain ones, and a person sees them first.",
        "",
    )
