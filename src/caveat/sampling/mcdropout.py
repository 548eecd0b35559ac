"""MCDropout: the front door. A model in, a predictive distribution out."""

import inspect as python_inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from caveat import _validation as check
from caveat._progress import ProgressBar
from caveat._random import Seed, as_seed
from caveat.errors import InputTypeError, ParameterError, ShapeError
from caveat.predictive import (
    CategoricalAccumulator,
    CategoricalPredictive,
    GaussianAccumulator,
    GaussianPredictive,
)
from caveat.sampling.engine import Sampler, Session
from caveat.sampling.inputs import Batch, batches_of, check_model
from caveat.sampling.jobs import Accumulator, Job, Output

_NO_PRECISION = """regress needs precision=tau, the inverse variance of the noise in y
(paper 001, eq. 12): the predictive variance is 1/tau plus the spread of the draws.
If the noise has standard deviation s in the units of y, pass precision=1/s**2."""

_MAX_DRAWS = 10_000


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
    batch_dim : int
        The axis of the inputs that holds the rows.

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
        batch_dim: int = 0,
    ) -> None:
        self._sampler = Sampler(check_model(model), as_seed(seed), bool(shared))
        self._axis = check.draw_number(batch_dim)

    @property
    def model(self) -> nn.Module:
        """The model, as it was given."""
        return self._sampler.model

    @property
    def seed(self) -> int:
        """The seed of all draws."""
        return self._sampler.seed

    def __repr__(self) -> str:
        sharing = "shared by rows" if self._sampler.shared else "per row"
        return (
            f"MCDropout({type(self.model).__name__}, seed={self.seed}, masks {sharing})"
        )

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
        for session, bar in self._sessions(
            inputs, kwinputs, batch_size, n_draws, progress
        ):
            parts.append(_stacked(session, n_draws, bar))
            structure = session.structure
        assert structure is not None
        leaves = [_joined(leaf) for leaf in zip(*parts, strict=True)]
        return pytree.tree_unflatten(leaves, structure)

    def regress(
        self,
        *inputs: Any,
        n_draws: int = 100,
        precision: Any = None,
        output: Output | None = None,
        keep_draws: bool = True,
        tolerance: float | None = None,
        max_draws: int = _MAX_DRAWS,
        batch_size: int | None = None,
        progress: bool | None = None,
        **kwinputs: Any,
    ) -> GaussianPredictive:
        """The predictive distribution of a regression (paper 001, eqs 10-13).

        Parameters
        ----------
        *inputs, **kwinputs
            As for :meth:`draws`.
        n_draws : int
            T of the papers.
        precision : float or Tensor
            τ, the inverse variance of the observation noise in the units of y; one
            number, or one per output.
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
        if precision is None:
            raise ParameterError(_NO_PRECISION)
        tau = check.precision(precision)
        job = Job(n_draws, tolerance, max_draws, keep_draws, "regress", output)
        if keep_draws and tolerance is None:
            return GaussianPredictive.from_draws(
                self._kept(job, inputs, kwinputs, batch_size, progress), precision=tau
            )
        parts = self._accumulated(
            job,
            lambda: GaussianAccumulator(tau, keep_draws),
            inputs,
            kwinputs,
            batch_size,
            progress,
        )
        return GaussianPredictive.concatenate([part.result() for part in parts])  # type: ignore[misc]

    def classify(
        self,
        *inputs: Any,
        n_draws: int = 100,
        output: Output | None = None,
        keep_draws: bool = True,
        tolerance: float | None = None,
        max_draws: int = _MAX_DRAWS,
        batch_size: int | None = None,
        progress: bool | None = None,
        **kwinputs: Any,
    ) -> CategoricalPredictive:
        """The predictive distribution of a classification; the model returns logits.

        The last axis holds the classes. The parameters are those of :meth:`regress`;
        here ``tolerance`` is a fraction of √(p(1-p)) of each class.
        """
        job = Job(n_draws, tolerance, max_draws, keep_draws, "classify", output)
        if keep_draws and tolerance is None:
            logits = self._kept(job, inputs, kwinputs, batch_size, progress)
            return CategoricalPredictive.from_logits(logits, seed=self.seed)
        parts = self._accumulated(
            job,
            lambda: CategoricalAccumulator(self.seed, keep_draws),
            inputs,
            kwinputs,
            batch_size,
            progress,
        )
        return CategoricalPredictive.concatenate([part.result() for part in parts])  # type: ignore[misc]

    # ------------------------------------------------------------ private

    def _sessions(
        self,
        inputs: tuple[Any, ...],
        kwinputs: dict[str, Any],
        batch_size: int | None,
        n_draws: int,
        progress: bool | None,
    ) -> Iterator[tuple[Session, ProgressBar]]:
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
            python_inspect.signature(self.model.forward).bind(*args, **kwargs)
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

    def _kept(
        self,
        job: Job,
        inputs: tuple[Any, ...],
        kwinputs: dict[str, Any],
        batch_size: int | None,
        progress: bool | None,
    ) -> Tensor:
        """All draws of the picked output in one tensor."""
        parts = []
        for session, bar in self._sessions(
            inputs, kwinputs, batch_size, job.n_draws, progress
        ):
            kept: Tensor | None = None
            for number, tensor in enumerate(job.picked(session, range(job.n_draws))):
                if kept is None:
                    kept = tensor.new_empty((job.n_draws, *tensor.shape))
                kept[number].copy_(tensor)
                bar.advance()
            assert kept is not None
            parts.append(kept)
        return parts[0] if len(parts) == 1 else torch.cat(parts, 1)

    def _accumulated(
        self,
        job: Job,
        make: Callable[[], Accumulator],
        inputs: tuple[Any, ...],
        kwinputs: dict[str, Any],
        batch_size: int | None,
        progress: bool | None,
    ) -> list[Accumulator]:
        """An accumulator for every batch, all with the same number of draws."""
        states: list[tuple[Session, Accumulator]] = []
        keep_sessions = job.tolerance is not None
        for session, bar in self._sessions(
            inputs, kwinputs, batch_size, job.n_draws, progress
        ):
            accumulator = make()
            for block in job.blocks(session, range(job.first_round)):
                accumulator.add(block)
                bar.advance(len(block))
            states.append((session if keep_sessions else None, accumulator))  # type: ignore[arg-type]
        done = job.first_round
        while not job.satisfied(done, [a for _, a in states]):
            more = range(done, min(2 * done, job.max_draws))
            for session, accumulator in states:
                for block in job.blocks(session, more):
                    accumulator.add(block)
            done = more.stop
        return [accumulator for _, accumulator in states]


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
