"""What is known of a batch beside its draws: closed forms, or more last masks."""

from collections.abc import Sequence
from functools import partial

from caveat.predictive import CategoricalPredictive, GaussianPredictive
from caveat.sampling.classes import Classified, ClassPicker
from caveat.sampling.endings import Ending, find_ending
from caveat.sampling.engine import Session
from caveat.sampling.gathering import FoundMoments, Part, Reading, Sampled
from caveat.sampling.outputs import Picker
from caveat.sampling.rewriting import without_writes
from caveat.sampling.tape import Ref

_READERS = 64  # of outputs, that are remembered


def reading_of(
    picker: Picker, session: Session, *, analytic: bool | None, saves_draws: bool
) -> Reading:
    """The draws of a regression, with closed forms where there are some."""
    if analytic is False:
        return Sampled(session, picker)
    at_any_cost = bool(analytic) or saves_draws
    # What is found once holds for all batches that are computed alike.
    memo = {} if session.way is None else session.way.template.memo
    closes = memo.setdefault("closed", {})
    known = (picker.output, at_any_cost)
    if closes.get(known) is False:
        return Sampled(session, picker)
    ending = _ending(session, picker)
    closed = None
    if ending is not None:
        from caveat.sampling.closed_form.readings import closed_reading

        closed = closed_reading(session, picker, ending, at_any_cost=at_any_cost)
    if len(closes) >= _READERS:  # a lambda written in the call is another in each
        closes.clear()
    closes[known] = closed is not None
    return Sampled(session, picker) if closed is None else closed


def class_reading_of(
    picker: ClassPicker, session: Session, *, analytic: bool | None, saves_draws: bool
) -> Reading:
    """The draws of a classification, with more last masks where they are cheap."""
    plain = picker.output is None and picker.kind in (None, "logits")
    if analytic is False or not plain:
        return Classified(session, picker)
    from caveat.sampling.last_masks import ANY, FREE, SAVED, last_masks_reading

    share = ANY if analytic else SAVED if saves_draws else FREE
    ending = partial(_ending, session, picker)
    found = last_masks_reading(session, picker, ending, share)
    return Classified(session, picker) if found is None else found


def _ending(session: Session, picker: Picker) -> Ending | None:
    """The end of the tape of the output that is read, if it is the usual one."""
    tape = session.tape
    if tape is None:
        return None
    position = picker.position(session.first_leaves, session.structure)
    if position is None:
        return None
    without_writes(tape)
    output = tape.outputs[position]
    return find_ending(tape, output.number) if isinstance(output, Ref) else None


def improved(drawn: GaussianPredictive, parts: Sequence[Part]) -> GaussianPredictive:
    """The predictive of draws, with closed forms if every batch has them."""
    known = [part.found for part in parts if isinstance(part.found, FoundMoments)]
    if len(known) < len(parts):
        return drawn
    from caveat.sampling.closed_form.readings import improved as with_moments

    return with_moments(drawn, known, [part.evidence for part in parts])


def improved_classes(
    drawn: CategoricalPredictive, parts: Sequence[Part]
) -> CategoricalPredictive:
    """The predictive of draws, with more last masks if every batch has them."""
    if any(part.found is None for part in parts):
        return drawn
    from caveat.sampling.last_masks import FoundClasses
    from caveat.sampling.last_masks import improved_classes as with_classes

    known = [part.found for part in parts if isinstance(part.found, FoundClasses)]
    return with_classes(drawn, known, [part.evidence for part in parts])
