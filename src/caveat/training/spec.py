"""What an ensemble of networks is and how it is fitted: one description for all.

Estimators, searches, fleets and tables of results speak it. A search varies any of its
fields by ``dataclasses.replace`` or :meth:`NetworkSpec.vary`.
"""

from dataclasses import KW_ONLY, dataclass, field, fields, is_dataclass, replace
from typing import Any, Self

import numpy as np

from caveat import _validation as validation
from caveat.errors import InputTypeError, ParameterError
from caveat.noise import Noise
from caveat.training.activations import activation
from caveat.training.objectives import Likelihood, SquaredError
from caveat.training.schedules import Schedule

_NOISES = ("bernoulli", "gaussian")


@dataclass(frozen=True)
class NetworkSpec:
    """Networks with noise on the input of every weight layer, whose draws are pooled.

    Parameters
    ----------
    hidden : tuple of int
        Widths of the hidden layers; empty for a linear model.
    activation : str
        See ``caveat.training.activations``.
    noise : str or Noise
        ``"bernoulli"``: units are dropped and the rest scaled by 1/keep_prob;
        ``"gaussian"``: multiplied by N(1, drop_rate/keep_prob), of the same variance.
        A family of ``caveat.noise`` acts before every weight layer whose drop rate is
        not 0; networks are then trained one by one on the bound.
    drop_rate : float
        Of the hidden units.
    input_drop_rate : float
        Of the features.
    lengthscale : float
        l of the prior N(0, 1/l²) of the weights.
    precision : float, optional
        tau in the units of 1/y²; to be found if not given.
    objective : Likelihood
        The loss: ``SquaredError()``, ``GaussianWithPrecision()`` (a noise head) or
        ``SoftmaxCrossEntropy(n_classes)``.
    schedule : Schedule
        How long and how fast they learn.
    n_members : int
        Networks of the ensemble, which differ in their seeds.
    n_draws : int
        Per network, on validation rows.

    Examples
    --------
    >>> spec = NetworkSpec((50,), drop_rate=0.1)
    >>> spec.drop_rates
    (0.0, 0.1)
    >>> spec.vary(drop_rate=0.2, epochs=100).schedule.epochs
    100
    """

    hidden: tuple[int, ...] = (50,)
    _: KW_ONLY
    activation: str = "relu"
    noise: str | Noise = "bernoulli"
    drop_rate: float = 0.05
    input_drop_rate: float = 0.0
    lengthscale: float = 1e-2
    precision: float | None = None
    objective: Likelihood = field(default_factory=SquaredError)
    schedule: Schedule = field(default_factory=Schedule)
    n_members: int = 1
    n_draws: int = 200

    def __post_init__(self) -> None:
        self._set("hidden", _widths(self.hidden))
        for name in ("drop_rate", "input_drop_rate"):
            self._set(name, _rate(name, getattr(self, name)))
        self._set("lengthscale", validation.lengthscale(self.lengthscale))
        if self.precision is not None:
            self._set("precision", validation.positive("precision", self.precision))
        self._set("n_members", validation.positive_int("n_members", self.n_members))
        self._set("n_draws", validation.several("n_draws", self.n_draws))
        _check_names(self.activation, self.noise)
        _check_kind("schedule", self.schedule, Schedule, "Schedule(epochs=100)")
        _check_kind("objective", self.objective, Likelihood, "SquaredError()")

    @property
    def drop_rates(self) -> tuple[float, ...]:
        """One per weight layer, the first being that of the features."""
        return (self.input_drop_rate, *(self.drop_rate for _ in self.hidden))

    @property
    def shared(self) -> tuple[object, ...]:
        """What networks must have in common to be trained as one fleet."""
        schedule = self.schedule
        return (
            self.hidden,
            self.activation,
            self.noise,
            self.objective,
            schedule.batch_size,
            schedule.decay,
            schedule.keep_last,
            schedule.early_stopping,
        )

    def vary(self, **changes: Any) -> Self:
        """This spec with other values of some fields, of its own or of its schedule.

        Parameters
        ----------
        **changes
            By the names of the fields; those of the schedule are meant, too, such as
            ``epochs``.

        Returns
        -------
        NetworkSpec
        """
        known = varied_names()
        for name in changes:
            if name not in known:
                raise ParameterError(
                    f"A spec has {', '.join(map(repr, known))}. Got {name!r}."
                )
        timing = {n: changes.pop(n) for n in _SCHEDULED if n in changes}
        schedule = replace(changes.pop("schedule", self.schedule), **timing)
        return replace(self, schedule=schedule, **changes)

    def described(self) -> str:
        """A text that no other spec has, for files of scores."""
        if isinstance(self.noise, Noise) and not is_dataclass(self.noise):
            raise InputTypeError(
                "A noise family must be a dataclass to be told from others in a file. "
                f"Got {type(self.noise).__name__}."
            )
        return repr(self)

    def _set(self, name: str, value: object) -> None:
        """A checked value as a plain one, so that equal specs are written alike."""
        object.__setattr__(self, name, value)


_SCHEDULED = tuple(f.name for f in fields(Schedule))


def varied_names() -> tuple[str, ...]:
    """What :meth:`NetworkSpec.vary` can change."""
    return (*(f.name for f in fields(NetworkSpec)), *_SCHEDULED)


def _check_names(non_linearity: Any, noise: Any) -> None:
    if not isinstance(non_linearity, str):
        raise InputTypeError(f"activation must be a name. Got {non_linearity!r}.")
    activation(non_linearity)
    known = noise in _NOISES if isinstance(noise, str) else isinstance(noise, Noise)
    if not known:
        raise ParameterError(
            "noise must be 'bernoulli', 'gaussian' or a family such as "
            f"caveat.noise.Concrete(). Got {noise!r}."
        )


def _check_kind(name: str, value: Any, kind: type, example: str) -> None:
    if not isinstance(value, kind):
        raise InputTypeError(
            f"{name} must be a {kind.__name__}, such as {example}. Got {value!r}."
        )


def _rate(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, float | int | np.number):
        raise InputTypeError(f"{name} must be a number in [0, 1). Got {value!r}.")
    return validation.drop_rate(float(value), where=name)


def _widths(hidden: Any) -> tuple[int, ...]:
    if not isinstance(hidden, tuple | list | np.ndarray):
        raise InputTypeError(
            f"hidden must be a tuple with the width of each hidden layer, such as "
            f"(50,). Got {hidden!r}."
        )
    return tuple(validation.positive_int("A width in hidden", w) for w in hidden)
