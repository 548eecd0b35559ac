"""Networks on rows in the units of the data: standard units, ensembles, their draws.

An ensemble here is one or more networks trained on the same rows with different seeds,
whose draws are pooled. Many ensembles are trained as one fleet.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from caveat.errors import ParameterError
from caveat.training.fleet import train
from caveat.training.members import Member, Rows
from caveat.training.objectives import Weighted, split_head
from caveat.training.scaling import Scaling
from caveat.training.spec import NetworkSpec
from caveat.training.stopping import Watch
from caveat.training.streams import combined_seed
from caveat.training.trained import Trained

Array = NDArray[np.float64]

TRIAL_PRECISION = 10.0  # in standard units, for the decay while tau is not known


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows to learn from, in the units of the data, and the networks to do it.

    Parameters
    ----------
    name : str
    x : array, shape (rows, inputs)
    y : array, shape (rows, targets)
        Class numbers, shape (rows, 1), if the objective is that of a classifier. The
        last column holds weights, if the objective is ``Weighted``.
    spec : NetworkSpec
        Its precision serves the decay; without one a trial value does.
    seed : int
        Its own part of the seed, beside that of the fleet.
    standard_precision : float, optional
        The precision in standard units, for targets of several units; overrides that
        of the spec.
    """

    name: str
    x: Array
    y: Array
    spec: NetworkSpec
    seed: int = 0
    standard_precision: float | None = None

    def parts(self, seed: int) -> tuple["RowsOfData", "RowsOfData | None"]:
        """Rows to learn from, and those held out to stop by, in random order."""
        n_train = self.spec.schedule.n_train(len(self.x))
        if n_train == len(self.x):
            return RowsOfData(self.x, self.y), None
        order = np.random.default_rng([seed, 1, self.seed]).permutation(len(self.x))
        stop, learn = np.split(order, [len(self.x) - n_train])
        return (
            RowsOfData(self.x[learn], self.y[learn]),
            RowsOfData(self.x[stop], self.y[stop]),
        )

    def members(
        self, scaling: Scaling, *, n_train: int, data: int = 0, seed: int = 0
    ) -> list[Member]:
        """The networks of the ensemble.

        Parameters
        ----------
        scaling : Scaling
            The units in which they learn.
        n_train : int
            Rows to learn from.
        data : int
            The number of the data set.
        seed : int
            Of the fleet.

        Returns
        -------
        list of Member
        """
        return [
            Member.of(
                self.spec,
                f"{self.name}, member {number}",
                precision=self._standard_precision(scaling),
                n_train=n_train,
                data=data,
                seed=combined_seed(seed, self.seed, number),
            )
            for number in range(self.spec.n_members)
        ]

    def _standard_precision(self, scaling: Scaling) -> float:
        if self.spec.objective.precision is not None:
            return self.spec.objective.precision
        if self.standard_precision is not None:
            return self.standard_precision
        if self.spec.precision is None:
            return TRIAL_PRECISION
        return self.spec.precision * float(np.square(scaling.y_std).mean())


class RowsOfData(NamedTuple):
    """Rows in the units of the data."""

    x: Array
    y: Array


class Draws(NamedTuple):
    """Draws in the units of y: means and, with a noise head, precisions.

    Shapes: (draws, rows, targets). Those of a classifier are logits.
    """

    means: Tensor
    precisions: Tensor | None


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Trained networks and the units they think in.

    Attributes
    ----------
    trained : Trained
    scaling : Scaling
    """

    trained: Trained
    scaling: Scaling

    def blocks(
        self,
        x: Array,
        *,
        n_draws: int,
        seed: int = 0,
        dtype: torch.dtype = torch.float32,
    ) -> Iterator[Draws]:
        """``n_draws`` draws of each network, some at a time, pooled.

        Parameters
        ----------
        x : array, shape (rows, inputs)
            In the units of the data.
        n_draws : int
            Per network; they take turns.
        seed : int
            As for ``Trained.draws``.
        dtype : torch.dtype
            In which the networks are run.

        Yields
        ------
        Draws
        """
        inputs = self.scaling.inputs(x).to(dtype)
        for block in self.trained.blocks(inputs, n_draws=n_draws, seed=seed):
            yield self._in_units_of_y(block.flatten(0, 1))

    def draws(
        self,
        x: Array,
        *,
        n_draws: int,
        seed: int = 0,
        dtype: torch.dtype = torch.float32,
    ) -> Draws:
        """All draws of :meth:`blocks` at once.

        Parameters
        ----------
        x, n_draws, seed, dtype
            As there.

        Returns
        -------
        Draws
        """
        parts = list(self.blocks(x, n_draws=n_draws, seed=seed, dtype=dtype))
        precisions = [p.precisions for p in parts if p.precisions is not None]
        return Draws(
            torch.cat([part.means for part in parts]),
            torch.cat(precisions) if precisions else None,
        )

    def point(self, x: Array) -> Tensor:
        """The mean of the networks with their noise off (standard dropout)."""
        outputs = self.trained.mean_outputs(self.scaling.inputs(x))
        return self._in_units_of_y(outputs).means.mean(0)

    def _in_units_of_y(self, outputs: Tensor) -> Draws:
        """Outputs (..., outputs) of networks that think in standard units."""
        if not self.trained.spec.objective.has_head:
            return Draws(self.scaling.outputs(outputs), None)
        means, logs = split_head(outputs)
        std = torch.from_numpy(self.scaling.y_std)
        precisions = logs.to(torch.float64).exp() / std.square()  # E18
        return Draws(self.scaling.outputs(means), precisions)


def scaling_of(spec: NetworkSpec, x: Array, y: Array) -> Scaling:
    """The units in which networks of a spec learn rows; classes are left alone.

    Parameters
    ----------
    spec : NetworkSpec
        Its objective counts.
    x : array, shape (rows, inputs)
        In the units of the data.
    y : array, shape (rows, targets)
        Targets, or class numbers.

    Returns
    -------
    Scaling
    """
    scaling = Scaling.of(x, y)
    if not spec.objective.scales_targets:
        return scaling.of_inputs_only()
    return scaling.with_weights() if isinstance(spec.objective, Weighted) else scaling


def fit_ensembles(
    problems: Sequence[Problem],
    *,
    seed: int = 0,
    n_threads: int | None = None,
    progress: bool | None = False,
) -> list[Ensemble]:
    """Train an ensemble for every problem, all as one fleet.

    Parameters
    ----------
    problems : sequence of Problem
        With the same number of inputs and targets, and alike in ``spec.shared``.
    seed : int
        Of all of them, beside their own.
    n_threads : int, optional
        Cores to use, by default as many as torch does.
    progress : bool or None
        Show a progress bar; None shows it on a terminal.

    Returns
    -------
    list of Ensemble
        In the order of ``problems``.
    """
    _check_alike(problems)
    scalings, rows, held = [], [], []
    members: list[Member] = []
    for place, problem in enumerate(problems):
        learn, stop = problem.parts(seed)
        scaling = scaling_of(problem.spec, *learn)
        own = problem.members(scaling, n_train=len(learn.x), data=place, seed=seed)
        scalings.append(scaling)
        rows.append(scaling.rows(*learn))
        held += [] if stop is None else [scaling.rows(*stop)] * len(own)
        members += own
    watch = _watch(problems[0].spec, rows, held)
    trained = train(members, rows, watch=watch, n_threads=n_threads, progress=progress)
    ends = [0, *accumulate(p.spec.n_members for p in problems)]
    return [
        Ensemble(trained[range(start, stop)], scaling)
        for (start, stop), scaling in zip(pairwise(ends), scalings, strict=True)
    ]


def _check_alike(problems: Sequence[Problem]) -> None:
    shapes = {(p.x.shape[1], p.y.shape[1], p.spec.shared) for p in problems}
    if len(shapes) > 1:
        found = sorted({(a, b, shared[0]) for a, b, shared in shapes}, key=repr)
        raise ParameterError(
            "problems of one fleet must have the same inputs, targets and hidden "
            "units, and be alike in activation, noise, objective, batches, decay and "
            f"early stopping. Got {len(shapes)} kinds: {found}."
        )


def _watch(
    spec: NetworkSpec, rows: Sequence[Rows], held: Sequence[Rows]
) -> Watch | None:
    """Stops the networks early by the rows held out for each of them."""
    stopping = spec.schedule.early_stopping
    if stopping is None:
        return None
    every = min(spec.schedule.steps_per_epoch(len(part)) for part in rows)
    return Watch(held, every=every, patience=stopping.patience)
