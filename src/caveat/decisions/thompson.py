"""Thompson sampling: draw one function, act greedily on it [Thompson1933]_.

A draw must be a *function*: the values of all candidates come from the same masks (or
weights, or network), so that an action is chosen with the probability that it is the
best one. ``MCDropout.function`` gives such draws; see ``thompson_samplers`` for the
exact linear posterior of paper 002 and for ensembles.

.. [Thompson1933] W. R. Thompson. On the likelihood that one unknown probability
   exceeds another in view of the evidence of two samples. Biometrika 25, 1933.
"""

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from caveat import _validation as check
from caveat.errors import InputTypeError, ParameterError, ShapeError

Function = Callable[[Any], Any]
Utility = Callable[[Tensor], Tensor]

_NO_SAMPLER = """sampler must have a method function(number) that gives draw `number` as
a function. Got {kind}. Wrap a dropout network as MCDropout(network), several networks
as EnsembleSampler(networks), a fitted linear model as
PosteriorSampler(model.posterior_)."""


@runtime_checkable
class FunctionSampler(Protocol):
    """Anything whose draws are functions, numbered from 0."""

    def function(self, number: int) -> Function:
        """Draw ``number``: the same function whenever it is asked for."""
        ...


def thompson(
    sampler: FunctionSampler,
    candidates: Any,
    *,
    n_draws: int = 1,
    first_draw: int = 0,
    utility: Utility | None = None,
) -> Tensor:
    """The best candidate under each of a few drawn functions (ledger E146).

    Parameters
    ----------
    sampler : FunctionSampler
        Whose functions are drawn, such as ``MCDropout(network, seed=0)``. If it has a
        method ``independent()``, that gives the sampler of independent draws.
    candidates : Tensor or array, shape (candidates, *features)
        Among what to choose, as the functions take it: actions, or points of a
        continuous space.
    n_draws : int
        How many functions, each with its own choice: suggestions to try in parallel.
    first_draw : int
        The number of the first; raise it by ``n_draws`` from call to call.
    utility : callable, optional
        From outputs (candidates, *event) to what is to be maximised (candidates,). By
        default functions must have one output.

    Returns
    -------
    Tensor of int, shape (draws,)
        Rows of ``candidates``, of equal ones the first.

    Examples
    --------
    >>> import torch, caveat
    >>> from caveat.decisions import thompson
    >>> net = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(3, 1))
    >>> actions = torch.eye(3)
    >>> chosen = thompson(caveat.MCDropout(net, seed=0), actions, n_draws=5)
    >>> chosen.shape
    torch.Size([5])
    """
    count, first = _draws(sampler, n_draws, first_draw)
    sampler = independent(sampler)
    best = [
        _values(sampler, number, candidates, utility).argmax()
        for number in range(first, first + count)
    ]
    return torch.stack(best)


def thompson_batch(
    sampler: FunctionSampler,
    candidates: Any,
    *,
    n_suggestions: int,
    first_draw: int = 0,
    utility: Utility | None = None,
) -> Tensor:
    """Different candidates to try at once: each drawn function takes its best one left.

    Parameters
    ----------
    sampler, candidates, first_draw, utility
        As for :func:`thompson`.
    n_suggestions : int
        How many, at most as many as there are candidates; one draw each.

    Returns
    -------
    Tensor of int, shape (suggestions,)
        Rows of ``candidates``, no two equal.
    """
    count, first = _draws(sampler, n_suggestions, first_draw)
    sampler = independent(sampler)
    chosen: list[int] = []
    for number in range(first, first + count):
        values = _values(sampler, number, candidates, utility)
        if count > len(values):
            raise ParameterError(
                f"n_suggestions must be at most the number of candidates, "
                f"{len(values)}. Got {count}."
            )
        values = values.clone()
        values[chosen] = -torch.inf
        chosen.append(int(values.argmax()))
    return torch.tensor(chosen)


def thompson_arms(
    sampler: FunctionSampler, contexts: Any, *, first_draw: int = 0
) -> Tensor:
    """The best arm for each context, each under a function of its own.

    Parameters
    ----------
    sampler : FunctionSampler
        Of functions from contexts (rows, *features) to values (rows, arms).
    contexts : Tensor or array, shape (rows, *features)
        Row i is judged by draw ``first_draw + i``.
    first_draw : int
        The number of the first; raise it by the number of rows from call to call.

    Returns
    -------
    Tensor of int, shape (rows,)
        Arms, of equal ones the first.
    """
    count, first = _draws(sampler, max(len(contexts), 1), first_draw)
    sampler = independent(sampler)
    best = [
        _arm_values(sampler, first + row, contexts[row : row + 1]).argmax()
        for row in range(min(count, len(contexts)))
    ]
    return torch.stack(best) if best else torch.zeros(0, dtype=torch.int64)


def independent(sampler: FunctionSampler) -> FunctionSampler:
    """The sampler, with draws that are independent of each other.

    Each decision takes a draw. Those of ``MCDropout`` are stratified unless it is asked
    for others, and so not independent from decision to decision.
    """
    asked = getattr(sampler, "independent", None)
    return asked() if callable(asked) else sampler


def _draws(sampler: object, count: Any, first: Any) -> tuple[int, int]:
    if not callable(getattr(sampler, "function", None)):
        raise InputTypeError(_NO_SAMPLER.format(kind=type(sampler).__name__))
    return check.positive_int("n_draws", count), check.draw_number(first)


@torch.no_grad()
def _values(
    sampler: FunctionSampler, number: int, candidates: Any, utility: Utility | None
) -> Tensor:
    """What one function says of each candidate; shape (candidates,)."""
    outputs = torch.as_tensor(sampler.function(number)(candidates))
    values = outputs if utility is None else utility(outputs)
    n_candidates = len(candidates)
    if n_candidates == 0:
        raise ShapeError("candidates must hold at least one row. Got none.")
    if values.shape not in ((n_candidates,), (n_candidates, 1)):
        raise ShapeError(
            f"A drawn function must give one value per candidate, of shape "
            f"({n_candidates},) or ({n_candidates}, 1). Got {tuple(values.shape)}; "
            f"pass utility= to make one value of several outputs, or use "
            f"thompson_arms if the outputs are arms."
        )
    # E146: a = argmax_a f(a), f = y(., ω_t)
    return check.finite("values of a drawn function", values.reshape(-1))


@torch.no_grad()
def _arm_values(sampler: FunctionSampler, number: int, context: Any) -> Tensor:
    """What one function says of each arm in one context; shape (arms,)."""
    values = torch.as_tensor(sampler.function(number)(context))
    if values.ndim != 2 or len(values) != 1:
        raise ShapeError(
            f"A drawn function must give values of shape (rows, arms). Got "
            f"{tuple(values.shape)} for one row; if candidates are rows, use thompson."
        )
    return check.finite("values of a drawn function", values[0])
