"""What a tool makes of an awkward model: a spread, none, or an error."""

import copy
import warnings
from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks.awkward import Awkward, everything_but_norms_on
from benchmarks.naive import naive_draws
from benchmarks.tasks import Case, whole
from caveat import MCDropout

Draw = Callable[[nn.Module, Tensor, int], Tensor]
"""Model, input and number of draws in, draws out."""

N_DRAWS = 200
TOO_SMALL = 0.8
"""Share of the true spread below which a cell is marked; noise stays well above."""


def reference(model: nn.Module, x: Tensor, n_draws: int) -> Tensor:
    """Draw by the plain loop on a copy with every site on and norms in eval mode."""
    switched_on = copy.deepcopy(model)
    everything_but_norms_on(switched_on)
    return naive_draws(Case(switched_on, (x,), {}), whole, n_draws=n_draws)


def caveat(model: nn.Module, x: Tensor, n_draws: int) -> Tensor:
    """Draw with Caveat."""
    return whole(MCDropout(model, seed=0).draws(x, n_draws=n_draws))


def spread(draws: Tensor) -> float:
    """Return the standard deviation over draws, averaged over rows and outputs."""
    return draws.std(0).mean().item()


def true_spread(awkward: Awkward) -> float:
    """Return the spread of the plain loop."""
    model, x = awkward.make()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return spread(reference(model, x, N_DRAWS))


def outcome(draw: Draw, awkward: Awkward) -> str:
    """Return the spread in words: a number, silence about a zero, or the error."""
    model, x = awkward.make()
    before = copy.deepcopy(model.state_dict())
    with warnings.catch_warnings(record=True) as caught, torch.random.fork_rng([]):
        warnings.simplefilter("always", UserWarning)
        torch.manual_seed(0)
        try:
            found = spread(draw(model, x, N_DRAWS))
        except Exception as error:  # how a tool refuses is what is asked
            return f"raises {type(error).__name__}"
    words = _words(found, true_spread(awkward), warned=bool(caught))
    moved = any(
        not torch.equal(value, before[name])
        for name, value in model.state_dict().items()
    )
    return f"{words}, model changed" if moved else words


def _words(found: float, true: float, *, warned: bool) -> str:
    said = ", warned" if warned else ", silent"
    if found == 0:
        return f"0{said}"
    return f"{found:.3f}" + (f" (too small{said})" if found < TOO_SMALL * true else "")
