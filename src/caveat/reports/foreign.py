"""Rows unlike those of training: scores that were given, or a set of foreign rows."""

from typing import Any

import numpy as np
from scipy.stats import spearmanr

from caveat.errors import InputTypeError
from caveat.evaluation import auroc
from caveat.evaluation.estimates import Array, Estimate
from caveat.evaluation.scores import checked_scores, default_score, score_of
from caveat.predictive import ClassificationPredictive, Predictive
from caveat.reports.markup import count, number, percent, term
from caveat.reports.section import Section, figure, grid
from caveat.reports.sharpness import equal_groups, range_tips
from caveat.reports.subject import AnySubject, ClassificationSubject
from caveat.reports.svg import Chart, Scale, histogram, legend


def checked_foreign(ood: Any, predictive: Predictive) -> Array | Predictive:
    """Out-of-distribution scores, one per row; or the predictive of foreign rows.

    Parameters
    ----------
    ood : array of shape (rows,), Tensor or Predictive
        What was given.
    predictive : Predictive
        Of the familiar rows.

    Returns
    -------
    array of float64 or Predictive
    """
    if not isinstance(ood, Predictive):
        return checked_scores("ood", ood, len(predictive))
    is_class = isinstance(predictive, ClassificationPredictive)
    if isinstance(ood, ClassificationPredictive) != is_class or len(ood) == 0:
        raise InputTypeError(
            f"ood must be scores, one per row, or a predictive of foreign rows of the "
            f"same side as the other, {type(predictive).__name__}, with at least one "
            f"row. Got {type(ood).__name__} of {len(ood)} rows."
        )
    return ood


def foreign_section(subject: AnySubject) -> Section:
    """How strange rows look, and whether that goes with errors.

    Parameters
    ----------
    subject : RegressionSubject or ClassificationSubject
        With ``foreign``.

    Returns
    -------
    Section
    """
    if isinstance(subject.foreign, Predictive):
        finding, body = _of_rows(subject, subject.foreign)
    else:
        finding, body = _of_scores(subject, subject.foreign)
    question = "Does it meet rows it cannot know?"
    return Section("ood", "Out of distribution", question, finding, body)


def _of_rows(subject: AnySubject, foreign: Predictive) -> tuple[str, str]:
    strange = score_of(foreign, default_score(foreign))
    found = auroc(subject.scores, strange)
    sure = abs(found.value - 0.5) > 2.0 * found.error
    told = (
        "tells them apart better than chance"
        if sure and found.value > 0.5
        else "is lower for foreign rows: it cannot be used to notice them"
        if sure
        else "does not tell them apart by more than chance"
    )
    finding = (
        f"Of a familiar and a {term('out of distribution', 'foreign')} row, the "
        f"foreign one has the larger {subject.score_words} with "
        f"{percent(found.value)} ({term('AUROC')}, ± {percent(found.error)}): the "
        f"{subject.score_words} {told}."
    )
    return finding, _overlap(subject, strange, f"AUROC {found.value:.3f}.")


def _overlap(subject: AnySubject, strange: Array, told: str) -> str:
    """The scores of familiar rows, and those of foreign ones over them."""
    both = np.concatenate([subject.scores, strange])
    edges, _, beyond = histogram(both)
    shares = [np.histogram(v, edges)[0] / len(v) for v in (subject.scores, strange)]
    chart = Chart(
        "chart-ood",
        f"The {subject.score_words} of familiar and of foreign rows",
        told,
        Scale(float(edges[0]), float(edges[-1])),
        Scale.around(*shares, least=0.0, pad=0.08),
        subject.score_words,
        "share of rows",
        y_percent=True,
    )
    tips = [
        f"{number(float(a))} to {number(float(b))}: {p:.1%} of familiar, {q:.1%} of "
        f"foreign rows"
        for a, b, p, q in zip(edges[:-1], edges[1:], *shares, strict=True)
    ]
    chart.bars(edges, shares[0], "bar", tips)
    chart.outline(edges, shares[1], "foreign")
    signs = legend(("bar", "familiar rows"), ("foreign", "foreign rows"))
    caption = f"{count(len(strange), 'foreign row')}."
    if beyond:
        caption += f" {count(beyond, 'row')} beyond the right end."
    return grid(figure(chart, signs, caption))


def _of_scores(subject: AnySubject, scores: Array) -> tuple[str, str]:
    finite = np.isfinite(scores)
    link = _link(subject, scores)
    finding = (
        f"{term('out-of-distribution score', 'Out-of-distribution scores')} were given "
        f"for {count(len(scores), 'row')}. {link}"
    )
    edges, counts, beyond = histogram(scores)
    bars = Chart(
        "chart-ood",
        "How many rows have which out-of-distribution score",
        f"From {number(float(edges[0]))} to {number(float(edges[-1]))}.",
        Scale(float(edges[0]), float(edges[-1])),
        Scale.around(counts, least=0.0, pad=0.08),
        "out-of-distribution score",
        "rows",
    )
    bars.bars(edges, counts, "bar", range_tips(edges, counts))
    caption = "Further right is stranger."
    if beyond:
        caption += f" {count(beyond, 'row')} beyond the right end."
    parts = [figure(bars, "", caption)]
    if finite.any():
        parts.append(_error_figure(subject, scores[finite], subject.losses[finite]))
    return finding, grid(*parts)


def _error_figure(subject: AnySubject, scores: Array, losses: Array) -> str:
    groups = equal_groups(scores)
    n_rows = np.bincount(groups)
    place = np.bincount(groups, scores) / n_rows
    errors = [Estimate.of_mean(losses[groups == k]) for k in range(len(n_rows))]
    mean = np.array([e.value for e in errors])
    reach = np.array([2.0 * e.error if np.isfinite(e.error) else 0.0 for e in errors])
    is_rate = isinstance(subject, ClassificationSubject)
    chart = Chart(
        "chart-ood-error",
        f"The {subject.risk_words} against the out-of-distribution score",
        f"{len(n_rows)} groups of rows by score.",
        Scale.around(place),
        Scale.around(mean + reach, mean, least=0.0, pad=0.08),
        "out-of-distribution score",
        subject.risk_words,
        y_percent=is_rate,
    )
    chart.uprights(place, np.maximum(mean - reach, 0.0), mean + reach, "range")
    chart.dots(place, mean, "dot", 4.0)
    chart.tips(
        place,
        [
            f"{n:,} rows with a score of {number(p)}: {subject.risk_words} "
            f"{subject.risk(m)}"
            for n, p, m in zip(n_rows, place, mean, strict=True)
        ],
    )
    signs = legend(("dot", "group of rows"), ("band", "± 2 standard errors"))
    return figure(chart, signs, "A rise means that strange rows are answered worse.")


def _link(subject: AnySubject, scores: Array) -> str:
    """Whether strange rows are answered worse, in words."""
    if np.ptp(subject.losses) == 0.0 or np.unique(scores).size == 1:
        return "They, or the errors, are the same for all rows."
    if isinstance(subject, ClassificationSubject):
        wrong = subject.losses > 0.0
        found = auroc(scores[~wrong], scores[wrong])
        sure = abs(found.value - 0.5) > 2.0 * found.error
        return (
            f"A wrong answer has a higher score than a right one with "
            f"{percent(found.value)} ({term('AUROC')}, ± {percent(found.error)})"
            + ("." if sure else ": no more than chance.")
        )
    found = spearmanr(scores, subject.losses)
    sure = found.pvalue < 0.05
    tail = "." if sure else ": no more than chance."
    shown = number(float(found.statistic), 2)
    return f"Their {term('rank correlation')} with the error is {shown}{tail}"
