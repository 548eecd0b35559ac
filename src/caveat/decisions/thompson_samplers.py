"""Samplers of functions beside ``MCDropout``: a linear posterior, an ensemble."""

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from caveat import _validation as check
from caveat._random import Seed, as_seed, random_uniform, stream_key
from caveat.errors import InputTypeError, ParameterError
from caveat.maxent.linear import LinearPosterior

Array = NDArray[np.float64]


def numbered_generator(seed: int, number: int) -> np.random.Generator:
    """The generator of draw ``number``: it depends on nothing that was drawn before."""
    return np.random.Generator(np.random.SFC64(stream_key(seed, f"draw {number}")))


@final
class PosteriorSampler:
    """Functions drawn from the exact linear posterior of paper 002 (ledger E47).

    A draw is x -> (1 - f) x'w + b: the weights are drawn, the masks are averaged, as
    in the point prediction. So what is left of the spread is what data can remove.

    Parameters
    ----------
    posterior : LinearPosterior
        Such as ``BayesianDropoutRegression(…).fit(X, y).posterior_``.
    seed : int, torch.Generator or None
        Fixes all draws; None takes fresh entropy, once.

    Examples
    --------
    >>> import numpy as np
    >>> from caveat.decisions import PosteriorSampler, thompson
    >>> from caveat.estimators import BayesianDropoutRegression
    >>> X = np.array([[1, 0.5], [-0.4, 1.2], [0.8, -1], [0.3, 0.9]])
    >>> model = BayesianDropoutRegression(0.4, 0.5).fit(X, [1.2, 0.1, 0.4, 0.9])
    >>> sampler = PosteriorSampler(model.posterior_, seed=0)
    >>> thompson(sampler, X, n_draws=6).shape
    torch.Size([6])
    """

    def __init__(self, posterior: LinearPosterior, *, seed: Seed = None) -> None:
        if not isinstance(posterior, LinearPosterior):
            raise InputTypeError(
                f"posterior must be a LinearPosterior. Got {type(posterior).__name__}; "
                f"of a fitted linear estimator pass its posterior_."
            )
        self._posterior = posterior
        self._seed = as_seed(seed)

    def function(self, number: int) -> Callable[[Any], Array]:
        """Draw ``number``: rows (rows, features) to values (rows,)."""
        rng = numbered_generator(self._seed, check.draw_number(number))
        drawn = self._posterior.effective_sample(1, rng)
        weights, level = drawn.weights[0], float(drawn.intercept[0])
        return lambda x: np.asarray(x, dtype=np.float64) @ weights + level


@final
class EnsembleSampler:
    """Functions that are the members of an ensemble, one chosen at random a draw.

    Parameters
    ----------
    members : sequence of callables
        Networks in evaluation mode, or other functions of the same input.
    seed : int, torch.Generator or None
        Fixes all draws; None takes fresh entropy, once.

    Examples
    --------
    >>> import torch
    >>> from caveat.decisions import EnsembleSampler, thompson
    >>> members = [torch.cos, torch.sin]
    >>> x = torch.linspace(0, 3, 7)
    >>> set(thompson(EnsembleSampler(members, seed=0), x, n_draws=20).tolist())
    {0, 3}
    """

    def __init__(
        self, members: Sequence[Callable[..., Any]], *, seed: Seed = None
    ) -> None:
        self._members = list(members)
        if not self._members:
            raise ParameterError("members must hold at least one function. Got none.")
        for member in self._members:
            if not callable(member):
                raise InputTypeError(
                    f"members must be callable. Got {type(member).__name__}."
                )
        self._seed = as_seed(seed)

    def function(self, number: int) -> Callable[..., Any]:
        """Draw ``number``: one of the members."""
        return self._members[
            chosen_member(self._seed, check.draw_number(number), len(self._members))
        ]


def chosen_member(seed: int, number: int, n_members: int) -> int:
    """The member that draw ``number`` is, all equally likely."""
    uniform = random_uniform(stream_key(seed, "member"), range(number, number + 1))
    return int(float(uniform) * n_members)
