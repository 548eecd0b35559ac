"""A call of a method of MCDropout: from what was given to the draws of all batches."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, final

from torch import Tensor, nn

from caveat import _validation as check
from caveat._progress import ProgressBar
from caveat.errors import ParameterError, ShapeError
from caveat.predictive.strata import Stratification
from caveat.sampling.engine import Sampler, Session
from caveat.sampling.gathering import Gathering, Part, Reading, Rounds, at_once
from caveat.sampling.given import given_inputs
from caveat.sampling.inputs import Batch, telling
from caveat.sampling.names import check_names
from caveat.sampling.shelf import Shelf
from caveat.sampling.sources import Batches, source_of
from caveat.sampling.warm import WarmCalls

_ROWS_AT_ONCE = 10_000  # of a call without batch_size: more is slower, not faster


class Call(NamedTuple):
    """What a method was called with: the model's inputs, and how to run them."""

    method: str
    inputs: tuple[Any, ...]
    kwinputs: dict[str, Any]
    batch_size: int | None
    progress: bool | None
    has_labels: bool = False
    automatic: bool = False  # batch_size was not asked for


@final
@dataclass(frozen=True)
class Caller:
    """Runs the calls of a model.

    Attributes
    ----------
    sampler : Sampler
    axis : int
        The axis of the inputs that holds the rows.
    warm : WarmCalls
        The kinds of calls that were met.
    """

    sampler: Sampler
    axis: int
    warm: WarmCalls

    @property
    def _model(self) -> nn.Module:
        return self.sampler.model

    def split(self, call: Call) -> Call:
        """The same call; many independent rows are split if nobody said how."""
        if call.batch_size is not None or not self._are_many(call.inputs):
            return call
        split = call._replace(batch_size=_ROWS_AT_ONCE, automatic=True)
        session = self.session(split, next(iter(self.source(split))))
        return split if self._mixing(session) is None else call

    def _are_many(self, inputs: tuple[Any, ...]) -> bool:
        first = inputs[0] if inputs else None
        if getattr(first, "is_nested", False):
            return False
        shape = getattr(first, "shape", ())
        is_array = (
            isinstance(first, Tensor)
            or hasattr(first, "to_numpy")
            or (type(first).__module__ == "numpy")
        )
        return (
            is_array
            and len(shape) > self.axis
            and (shape[self.axis] > 2 * _ROWS_AT_ONCE)
        )

    def source(self, call: Call) -> Batches:
        """Its batches."""
        batch_size = call.batch_size
        check_names(call.method, self._model, call.kwinputs)
        if batch_size is not None:
            batch_size = check.positive_int("batch_size", batch_size)
        inputs, kwinputs = given_inputs(
            self._model, call.inputs, call.kwinputs, has_labels=call.has_labels
        )
        return source_of(
            inputs,
            kwinputs,
            axis=self.axis,
            batch_size=batch_size,
            model=self._model,
        )

    def bar(self, call: Call, source: Batches, n_draws: int) -> ProgressBar:
        """The bar of a call of so many draws."""
        total = None if source.several or source.passes_once else n_draws
        return ProgressBar("draws", total, call.progress)

    def session(self, call: Call, batch: Batch) -> Session:
        """Ready to draw for a batch."""
        name = type(self._model).__name__
        with telling(batch, self._model):
            session = self.sampler.session(batch)
        if call.method != "draws" and batch.is_flat and session.rows_mix:
            outputs = [v for v in session.first_leaves if isinstance(v, Tensor)]
            if all(batch.rows not in v.shape[:1] for v in outputs):
                raise ShapeError(_one_case(name, call.method, batch.rows))
        if call.batch_size is not None and not call.automatic:
            if (words := self._mixing(session)) is not None:
                raise ParameterError(words(name, call.batch_size, batch.axis))
        return session

    @staticmethod
    def _mixing(session: Session) -> Callable[[str, int, int], str] | None:
        """What stands against splitting the rows, in words; None if nothing does."""
        found = session.output_layouts
        if session.rows_mix or (found and not any(found)):
            return _mixed
        if any(layout and not layout.rows_first for layout in found):
            return _folded
        return None

    def gathered(
        self,
        call: Call,
        rounds: Rounds,
        read: Callable[[Session], Reading],
        accumulator: Callable[[Stratification | None], Any],
        *,
        keep_draws: bool,
        precision: float | Tensor | None = None,
    ) -> tuple[list[Part], Tensor | None]:
        """What is left of each batch, and all draws if they are kept."""
        call = self.split(call)
        if keep_draws is True and (warm := self._warm_session(call, rounds)):
            part, draws = at_once(read(warm), rounds.n_draws)
            return [part], draws
        source, shelf = self.source(call), None
        if check.boolean("keep_draws", keep_draws):
            known = rounds.n_draws if rounds.tolerance is None else None
            shelf = Shelf(n_draws=known, several=source.several)

        def reading(batch: Batch) -> Reading:
            found = read(self._noted(call, batch))
            if source.several and batch.first_row == 0:
                found.require_rows()
            return found

        with self.bar(call, source, rounds.n_draws) as bar:
            parts = Gathering(
                reading,
                rounds,
                accumulator,
                bar,
                precision,
                shelf,
            ).gather(source)
        return parts, None if shelf is None else shelf.whole(parts[0].n_draws)

    def _warm_session(self, call: Call, rounds: Rounds) -> Session | None:
        """The session of a call like earlier ones, whose draws are one block."""
        if call.batch_size is not None or call.has_labels or rounds.tolerance:
            return None
        session = self.warm.session(self.sampler, call.inputs, call.kwinputs)
        way = None if session is None else session.way
        return session if way and rounds.n_draws <= way.replay.at_once else None

    def _noted(self, call: Call, batch: Batch) -> Session:
        session = self.session(call, batch)
        if call.batch_size is None and not call.has_labels:
            self.warm.note(self.sampler, call.inputs, call.kwinputs, session)
        return session


def _one_case(name: str, method: str, rows: int) -> str:
    return (
        f"{method} needs inputs with rows. Got a single axis of {rows} numbers, and "
        f"the output of {name} has no axis of {rows}: it takes them for one case. Pass "
        f"x[None] for that."
    )


def _mixed(name: str, batch_size: int, axis: int) -> str:
    return (
        f"batch_size={batch_size} would change the predictions: the rows of {name} are "
        f"not independent of each other on axis {axis}. Leave batch_size out, or if "
        f"another axis is the batch, say MCDropout(model, batch_dim=...)."
    )


def _folded(name: str, batch_size: int, axis: int) -> str:
    return (
        f"batch_size={batch_size} would change the order of the output: {name} puts "
        f"several results of each row on one axis, rows last. Leave batch_size out."
    )
