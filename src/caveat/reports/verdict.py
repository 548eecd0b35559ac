"""The verdict: three sentences that say no more than the rows can show."""

from dataclasses import dataclass
from typing import final

import numpy as np

from caveat.evaluation.estimates import Array, Estimate
from caveat.reports.bands import mean_band, share_band, uniform_limit
from caveat.reports.deferred import Deferred
from caveat.reports.markup import count, percent, short, term
from caveat.reports.subject import (
    AnySubject,
    ClassificationSubject,
    RegressionSubject,
    ReportSubject,
    by_side,
)

HOLDS, CAUTION, FAILS, UNKNOWN = "holds", "caution", "fails", "unknown"
WORDS = {
    HOLDS: "Holds",
    CAUTION: "Caution",
    FAILS: "Does not hold",
    UNKNOWN: "Cannot tell",
}

SMALL = 0.02  # a gap of shares that changes no decision, however sure it is
WIDE = 0.2  # a band so wide that staying inside shows nothing
_PLACE = 0.05  # a gap at another level that is worth a word
_FEW = 5  # deferred rows below which their mean says nothing


@final
@dataclass(frozen=True)
class Sentence:
    """One sentence of the verdict.

    Attributes
    ----------
    state : str
        ``"holds"``, ``"caution"``, ``"fails"`` or ``"unknown"``.
    html : str
        What it says.
    """

    state: str
    html: str


def verdict_of(subject: AnySubject) -> list[Sentence]:
    """Whether uncertainty can be believed, how good answers are, what deferring buys.

    Parameters
    ----------
    subject : RegressionSubject or ClassificationSubject
        What is judged.

    Returns
    -------
    list of Sentence
        Three.
    """
    deferred = Deferred.of(subject.curve, 0.1)
    first = by_side(subject, interval_sentence, probability_sentence)
    second = by_side(subject, error_sentence, accuracy_sentence)
    return [first, second, deferral_sentence(subject, deferred)]


def interval_sentence(subject: RegressionSubject) -> Sentence:
    """Whether intervals hold what they promise."""
    n_rows, level = subject.coverage.n_rows, subject.level
    observed = subject.inside
    low, high = (float(v) for v in share_band(level, n_rows))
    name = "90 % interval" if level == 0.9 else "coverage"
    shown = f"{100 * level:.0f} % intervals"
    fact = (
        f"{percent(observed)} of {count(n_rows, 'observed value')} "
        f"{'lies' if n_rows == 1 else 'lie'} inside their {term(name, shown)} "
        f"({term('expected range', 'expected')}: {percent(low)} to {percent(high)})"
    )
    if observed < low:
        return _off(fact, level - observed, 1.0 - level, "narrow")
    if observed > high:
        return _off(fact, observed - level, 1.0 - level, "wide")
    if high - low > WIDE:
        return Sentence(
            UNKNOWN,
            f"{fact}, which fits, but so few rows cannot show whether the model is "
            f"{term('calibrated')}.",
        )
    elsewhere = _elsewhere(subject)
    if elsewhere:
        return Sentence(CAUTION, f"{fact}, as they should; {elsewhere}.")
    return Sentence(HOLDS, f"The stated uncertainty fits what happened: {fact}.")


def probability_sentence(subject: ClassificationSubject) -> Sentence:
    """Whether probabilities come true."""
    n_rows = subject.n_rows
    sure, right = float(subject.confidence.mean()), 1.0 - float(subject.losses.mean())
    low, high = mean_band(subject.confidence)
    fact = (
        f"It gives its answers a {term('confidence')} of {percent(sure)} on "
        f"average, and {percent(right)} of {count(n_rows, 'answer')} are right "
        f"({term('expected range', 'expected')}: {percent(low)} to {percent(high)})"
    )
    slack = 1e-9
    if right < low - slack:
        return _off(fact, sure - right, 1.0 - sure, "high")
    if right > high + slack:
        return _off(fact, right - sure, 1.0 - sure, "low")
    if high - low > WIDE:
        return Sentence(
            UNKNOWN,
            f"{fact}, which fits, but so few rows cannot show whether the model is "
            f"{term('calibrated')}.",
        )
    curve = subject.reliability
    excess = curve.ece.value - curve.ece_floor
    if excess > max(SMALL, 2.0 * curve.ece.error):
        return Sentence(
            CAUTION,
            f"{fact}; but not at every level of confidence: they lie "
            f"{percent(curve.ece.value)} apart on average ({term('ECE')}; chance alone "
            f"gives {percent(curve.ece_floor)}).",
        )
    opening = "The stated probabilities fit what happened"
    return Sentence(HOLDS, f"{opening}: {_lower(fact)}.")


def error_sentence(subject: RegressionSubject) -> Sentence:
    """How large errors are, beside those of no model at all."""
    centre = float(subject.observed.mean())
    plain = np.abs(subject.observed - centre)
    mean = float(subject.losses.mean())
    fact = (
        f"A prediction is off by {subject.risk(mean)} on average "
        f"({term('mean error')}) and its {100 * subject.level:.0f} % interval is "
        f"{subject.risk(subject.width.value)} wide"
    )
    other = (
        f"the same answer for every row would be off by {subject.risk(plain.mean())}"
    )
    return _against(fact, other, plain - subject.losses)


def accuracy_sentence(subject: ClassificationSubject) -> Sentence:
    """How many answers are right, beside those of no model at all."""
    right = 1.0 - subject.losses
    most = int(subject.counts.argmax())
    name = short(subject.classes[most], 40)
    fact = (
        f"{percent(float(right.mean()))} of the answers are right ({term('accuracy')})"
    )
    if subject.counts[most] == subject.n_rows:
        return Sentence(
            UNKNOWN,
            f"{fact}, but all rows are of one class, “{name}”, so that this says "
            f"little about the model.",
        )
    plain = (subject.labels == most).astype(np.float64)
    other = (
        f"always answering “{name}” would be right for {percent(float(plain.mean()))}"
    )
    return _against(fact, other, right - plain)


def deferral_sentence(subject: ReportSubject, deferred: Deferred) -> Sentence:
    """What is gained by handing the least certain rows to a person."""
    curve = subject.curve
    if deferred.before == 0.0:
        return Sentence(
            UNKNOWN,
            f"There is no error among {count(subject.n_rows, 'row')}, so that handing "
            f"rows to a person cannot gain anything here.",
        )
    if len(curve.thresholds) == 1 and subject.n_rows > 1:
        return Sentence(
            FAILS,
            "The model is equally sure of all rows, so it cannot say which of them to "
            "hand to a person.",
        )
    if deferred.n_deferred < _FEW:
        return Sentence(
            UNKNOWN,
            f"Too few rows to say what handing the least certain 10 % to a person "
            f"buys: that is {count(deferred.n_deferred, 'row')} here.",
        )
    return _gain_sentence(subject, deferred)


def _gain_sentence(subject: ReportSubject, deferred: Deferred) -> Sentence:
    change = (
        f"the {term(subject.risk_words)} of the rest from "
        f"{subject.risk(deferred.before)} to {subject.risk(deferred.after)}"
    )
    who = (
        f"Handing the least certain {percent(deferred.n_deferred / subject.n_rows)} "
        f"({count(deferred.n_deferred, 'row')}) to a person"
    )
    if deferred.is_shown:
        return Sentence(
            HOLDS, f"{who} lowers {change}, {percent(deferred.gain, 0)} less."
        )
    if deferred.is_reversed:
        return Sentence(
            FAILS,
            f"{who} raises {change}: the rows it is least sure of are its better "
            f"ones, so do not choose rows by it.",
        )
    return Sentence(
        CAUTION,
        f"{who} changes {change}, no more than chance may do: its doubt is not shown "
        f"to tell good answers from bad ones.",
    )


def _off(fact: str, gap: float, promised: float, how: str) -> Sentence:
    """Outside of what chance explains: by little, or by much.

    ``promised`` is the share of failures that the model foresees; a gap is little if
    it is small beside that, too.
    """
    name = "overconfident" if how in ("narrow", "high") else "underconfident"
    if gap <= min(SMALL, 0.5 * promised):
        return Sentence(
            CAUTION,
            f"{fact}: slightly {term(name)}, measurable on so many rows but too little "
            f"to change a decision.",
        )
    which = "Intervals" if how in ("narrow", "wide") else "Probabilities"
    state = FAILS if name == "overconfident" else CAUTION
    return Sentence(
        state, f"The model is {term(name)}: {_lower(fact)}. {which} are too {how}."
    )


def _lower(fact: str) -> str:
    """A sentence as it goes on after a colon."""
    return fact[:1].lower() + fact[1:]


def _elsewhere(subject: RegressionSubject) -> str:
    """Where intervals of another level are off, although these are right."""
    curve = subject.coverage
    gaps = curve.observed - curve.levels
    place = int(np.abs(gaps).argmax())
    if abs(gaps[place]) <= max(_PLACE, uniform_limit(curve.n_rows)):
        return ""
    return (
        f"but those of {100 * curve.levels[place]:.0f} % hold "
        f"{percent(float(curve.observed[place]))}, so other levels are not to be "
        f"trusted"
    )


def _against(fact: str, other: str, better: Array) -> Sentence:
    """A fact beside the baseline; ``better`` is the advantage, row by row."""
    gain = Estimate.of_mean(better)
    base = term("baseline", "baseline")
    if gain.value > 2.0 * gain.error:
        return Sentence(HOLDS, f"{fact}; {other} ({base}).")
    if gain.value < -2.0 * gain.error:
        return Sentence(
            FAILS, f"{fact}; {other} ({base}): the model is worse than none."
        )
    rows = f"{count(len(better), 'row')} {'does' if len(better) == 1 else 'do'}"
    return Sentence(
        CAUTION, f"{fact}; {other} ({base}): {rows} not show that the model is better."
    )
