"""How a Q-learner explores and learns; the defaults are those of paper 001."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

from caveat import _validation as check
from caveat.errors import ParameterError


@dataclass(frozen=True)
class Annealed:
    """Probability of a random move, falling linearly with the age of the agent.

    ε(age) = min(1, max(least, 1 - (age - start) / (end - start))) (ledger E134).

    Attributes
    ----------
    start, end : int
        Steps between which it falls.
    least : float
        Where it stays.

    Examples
    --------
    >>> from caveat.rl import Annealed
    >>> epsilon = Annealed()
    >>> epsilon(3_000), round(epsilon(100_000), 4), epsilon(200_000)
    (1.0, 0.5076, 0.05)
    """

    start: int = 3_000
    end: int = 200_000
    least: float = 0.05

    def __call__(self, age: int) -> float:
        # E134
        fallen = 1.0 - (age - self.start) / (self.end - self.start)
        return min(1.0, max(self.least, fallen))


def never(age: int) -> float:
    """No random moves: the sampled network explores."""
    return 0.0


@dataclass(frozen=True)
class QSettings:
    """Settings of a Q-learner with a network of ReLU layers.

    Attributes
    ----------
    hidden : tuple of int
        Units of the hidden layers.
    drop_rates : tuple of float
        Of the inputs of each weight layer, so one more than ``hidden``; all 0 for a
        deterministic network.
    epsilon : callable, int -> float
        Probability of a random move at an age, after the ``random_steps``.
    discount, learning_rate : float
    l2_coefficient : float
        Weights decay by ``learning_rate · l2_coefficient / batch_size`` per step, as in
        ConvNetJS; biases do not.
    batch_size, capacity : int
        Transitions replayed at each step, and kept.
    learning_starts, random_steps : int
        Steps without learning, and with random moves only.

    Examples
    --------
    >>> from caveat.rl import QSettings
    >>> QSettings.thompson().drop_rates
    (0.0, 0.1, 0.1)
    >>> QSettings.epsilon_greedy(discount=0.9).epsilon(100_000) > 0.5
    True
    """

    hidden: tuple[int, ...] = (50, 50)
    drop_rates: tuple[float, ...] = (0.0, 0.1, 0.1)
    epsilon: Callable[[int], float] = field(default=never)
    discount: float = 0.7
    learning_rate: float = 0.001
    l2_coefficient: float = 0.001
    batch_size: int = 64
    capacity: int = 30_000
    learning_starts: int = 1_000
    random_steps: int = 5_000

    def __post_init__(self) -> None:
        for name in ("batch_size", "capacity"):
            check.positive_int(name, getattr(self, name))
        for units in self.hidden:
            check.positive_int("hidden", units)
        check.unit_interval("discount", self.discount)
        check.positive("learning_rate", self.learning_rate)
        if len(self.drop_rates) != len(self.hidden) + 1:
            raise ParameterError(
                f"drop_rates must name one rate for each of the "
                f"{len(self.hidden) + 1} weight layers. Got {self.drop_rates}."
            )
        for layer, rate in enumerate(self.drop_rates):
            check.drop_rate(rate, where=f"weight layer {layer}")

    @classmethod
    def thompson(cls, **changes: Any) -> Self:
        """One sampled network per step chooses the action; no other exploration."""
        return cls(**changes)

    @classmethod
    def epsilon_greedy(cls, **changes: Any) -> Self:
        """A deterministic network, and random moves with falling probability."""
        layers = len(changes.get("hidden", (50, 50))) + 1
        plain: dict[str, Any] = {"drop_rates": (0.0,) * layers, "epsilon": Annealed()}
        return cls(**{**plain, **changes})
