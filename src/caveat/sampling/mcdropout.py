"""MCDropout: the front door. A model in, a predictive distribution out."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any, ParamSpec, Self, TypeVar

import torch
from torch import Tensor, nn

from caveat import _validation as check
from caveat._random import Seed, as_seed
from caveat.errors import InputTypeError, ParameterError
from caveat.predictive import (
    CategoricalAccumulator,
    CategoricalPredictive,
    GaussianAccumulator,
    GaussianPredictive,
    MomentPredictive,
)
from caveat.predictive.joining import by_rows, of_rows, together
from caveat.sampling.arguments import call_batch
from caveat.sampling.beside import (
    class_reading_of,
    improved,
    improved_classes,
    reading_of,
)
from caveat.sampling.calibrating import check_fit, fitted_precision
from caveat.sampling.calling import Call, Caller
from caveat.sampling.classes import ClassPicker
from caveat.sampling.engine import Sampler
from caveat.sampling.gathering import MAX_DRAWS, Rounds
from caveat.sampling.given import given_inputs
from caveat.sampling.inputs import check_model, telling
from caveat.sampling.names import check_names
from caveat.sampling.outputs import Output, Picker, check_nan
from caveat.sampling.stacks import Stacks
from caveat.sampling.warm import WarmCalls

_NO_PRECISION = """regress needs precision=tau, the inverse variance of the noise in y
(paper 001, eq. 12): the predictive variance is 1/tau plus the spread of the draws.
If the noise has standard deviation s in the units of y, pass precision=1/s**2. To have
it fitted on rows that trained nothing: precision="fit", calibration=(x_cal, y_cal)."""

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


@dataclass(frozen=True)
class FunctionDraw:
    """One draw of ω: a deterministic function of the input, y(x, ω).

    Called like the model; gradients flow if they are enabled.

    Attributes
    ----------
    number : int
        Which draw it is.
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

        Parameters
        ----------
        seed : int, torch.Generator or None
            None takes fresh entropy.

        Returns
        -------
        MCDropout
        """
        return self._with(seed=as_seed(seed))

    @property
    def _caller(self) -> Caller:
        return Caller(self._sampler, self._axis, self._warm)

    def _with(self, **changes: Any) -> Self:
        found = copy(self)
        found._sampler = replace(self._sampler, **changes)
        return found

    def function(self, number: int) -> FunctionDraw:
        """One draw as a function: ``draws(x)[t]`` equals ``function(t)(x)``.

        Parameters
        ----------
        number : int
            Which draw, from 0 on.

        Returns
        -------
        FunctionDraw
            Called like the model, with the same ω each time.
        """
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
        call = Call("draws", inputs, kwinputs, batch_size, progress, has_labels)
        caller = self._caller
        call = caller.split(call)
        source = caller.source(call)
        with caller.bar(call, source, n_draws) as bar:
            stacks = Stacks(n_draws, several=source.several)
            for number, batch in enumerate(source):
                stacks.add(number, batch, caller.session(call, batch), bar)
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
        call = Call("regress", inputs, kwinputs, batch_size, progress, has_labels)
        parts, draws = self._caller.gathered(
            call,
            rounds,
            partial(
                reading_of,
                picker,
                analytic=self._analytic,
                saves_draws=tolerance is not None,
            ),
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
        return improved(drawn, parts)

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
        parts, logits = self._caller.gathered(
            Call("classify", inputs, kwinputs, batch_size, progress, has_labels),
            Rounds(n_draws, tolerance, max_draws),
            partial(
                class_reading_of,
                picker,
                analytic=self._analytic,
                saves_draws=tolerance is not None,
            ),
            partial(CategoricalAccumulator, self.seed, False),
            keep_draws=keep_draws,
        )
        if logits is None:
            return improved_classes(together([part.result for part in parts]), parts)
        logits = check.logits(logits)
        averaged = CategoricalPredictive.averaged
        found = by_rows(logits, lambda rows: averaged(of_rows(logits, rows)))
        found = found.counted(self.seed).stratified(parts[0].design)
        return improved_classes(found, parts)

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
        call = Call("moments", inputs, kwinputs, batch_size, False)
        name = type(self.model).__name__
        parts = []
        caller = self._caller
        for batch in caller.source(call):
            session = caller.session(call, batch)
            first = picker.pick(session.first_leaves, session.structure)
            check_nan([first], batch, 0)
            parts.append(moments_of(session, picker, name, correlated=correlated))
        found = parts[0] if len(parts) == 1 else MomentPredictive.concatenate(parts)
        return found if precision is None else found.with_precision(precision)


def _gaussian(tau: float | Tensor, draws: Tensor, rows: slice) -> GaussianPredictive:
    """The predictive of some rows of the draws."""
    if isinstance(tau, Tensor) and tau.dim():
        tau = check.precision_for(tau, draws[0])[rows]
    return GaussianPredictive.from_draws(of_rows(draws, rows), precision=tau)
