"""Networks on rows in the units of the data: settings, standard units, ensembles.

An ensemble here is one or more networks trained on the same rows with different seeds,
whose draws are pooled. Many ensembles are trained as one fleet.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from caveat import _validation as validation
from caveat.errors import ParameterError
from caveat.noise import Noise
from caveat.training.fleet import train
from caveat.training.members import Architecture, Member, Recipe
from caveat.training.modules import TrainedModules
from caveat.training.objectives import (
    GaussianWithPrecision,
    Objective,
    SoftmaxCrossEntropy,
    SquaredError,
    split_head,
)
from caveat.training.scaling import Scaling
from caveat.training.stopping import Watch
from caveat.training.streams import steps_per_epoch
from caveat.training.trained import Trained

Array = NDArray[np.float64]

TRIAL_PRECISION = 10.0  # in standard units, for the decay while tau is not known


@dataclass(frozen=True)
class Candidate:
    """Settings of a network that a search compares.

    Parameters
    ----------
    drop_rate : float
        Of the hidden units.
    input_drop_rate : float
        Of the features.
    hidden : tuple of int
    lengthscale : float
    epochs : int
    precision : float, optional
        tau in the units of 1/y²; to be found if not given.
    """

    drop_rate: float
    input_drop_rate: float = 0.0
    hidden: tuple[int, ...] = (50,)
    lengthscale: float = 1e-2
    epochs: int = 400
    precision: float | None = None

    @property
    def drop_rates(self) -> tuple[float, ...]:
        """One per weight layer."""
        return (self.input_drop_rate, *(self.drop_rate for _ in self.hidden))


@dataclass(frozen=True)
class Settings:
    """How networks are trained; what a search does not vary.

    Parameters
    ----------
    activation, schedule : str
    noise : str or Noise
    batch_size : int
    keep_last : bool
    learning_rate : float
        Peak of the schedule.
    noise_head : bool
        Learn the precision of each prediction as further outputs.
    n_members : int
        Networks per ensemble.
    n_draws : int
        Per network, on validation rows.
    seed : int
    """

    activation: str = "relu"
    noise: str | Noise = "bernoulli"
    schedule: str = "cosine"
    batch_size: int = 32
    keep_last: bool = False
    learning_rate: float = 1e-2
    noise_head: bool = False
    n_members: int = 1
    n_draws: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        validation.positive_int("n_members", self.n_members)
        validation.several("n_draws", self.n_draws)
        validation.positive("learning_rate", self.learning_rate)

    @property
    def objective(self) -> Objective:
        """The loss."""
        return GaussianWithPrecision() if self.noise_head else SquaredError()

    @property
    def loss_precision(self) -> float | None:
        """tau of the loss: 1 if that is a log-likelihood, else to be given."""
        return 1.0 if self.noise_head else None

    def scaling(self, x: Array, y: Array) -> Scaling:
        """The units in which networks learn these rows."""
        return Scaling.of(x, y)

    def recipe(self, n_inputs: int, n_targets: int, hidden: tuple[int, ...]) -> Recipe:
        """For networks of the given shape."""
        outputs = self.objective.n_outputs(n_targets)
        return Recipe(
            Architecture(n_inputs, hidden, outputs, self.activation),
            self.objective,
            self.batch_size,
            self.keep_last,
            self.schedule,
            self.noise,
        )


@dataclass(frozen=True)
class ClassifierSettings(Settings):
    """How classifiers are trained.

    Parameters
    ----------
    n_classes : int
        Classes to tell apart; the others are those of :class:`Settings`.
    """

    n_classes: int = 2

    @property
    def objective(self) -> Objective:
        """The loss."""
        return SoftmaxCrossEntropy(self.n_classes)

    @property
    def loss_precision(self) -> float | None:
        """tau of the loss, a log-likelihood."""
        return 1.0

    def scaling(self, x: Array, y: Array) -> Scaling:
        """The units in which networks learn these rows; classes are left alone."""
        return replace(Scaling.of(x, y), y_mean=np.zeros(1), y_sd=np.ones(1))


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows to learn from, in the units of the data, and the settings to do it with.

    Parameters
    ----------
    name : str
    x : array, shape (rows, inputs)
    y : array, shape (rows, targets)
        Class numbers, shape (rows, 1), if the settings are those of a classifier.
    candidate : Candidate
    precision : float, optional
        In the units of 1/y², for the decay; overrides that of the candidate.
    seed : int
        Its own part of the seed, beside that of the settings.
    standard_precision : float, optional
        The same in standard units, for targets of several units; overrides both.
    held_out : (array, array), optional
        Further rows (x, y), on which the best moment to stop is found.
    """

    name: str
    x: Array
    y: Array
    candidate: Candidate
    precision: float | None = None
    seed: int = 0
    standard_precision: float | None = None
    held_out: tuple[Array, Array] | None = None

    def members(self, settings: Settings, scaling: Scaling, data: int) -> list[Member]:
        """The networks of the ensemble."""
        return [
            Member.from_prior(
                f"{self.name}, member {number}",
                self.candidate.drop_rates,
                precision=self._standard_precision(settings, scaling),
                lengthscale=self.candidate.lengthscale,
                n_train=len(self.x),
                data=data,
                learning_rate=settings.learning_rate,
                epochs=self.candidate.epochs,
                seed=_combined(settings.seed, self.seed, number),
            )
            for number in range(settings.n_members)
        ]

    def _standard_precision(self, settings: Settings, scaling: Scaling) -> float:
        if settings.loss_precision is not None:
            return settings.loss_precision
        if self.standard_precision is not None:
            return self.standard_precision
        precision = self.precision or self.candidate.precision
        if precision is None:
            return TRIAL_PRECISION
        return precision * float(np.square(scaling.y_sd).mean())


def _combined(*seeds: int) -> int:
    """One seed that differs whenever one of several does."""
    return int(np.random.SeedSequence(seeds).generate_state(1, np.uint64)[0])


class Draws(NamedTuple):
    """Draws in the units of y: means and, with a noise head, precisions.

    Shapes: (draws, rows, targets). Those of a classifier are logits.
    """

    means: Tensor
    precisions: Tensor | None


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Trained networks and the units they think in."""

    trained: Trained | TrainedModules
    scaling: Scaling
    noise_head: bool

    @property
    def has_diverged(self) -> bool:
        """Whether a network's weights are not finite."""
        return bool(self.trained.diverged)

    def blocks(self, x: Array, *, n_draws: int, seed: int = 0) -> Iterator[Draws]:
        """``n_draws`` draws of each network, some at a time, pooled.

        Parameters
        ----------
        x : array, shape (rows, inputs)
            In the units of the data.
        n_draws : int
            Per network.
        seed : int
            As for ``Trained.draws``.

        Yields
        ------
        Draws
        """
        inputs = self.scaling.inputs(x)
        for block in self.trained.blocks(inputs, n_draws=n_draws, seed=seed):
            yield in_units_of_y(block.flatten(0, 1), self.scaling, self.noise_head)

    def draws(self, x: Array, *, n_draws: int, seed: int = 0) -> Draws:
        """All draws of :meth:`blocks` at once.

        Parameters
        ----------
        x, n_draws, seed
            As there.

        Returns
        -------
        Draws
        """
        parts = list(self.blocks(x, n_draws=n_draws, seed=seed))
        precisions = [p.precisions for p in parts if p.precisions is not None]
        return Draws(
            torch.cat([part.means for part in parts]),
            torch.cat(precisions) if precisions else None,
        )

    def point(self, x: Array) -> Tensor:
        """The mean of the networks with their noise off (standard dropout)."""
        outputs = self.trained.mean_outputs(self.scaling.inputs(x))
        return in_units_of_y(outputs, self.scaling, self.noise_head).means.mean(0)


def in_units_of_y(outputs: Tensor, scaling: Scaling, noise_head: bool) -> Draws:
    """Outputs (..., outputs) of networks that think in standard units.

    Parameters
    ----------
    outputs : Tensor
        In standard units.
    scaling : Scaling
        The units of the networks.
    noise_head : bool
        Whether the second half of the outputs are log precisions.

    Returns
    -------
    Draws
    """
    if not noise_head:
        return Draws(scaling.outputs(outputs), None)
    means, logs = split_head(outputs)
    sd = torch.from_numpy(scaling.y_sd)
    precisions = logs.to(torch.float64).exp() / sd.square()  # E18
    return Draws(scaling.outputs(means), precisions)


def fit_ensembles(
    problems: Sequence[Problem],
    settings: Settings,
    *,
    patience: int = 20,
    n_threads: int | None = None,
    progress: bool | None = False,
) -> list[Ensemble]:
    """Train an ensemble for every problem, all as one fleet.

    Parameters
    ----------
    problems : sequence of Problem
        With the same number of inputs, targets and hidden units.
    settings : Settings
        Of all of them.
    patience : int
        If problems hold out rows: epochs without a new best there after which a
        network is given up.
    n_threads : int, optional
        Cores to use, by default as many as torch does.
    progress : bool or None
        Show a progress bar; None shows it on a terminal.

    Returns
    -------
    list of Ensemble
        In the order of ``problems``.
    """
    first = problems[0]
    shapes = {(p.x.shape[1], p.y.shape[1], p.candidate.hidden) for p in problems}
    if len(shapes) > 1:
        raise ParameterError(
            "problems of one fleet must have the same inputs, targets and hidden "
            f"units. Got {sorted(shapes)}."
        )
    scalings = [settings.scaling(p.x, p.y) for p in problems]
    rows = [s.rows(p.x, p.y) for s, p in zip(scalings, problems, strict=True)]
    members = [
        member
        for data, (problem, scaling) in enumerate(zip(problems, scalings, strict=True))
        for member in problem.members(settings, scaling, data)
    ]
    recipe = settings.recipe(first.x.shape[1], first.y.shape[1], first.candidate.hidden)
    watch = _watch(problems, scalings, settings.n_members, recipe, patience)
    trained = train(
        recipe, members, rows, watch=watch, n_threads=n_threads, progress=progress
    )
    size = settings.n_members
    return [
        Ensemble(trained[range(i * size, (i + 1) * size)], scaling, settings.noise_head)
        for i, scaling in enumerate(scalings)
    ]


def _watch(
    problems: Sequence[Problem],
    scalings: Sequence[Scaling],
    n_members: int,
    recipe: Recipe,
    patience: int,
) -> Watch | None:
    """Stops the networks early by the rows held out: by all problems, or by none."""
    parts = [
        scaling.rows(*problem.held_out)
        for problem, scaling in zip(problems, scalings, strict=True)
        if problem.held_out is not None
    ]
    if not parts:
        return None
    if len(parts) < len(problems):
        raise ParameterError(
            f"All problems of a fleet must hold out rows, or none. "
            f"Got {len(parts)} of {len(problems)} that do."
        )
    rows = [part for part in parts for _ in range(n_members)]
    every = min(steps_per_epoch(len(p.x), recipe) for p in problems)
    return Watch(rows, every=every, patience=patience)
