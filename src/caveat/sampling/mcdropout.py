"""MCDropout: the front door. A model in, a predictive distribution out."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial, wraps
from itertools import islice
from typing import Any, NamedTuple, ParamSpec, Self, TypeVar

import torch
from torch import Tensor, nn

from caveat import _validation as check
from caveat._progress import ProgressBar
from caveat._random import Seed, as_seed
from caveat._torch import pytree
from caveat.errors import InputTypeError, ParameterError, ShapeError
from caveat.predictive import (
    CategoricalAccumulator,
    CategoricalPredictive,
    GaussianAccumulator,
    GaussianPredictive,
    MomentPredictive,
)
from caveat.sampling.endings import Ending, find_ending
from caveat.sampling.engine import Sampler, Session
from caveat.sampling.gathering import (
    MAX_DRAWS,
    FoundMoments,
    Gathering,
    Reading,
    Rounds,
    Sampled,
    gather,
    keep,
)
from caveat.sampling.inputs import Batch, batches_of, check_model
from caveat.sampling.outputs import Output, Picker
from caveat.sampling.rewriting import without_writes
from caveat.sampling.tape import Ref

_NO_PRECISION = """regress needs precision=tau, the inverse variance of the noise in y
(paper 001, eq. 12): the predictive variance is 1/tau plus the spread of the draws.
If the noise has standard deviation s in the units of y, pass precision=1/s**2."""


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

    inputs: tuple[Any, ...]
    kwinputs: dict[str, Any]
    batch_size: int | None
    progress: bool | None


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
        batch = Batch.of(inputs, kwinputs, axis=self._axis, model=model)
        above = torch.is_grad_enabled()
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
        Closed forms in :meth:`regress` for networks that end in noise and a linear
        layer. By default they are used where they are exact, where they cost next to
        nothing, and with a ``tolerance``. True: wherever possible. False: never.

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
            check_model(model), as_seed(seed), bool(shared), bool(stratified)
        )
        self._axis = check.draw_number(batch_dim)
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
        found = copy(self)
        found._sampler = replace(self._sampler, stratified=False)
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
        **kwinputs: Any,
    ) -> Any:
        """Raw outputs of the model, draws first.

        Parameters
        ----------
        *inputs, **kwinputs
            What the model is called with; numpy arrays are turned into tensors. A
            single iterable (``DataLoader``, list, generator) gives one batch an item.
        n_draws : int
            T of the papers.
        batch_size : int, optional
            Rows to run at a time.
        progress : bool, optional
            Show a bar; by default on a terminal, when it takes more than a second.

        Returns
        -------
        Tensor or structure of tensors
            Shape (draws, batch, *event). Dicts, tuples and dataclasses keep their
            structure; what is not a tensor is as in the first draw.
        """
        n_draws = check.positive_int("n_draws", n_draws)
        parts: list[list[Any]] = []
        structure = None
        call = _Call(inputs, kwinputs, batch_size, progress)
        for session, bar in self._sessions(call, n_draws):
            parts.append(_stacked(session, n_draws, bar))
            structure = session.structure
        assert structure is not None
        leaves = [_joined(leaf) for leaf in zip(*parts, strict=True)]
        return pytree.tree_unflatten(leaves, structure)

    @_explained
    def regress(
        self,
        *inputs: Any,
        precision: Any,
        n_draws: int = 100,
        output: Output | None = None,
        keep_draws: bool = True,
        tolerance: float | None = None,
        max_draws: int = MAX_DRAWS,
        batch_size: int | None = None,
        progress: bool | None = None,
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
        precision : float or Tensor
            τ, the inverse variance of the observation noise in the units of y; one
            number, or one per output.
        n_draws : int
            T of the papers.
        output : callable, optional
            Picks the tensor of shape (batch, *event) from what the model returns.
        keep_draws : bool
            False keeps only moments: little memory, but no quantiles or densities.
        tolerance : float, optional
            Draw until the Monte Carlo error of every mean is below this fraction of
            the predictive standard deviation, instead of ``n_draws``; at most
            ``max_draws``. The result says how many were used.
        max_draws : int
            The cap for ``tolerance``.
        batch_size : int, optional
            Rows to run at a time.
        progress : bool, optional
            Show a bar; by default on a terminal, when it takes more than a second.
        """
        tau, picker = check.precision(precision), Picker("regress", output)
        rounds = Rounds(n_draws, tolerance, max_draws)
        call = _Call(inputs, kwinputs, batch_size, progress)
        read = partial(self._reading, picker, saves_draws=tolerance is not None)
        readings = self._readings(call, rounds, read)
        if keep_draws and tolerance is None:
            draws, design, found = keep(readings, n_draws)
            drawn = GaussianPredictive.from_draws(draws, precision=tau, design=design)
            return _improved(drawn, found)
        accumulator = partial(GaussianAccumulator, tau, keep_draws)
        gathered = gather(readings, rounds, accumulator, tau)
        return _improved(_result(gathered), [part.found for part in gathered])

    def classify(
        self,
        *inputs: Any,
        n_draws: int = 100,
        output: Output | None = None,
        keep_draws: bool = True,
        tolerance: float | None = None,
        max_draws: int = MAX_DRAWS,
        batch_size: int | None = None,
        progress: bool | None = None,
        **kwinputs: Any,
    ) -> CategoricalPredictive:
        """The predictive distribution of a classification; the model returns logits.

        The last axis holds the classes. The parameters are those of :meth:`regress`;
        here ``tolerance`` is a fraction of √(p(1-p)) of each class.
        """
        rounds, picker = (
            Rounds(n_draws, tolerance, max_draws),
            Picker("classify", output),
        )
        call = _Call(inputs, kwinputs, batch_size, progress)
        readings = self._readings(call, rounds, lambda s: Sampled(s, picker))
        if keep_draws and tolerance is None:
            logits, design, _ = keep(readings, n_draws)
            return CategoricalPredictive.from_logits(
                logits, seed=self.seed, design=design
            )
        accumulator = partial(CategoricalAccumulator, self.seed, keep_draws)
        return _result(gather(readings, rounds, accumulator))

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
        call = _Call(inputs, kwinputs, batch_size, False)
        name = type(self.model).__name__
        parts = [
            moments_of(session, picker, name, correlated=correlated)
            for session, _ in self._sessions(call, 1)
        ]
        found = parts[0] if len(parts) == 1 else MomentPredictive.concatenate(parts)
        return found if precision is None else found.with_precision(precision)

    # ------------------------------------------------------------ private

    def _sessions(
        self, call: _Call, n_draws: int
    ) -> Iterator[tuple[Session, ProgressBar]]:
        inputs, kwinputs, batch_size, progress = call
        if batch_size is not None:
            batch_size = check.positive_int("batch_size", batch_size)
        batches = batches_of(
            inputs, kwinputs, axis=self._axis, batch_size=batch_size, model=self.model
        )
        first = list(islice(batches, 1))
        total = n_draws if batch_size is None and not _more(inputs, kwinputs) else None
        with ProgressBar("draws", total, progress) as bar:
            for batch in (*first, *batches):
                self._check_call(batch)
                session = self._sampler.session(batch)
                if session.rows_mix and batch_size is not None:
                    raise ParameterError(_mixed(type(self.model).__name__, batch_size))
                yield session, bar

    def _check_call(self, batch: Batch) -> None:
        """A clear word if the model cannot be called with these arguments."""
        args, kwargs = batch.arguments
        try:
            inspect.signature(self.model.forward).bind(*args, **kwargs)
        except TypeError as error:
            given = ", ".join(
                [type(a).__name__ for a in args] + [f"{k}=" for k in kwargs]
            )
            raise InputTypeError(
                f"{type(self.model).__name__}.forward cannot take ({given}): {error}. "
                f"If the batches hold labels as well, pass only the inputs: "
                f"(x for x, y in loader)."
            ) from None
        except ValueError:  # no signature to be had
            return

    def _readings(
        self, call: _Call, rounds: Rounds, read: Callable[[Session], Reading]
    ) -> Iterator[tuple[Reading, ProgressBar]]:
        for session, bar in self._sessions(call, rounds.n_draws):
            yield read(session), bar

    def _reading(
        self, picker: Picker, session: Session, *, saves_draws: bool
    ) -> Reading:
        """The draws of a regression, with closed forms where there are some."""
        ending = None if self._analytic is False else _ending(session, picker)
        closed = None
        if ending is not None:
            from caveat.sampling.closed_form.readings import closed_reading

            at_any_cost = bool(self._analytic) or saves_draws
            closed = closed_reading(session, picker, ending, at_any_cost=at_any_cost)
        return Sampled(session, picker) if closed is None else closed


def _ending(session: Session, picker: Picker) -> Ending | None:
    """The end of the tape of the output that is read, if it is the usual one."""
    position = picker.position(session.first_leaves, session.structure)
    if position is None or session.tape is None:
        return None
    tape = session.tape.copy()
    without_writes(tape)
    output = tape.outputs[position]
    return find_ending(tape, output.number) if isinstance(output, Ref) else None


def _improved(
    drawn: GaussianPredictive, found: Sequence[FoundMoments | None]
) -> GaussianPredictive:
    """The predictive of draws, with closed forms if every batch has them."""
    known = [part for part in found if part is not None]
    if len(known) < len(found):
        return drawn
    from caveat.sampling.closed_form.readings import improved

    return improved(drawn, known)


def _result(gathered: Sequence[Gathering]) -> Any:
    """The predictive of all batches."""
    parts: list[Any] = [gathering.accumulator.result() for gathering in gathered]
    return type(parts[0]).concatenate(parts)


def _stacked(session: Session, n_draws: int, bar: ProgressBar) -> list[Any]:
    """Each leaf of the output with the draws in front."""
    kept: list[Any] = []
    for number, leaves in enumerate(session.outputs(range(n_draws))):
        if not kept:
            _require_tensor(leaves)
            kept = [
                v.new_empty((n_draws, *v.shape)) if isinstance(v, Tensor) else v
                for v in leaves
            ]
        for target, leaf in zip(kept, leaves, strict=True):
            if isinstance(leaf, Tensor):
                target[number].copy_(leaf)
        bar.advance()
    return kept


def _require_tensor(leaves: list[Any]) -> None:
    if not any(isinstance(v, Tensor) for v in leaves):
        kinds = ", ".join(sorted({type(v).__name__ for v in leaves})) or "nothing"
        raise InputTypeError(
            f"The model must return a tensor or a structure with one. Got {kinds}."
        )


def _joined(parts: Sequence[Any]) -> Any:
    if not isinstance(parts[0], Tensor) or len(parts) == 1:
        return parts[0]
    if parts[0].dim() < 2:
        raise ShapeError(
            "The model returns a tensor without rows, which several batches cannot "
            "share. Pass one batch, or use regress/classify with output=."
        )
    return torch.cat(list(parts), 1)


def _more(inputs: tuple[Any, ...], kwinputs: dict[str, Any]) -> bool:
    return len(inputs) == 1 and not kwinputs and not isinstance(inputs[0], Tensor)


def _mixed(name: str, batch_size: int) -> str:
    return (
        f"batch_size={batch_size} would change the predictions: the rows of {name} are "
        f"not independent of each other on axis 0. Leave batch_size out, or if another "
        f"axis is the batch, say MCDropout(model, batch_dim=...)."
    )
