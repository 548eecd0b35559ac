"""MCDropout: the front door. A model in, a predictive distribution out."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any, NamedTuple, ParamSpec, Self, TypeVar

import torch
from torch import Tensor, nn

from caveat import _validation as check
from caveat._progress import ProgressBar
from caveat._random import Seed, as_seed
from caveat.errors import InputTypeError, ParameterError, ShapeError
from caveat.predictive import (
    CategoricalAccumulator,
    CategoricalPredictive,
    GaussianAccumulator,
    GaussianPredictive,
    MomentPredictive,
)
from caveat.predictive.joining import by_rows, of_rows, together
from caveat.predictive.strata import Stratification
from caveat.sampling.arguments import call_batch
from caveat.sampling.calibrating import check_fit, fitted_precision
from caveat.sampling.classes import Classified, ClassPicker
from caveat.sampling.endings import Ending, find_ending
from caveat.sampling.engine import Sampler, Session
from caveat.sampling.gathering import (
    MAX_DRAWS,
    FoundMoments,
    Gathering,
    Part,
    Reading,
    Rounds,
    Sampled,
    at_once,
)
from caveat.sampling.given import given_inputs
from caveat.sampling.inputs import Batch, check_model, telling
from caveat.sampling.names import check_names
from caveat.sampling.outputs import Output, Picker, check_nan
from caveat.sampling.rewriting import without_writes
from caveat.sampling.shelf import Shelf
from caveat.sampling.sources import Batches, source_of
from caveat.sampling.stacks import Stacks
from caveat.sampling.tape import Ref
from caveat.sampling.warm import WarmCalls

_NO_PRECISION = """regress needs precision=tau, the inverse variance of the noise in y
(paper 001, eq. 12): the predictive variance is 1/tau plus the spread of the draws.
If the noise has standard deviation s in the units of y, pass precision=1/s**2. To have
it fitted on rows that trained nothing: precision="fit", calibration=(x_cal, y_cal)."""

FIT = "fit"  # a precision that calibration rows tell
_ROWS_AT_ONCE = 10_000  # of a call without batch_size: more is slower, not faster


_P = ParamSpec("_P")
_R = TypeVar("_R")


def _explained(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """A precision that is missing gets more words than Python has for it."""

    @wraps(method)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        if kwargs.get("precision") is None:
            raise InputTypeError(_NO_PRECISION)
        return method(*args, **kwargs)

    return call


class _Call(NamedTuple):
    """What a method was called with: the model's inputs, and how to run them."""

    method: str
    inputs: tuple[Any, ...]
    kwinputs: dict[str, Any]
    batch_size: int | None
    progress: bool | None
    has_labels: bool = False
    automatic: bool = False  # batch_size was not asked for


@dataclass(frozen=True)
class FunctionDraw:
    """One draw of ω: a deterministic function of the input, y(x, ω).

    Called like the model; gradients flow if they are enabled.
    """

    number: int
    _sampler: Sampler
    _axis: int

    def __call__(self, *inputs: Any, **kwinputs: Any) -> Any:
        model = self._sampler.model
        check_names("a draw", model, kwinputs)
        args, kwargs = given_inputs(model, inputs, kwinputs)
        batch = call_batch(model, args, dict(kwargs), axis=self._axis)
        above = torch.is_grad_enabled()
        with telling(batch, model):
            return self._sampler.one_pass(batch, self.number, above_autograd=above)

    def __repr__(self) -> str:
        name = type(self._sampler.model).__name__
        return f"<draw {self.number} of {name}, seed {self._sampler.seed}>"


class MCDropout:
    """Predictive distributions of a network trained with dropout.

    The model is never changed: not its weights, buffers, flags or hooks, nor the state
    of any random generator. Draws depend on the seed and their number alone, not on
    the batch, its order or the threads.

    Parameters
    ----------
    model : nn.Module
        A trained network that draws noise somewhere: dropout in any form, or another
        random operation. Its mode does not matter.
    seed : int, torch.Generator or None
        Fixes ω₀, ω₁, …; None takes fresh entropy, once.
    shared : bool
        True: one ω per draw for all rows, so that a draw is a function. False: each
        row has noise of its own.
    stratified : bool
        True: in every 64 draws a unit is dropped as often as its rate says, so that
        means and class probabilities need fewer draws; each draw alone is what it is
        without. False: draws are independent of each other (:meth:`independent`).
    batch_dim : int
        The axis of the inputs that holds the rows.
    analytic : bool, optional
        For networks that end in noise and a linear layer: closed forms in
        :meth:`regress`, several last masks for each draw in :meth:`classify`. By
        default they are used where they are exact, where they cost next to nothing,
        and with a ``tolerance``. True: wherever possible. False: never.

    Examples
    --------
    >>> import torch, caveat
    >>> from torch import nn
    >>> net = nn.Sequential(nn.Linear(1, 9), nn.Dropout(0.1), nn.Linear(9, 1))
    >>> mc = caveat.MCDropout(net, seed=0)
    >>> predictive = mc.regress(torch.zeros(3, 1), n_draws=200, precision=4.0)
    >>> predictive.mean.shape, predictive.n_draws
    (torch.Size([3, 1]), 200)
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        seed: Seed = None,
        shared: bool = True,
        stratified: bool = True,
        batch_dim: int = 0,
        analytic: bool | None = None,
    ) -> None:
        self._sampler = Sampler(
            check_model(model),
            as_seed(seed),
            check.boolean("shared", shared),
            check.boolean("stratified", stratified),
        )
        self._axis = check.axis("batch_dim", batch_dim)
        self._warm = WarmCalls(self._axis)
        if analytic is not None:
            analytic = check.boolean("analytic", analytic)
        self._analytic = analytic

    @property
    def model(self) -> nn.Module:
        """The model, as it was given."""
        return self._sampler.model

    @property
    def seed(self) -> int:
        """The seed of all draws."""
        return self._sampler.seed

    def __repr__(self) -> str:
        masks = "shared by rows" if self._sampler.shared else "per row"
        masks += "" if self._sampler.stratified else ", independent draws"
        return (
            f"MCDropout({type(self.model).__name__}, seed={self.seed}, masks {masks})"
        )

    def independent(self) -> Self:
        """The same with draws that are independent of each other.

        Stratified draws are slightly negatively dependent within blocks of 64, which
        is what makes their mean so exact. Decisions that take a draw each, as in
        Thompson sampling, need independent ones; ``caveat.decisions`` asks for them by
        this method.
        """
        return self._with(stratified=False)

    def with_seed(self, seed: Seed) -> Self:
        """The same model with the draws of another seed.

        What was learned of the model is shared, so this costs nothing.
        """
        return self._with(seed=as_seed(seed))

    def _with(self, **changes: Any) -> Self:
        found = copy(self)
        found._sampler = replace(self._sampler, **changes)
        return found

    def function(self, number: int) -> FunctionDraw:
        """Draw ``number`` as a function: ``draws(x)[t]`` equals ``function(t)(x)``."""
        return FunctionDraw(check.draw_number(number), self._sampler, self._axis)

    def draws(
        self,
        *inputs: Any,
        n_draws: int = 100,
        batch_size: int | None = None,
        progress: bool | None = None,
        has_labels: bool = False,
        **kwinputs: Any,
    ) -> Any:
        """Raw outputs of the model, draws first.

        Parameters
        ----------
        *inputs, **kwinputs
            What the model is called with; numpy arrays, data frames, their columns
            and lists of numbers are turned into tensors, and one dict or
            ``BatchEncoding`` of the model's arguments into keywords. A
            single iterable (``DataLoader``, list, generator) gives one batch an item:
            a tensor, a tuple of positional arguments or a dict of keywords; a
            ``Dataset`` gives rows. Which arguments have rows is found out; those for
            all rows may come in any place. A list that the model itself takes is
            passed by its name.
        n_draws : int
            T of the papers.
        batch_size : int, optional
            Rows to run at a time; by default 10,000 where there are more than twice as
            many and they are independent, all at once otherwise; of a ``Dataset``, 256.
        progress : bool, optional
            Show a bar; by default on a terminal, when it takes more than a second.
        has_labels : bool
            The batches of a loader, or the rows of a data set, are (x, y): what comes
            last, or is called ``labels``, is left out.

        Returns
        -------
        Tensor or structure of tensors
            Shape (draws, batch, *event). Dicts, tuples, dataclasses and their like
            keep their structure; what is not a tensor is as in the first draw.
        """
        n_draws = check.positive_int("n_draws", n_draws)
        call = self._call("draws", inputs, kwinputs, batch_size, progress, has_labels)
        source = self._source(call)
        with self._bar(call, source, n_draws) as bar:
            stacks = Stacks(n_draws, several=source.several)
            for number, batch in enumerate(source):
                stacks.add(number, batch, self._session(call, batch), bar)
        return stacks.whole()

    @_explained
    def regress(  # noqa: PLR0913, a door: all but the inputs by name
        self,
        *inputs: Any,
        precision: Any,
        calibration: tuple[Any, Any] | None = None,
        n_draws: int = 100,
        output: Output | None = None,
        keep_draws: bool = True,
        tolerance: float | None = None,
        max_draws: int = MAX_DRAWS,
        batch_size: int | None = None,
        progress: bool | None = None,
        has_labels: bool = False,
        **kwinputs: Any,
    ) -> GaussianPredictive:
        """The predictive distribution of a regression (paper 001, eqs 10-13).

        If the network ends in noise and a linear layer, mean, variance and covariance
        may come from closed forms instead of the draws (docs/moments.md); ``method``
        of the result says so. Density and quantiles always come from the draws.

        Parameters
        ----------
        *inputs, **kwinputs
            As for :meth:`draws`.
        precision : float, Tensor or ``"fit"``
            τ, the inverse variance of the observation noise in the units of y; one
            number, or one per output. ``"fit"`` takes the one under which
            ``calibration`` is most probable (eq. 13).
        calibration : pair (x, y), optional
            Inputs and observations that trained nothing, for ``precision="fit"``. The
            ``precision`` of the result is what was found.
        n_draws : int
            T of the papers.
        output : callable, optional
            Picks the tensor of shape (batch, *event) from what the model returns.
        keep_draws : bool
            False keeps only moments: little memory, but no densities, and intervals of
            a Gaussian, with a warning.
        tolerance : float, optional
            Draw until the Monte Carlo error of every mean is below this fraction of
            the predictive standard deviation, instead of ``n_draws``; at most
            ``max_draws``. All rows get as many draws, and the result says how many.
            Only in a stream (a loader, a generator, a ``Dataset``) whose draws are not
            kept each batch stops for itself, as it is gone when the next one comes:
            ``n_draws`` is then the smallest number. With ``keep_draws`` the inputs of
            a stream stay in memory until all have enough.
        max_draws : int
            The cap for ``tolerance``.
        batch_size, progress, has_labels
            As for :meth:`draws`.
        """
        if isinstance(precision, str):
            check_fit(precision, calibration)
            held_out = partial(self.regress, n_draws=n_draws, output=output)
            precision = fitted_precision(held_out, calibration)
        elif calibration is not None:
            raise ParameterError(
                "calibration is for precision='fit'. Got both it and a precision; "
                "leave one of them out."
            )
        tau, picker = check.plain_precision(precision), Picker("regress", output)
        rounds = Rounds(n_draws, tolerance, max_draws)
        call = self._call("regress", inputs, kwinputs, batch_size, progress, has_labels)
        parts, draws = self._gathered(
            call,
            rounds,
            partial(self._reading, picker, saves_draws=tolerance is not None),
            partial(GaussianAccumulator, tau, False, covariance=not keep_draws),
            keep_draws=keep_draws,
            precision=tau,
        )
        if draws is None:
            drawn = together([part.result for part in parts])
        else:
            drawn = by_rows(draws, partial(_gaussian, tau, draws))
            if (design := parts[0].design) is not None:
                drawn = drawn.stratified(design)
        return _improved(drawn, parts)

    def classify(  # noqa: PLR0913, as regress
        self,
        *inputs: Any,
        n_draws: int = 100,
        output: Output | str | None = None,
        class_dim: int | None = None,
        keep_draws: bool = True,
        tolerance: float | None = None,
        max_draws: int = MAX_DRAWS,
        batch_size: int | None = None,
        progress: bool | None = None,
        has_labels: bool = False,
        **kwinputs: Any,
    ) -> CategoricalPredictive:
        """The predictive distribution of a classification.

        If the network ends in noise and a linear layer, probabilities and entropies
        may be averaged over several last masks for each draw, which costs little;
        ``method`` of the result says so.

        Parameters
        ----------
        *inputs, **kwinputs
            As for :meth:`draws`.
        output : callable or str, optional
            Picks the logits from what the model returns; or says what that is:
            ``"logits"``; ``"probs"``, after a softmax; ``"logit"``, one number per row
            of shape (batch,) or (batch, 1), of class 1 against class 0; ``"sigmoid"``,
            its sigmoid. Without it they are logits, unless all rows sum to 1 or come
            from a sigmoid, which is an error. Of probabilities that must be picked,
            pick the logarithm.
        class_dim : int, optional
            The axis of the classes in what the model returns, as 1 in (batch, classes,
            height, width). It must be given for outputs of more than two axes, but for
            outputs of transformers that say it by their kind. In the answer classes
            are always last.
        tolerance : float, optional
            As for :meth:`regress`, as a fraction of √(p(1-p)) of each class.
        n_draws, keep_draws, max_draws, batch_size, progress, has_labels
            As for :meth:`regress`.

        Returns
        -------
        CategoricalPredictive
        """
        picker = ClassPicker.of("classify", output, class_dim)
        parts, logits = self._gathered(
            self._call("classify", inputs, kwinputs, batch_size, progress, has_labels),
            Rounds(n_draws, tolerance, max_draws),
            partial(self._class_reading, picker, saves_draws=tolerance is not None),
            partial(CategoricalAccumulator, self.seed, False),
            keep_draws=keep_draws,
        )
        if logits is None:
            return _improved_classes(together([part.result for part in parts]), parts)
        logits = check.logits(logits)
        averaged = CategoricalPredictive.averaged
        found = by_rows(logits, lambda rows: averaged(of_rows(logits, rows)))
        found = found.counted(self.seed).stratified(parts[0].design)
        return _improved_classes(found, parts)

    def moments(
        self,
        *inputs: Any,
        precision: Any = None,
        correlated: bool = False,
        output: Output | None = None,
        batch_size: int | None = None,
        **kwinputs: Any,
    ) -> MomentPredictive:
        """Mean and variance of the output over the noise, without sampling.

        Exact if nothing but linear maps follows the noise, as in a network with dropout
        before its last layer only. Otherwise means and variances are carried from layer
        to layer, in about the time of two passes: an approximation that takes what
        enters a non-linearity as Gaussian. ``method`` of the result says which.
        docs/moments.md tells how large its error is.

        Parameters
        ----------
        *inputs, **kwinputs
            As for :meth:`draws`.
        precision : float or Tensor, optional
            τ, the inverse variance of the observation noise in the units of y; without
            one, mean and variance are those of the output of the network.
        correlated : bool
            Keep the covariances between the units of a layer: exact for networks of
            linear layers with noise anywhere, and closer for others, but slower (by
            the width of the layers), and for linear layers only. Without it, units
            are taken as independent.
        output : callable, optional
            Picks the tensor of shape (batch, *event) from what the model returns.
        batch_size : int, optional
            Rows to run at a time.

        Returns
        -------
        MomentPredictive
            Its density and quantiles are those of a Gaussian with these moments;
            ``.class_probs`` is for logits.

        Raises
        ------
        UnsupportedModelError
            If the model has a part that no rule covers; the message names it.
        """
        from caveat.sampling.closed_form.moments import moments_of  # few need it

        picker = Picker("moments", output)
        call = _Call("moments", inputs, kwinputs, batch_size, False)
        name = type(self.model).__name__
        parts = []
        for batch in self._source(call):
            session = self._session(call, batch)
            first = picker.pick(session.first_leaves, session.structure)
            check_nan([first], batch, 0)
            parts.append(moments_of(session, picker, name, correlated=correlated))
        found = parts[0] if len(parts) == 1 else MomentPredictive.concatenate(parts)
        return found if precision is None else found.with_precision(precision)

    # ------------------------------------------------------------ private

    def _call(
        self,
        method: str,
        inputs: tuple[Any, ...],
        kwinputs: dict[str, Any],
        batch_size: int | None,
        progress: bool | None,
        has_labels: bool,
    ) -> _Call:
        """What was asked for; many independent rows are split if nobody said how."""
        whole = _Call(method, inputs, kwinputs, batch_size, progress, has_labels)
        if batch_size is not None or not self._are_many(inputs):
            return whole
        split = whole._replace(batch_size=_ROWS_AT_ONCE, automatic=True)
        session = self._session(split, next(iter(self._source(split))))
        return split if self._mixing(session) is None else whole

    def _are_many(self, inputs: tuple[Any, ...]) -> bool:
        first = inputs[0] if inputs else None
        shape = getattr(first, "shape", ())
        is_array = (
            isinstance(first, Tensor)
            or hasattr(first, "to_numpy")
            or (type(first).__module__ == "numpy")
        )
        return (
            is_array
            and len(shape) > self._axis
            and (shape[self._axis] > 2 * _ROWS_AT_ONCE)
        )

    def _source(self, call: _Call) -> Batches:
        batch_size = call.batch_size
        check_names(call.method, self.model, call.kwinputs)
        if batch_size is not None:
            batch_size = check.positive_int("batch_size", batch_size)
        inputs, kwinputs = given_inputs(
            self.model, call.inputs, call.kwinputs, has_labels=call.has_labels
        )
        return source_of(
            inputs,
            kwinputs,
            axis=self._axis,
            batch_size=batch_size,
            model=self.model,
        )

    def _bar(self, call: _Call, source: Batches, n_draws: int) -> ProgressBar:
        total = None if source.several or source.passes_once else n_draws
        return ProgressBar("draws", total, call.progress)

    def _session(self, call: _Call, batch: Batch) -> Session:
        """Ready to draw for a batch."""
        name = type(self.model).__name__
        with telling(batch, self.model):
            session = self._sampler.session(batch)
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

    def _gathered(
        self,
        call: _Call,
        rounds: Rounds,
        read: Callable[[Session], Reading],
        accumulator: Callable[[Stratification | None], Any],
        *,
        keep_draws: bool,
        precision: float | Tensor | None = None,
    ) -> tuple[list[Part], Tensor | None]:
        """What is left of each batch, and all draws if they are kept."""
        if keep_draws is True and (warm := self._warm_session(call, rounds)):
            part, draws = at_once(read(warm), rounds.n_draws)
            return [part], draws
        source, shelf = self._source(call), None
        if check.boolean("keep_draws", keep_draws):
            known = rounds.n_draws if rounds.tolerance is None else None
            shelf = Shelf(n_draws=known, several=source.several)
        with self._bar(call, source, rounds.n_draws) as bar:
            parts = Gathering(
                lambda batch: read(self._noted(call, batch)),
                rounds,
                accumulator,
                bar,
                precision,
                shelf,
            ).gather(source)
        return parts, None if shelf is None else shelf.whole(parts[0].n_draws)

    def _warm_session(self, call: _Call, rounds: Rounds) -> Session | None:
        """The session of a call like earlier ones, whose draws are one block."""
        if call.batch_size is not None or call.has_labels or rounds.tolerance:
            return None
        session = self._warm.session(self._sampler, call.inputs, call.kwinputs)
        way = None if session is None else session.way
        return session if way and rounds.n_draws <= way.replay.at_once else None

    def _noted(self, call: _Call, batch: Batch) -> Session:
        session = self._session(call, batch)
        if call.batch_size is None and not call.has_labels:
            self._warm.note(self._sampler, call.inputs, call.kwinputs, session)
        return session

    def _reading(
        self, picker: Picker, session: Session, *, saves_draws: bool
    ) -> Reading:
        """The draws of a regression, with closed forms where there are some."""
        if self._analytic is False:
            return Sampled(session, picker)
        at_any_cost = bool(self._analytic) or saves_draws
        # What is found once holds for all batches that are computed alike.
        memo = {} if session.way is None else session.way.template.memo
        known = ("closed", picker.output, at_any_cost)
        if memo.get(known) is False:
            return Sampled(session, picker)
        ending = _ending(session, picker)
        closed = None
        if ending is not None:
            from caveat.sampling.closed_form.readings import closed_reading

            closed = closed_reading(session, picker, ending, at_any_cost=at_any_cost)
        memo[known] = closed is not None
        return Sampled(session, picker) if closed is None else closed

    def _class_reading(
        self, picker: ClassPicker, session: Session, *, saves_draws: bool
    ) -> Reading:
        """The draws of a classification, with more last masks where they are cheap."""
        plain = picker.output is None and picker.kind in (None, "logits")
        if self._analytic is False or not plain:
            return Classified(session, picker)
        from caveat.sampling.last_masks import ANY, FREE, SAVED, last_masks_reading

        share = ANY if self._analytic else SAVED if saves_draws else FREE
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


def _improved(drawn: GaussianPredictive, parts: Sequence[Part]) -> GaussianPredictive:
    """The predictive of draws, with closed forms if every batch has them."""
    known = [part.found for part in parts if isinstance(part.found, FoundMoments)]
    if len(known) < len(parts):
        return drawn
    from caveat.sampling.closed_form.readings import improved

    return improved(drawn, known, parts[0].evidence)


def _improved_classes(
    drawn: CategoricalPredictive, parts: Sequence[Part]
) -> CategoricalPredictive:
    """The predictive of draws, with more last masks if every batch has them."""
    if any(part.found is None for part in parts):
        return drawn
    from caveat.sampling.last_masks import FoundClasses, improved_classes

    known = [part.found for part in parts if isinstance(part.found, FoundClasses)]
    return improved_classes(drawn, known, parts[0].evidence)


def _gaussian(tau: float | Tensor, draws: Tensor, rows: slice) -> GaussianPredictive:
    """The predictive of some rows of the draws."""
    if isinstance(tau, Tensor) and tau.dim():
        tau = check.precision_for(tau, draws[0])[rows]
    return GaussianPredictive.from_draws(of_rows(draws, rows), precision=tau)


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
