"""What is asked of a model: how to read one output, and what to ask of Caveat."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from caveat import MCDropout


class Case(NamedTuple):
    """A model in eval mode and the inputs it is called with."""

    model: nn.Module
    args: tuple[Tensor, ...]
    kwargs: dict[str, Any]


class Moments(NamedTuple):
    """Mean and variance over draws of what the model puts out, noise not included."""

    mean: Tensor  # shape: (batch, *event)
    variance: Tensor  # shape: (batch, *event)


class Task(Protocol):
    """A way to read a model, for the naive loop and for Caveat alike."""

    def read(self, output: Any) -> Tensor:
        """Take from one output of the model the tensor that is averaged."""

    def ask(self, sampler: MCDropout, case: Case, n_draws: int) -> Moments:
        """Let Caveat predict and return moments, to be compared with the loop's."""

    def predict(self, sampler: MCDropout, case: Case, n_draws: int) -> object:
        """Let Caveat predict, and read what a user would; this is what is timed."""


def whole(output: Any) -> Tensor:
    """Read an output that is a tensor already."""
    if not isinstance(output, Tensor):
        raise TypeError(f"expected a tensor as output, got {type(output).__name__}")
    return output


def pooled(output: Any) -> Tensor:
    """Read the pooled output of a Hugging Face encoder."""
    return whole(output.pooler_output)


@dataclass(frozen=True)
class Regression:
    """Ask for a Gaussian predictive of the tensor that ``output`` picks."""

    output: Callable[[Any], Tensor] = whole

    def read(self, output: Any) -> Tensor:
        """Pick the tensor."""
        return self.output(output)

    def ask(self, sampler: MCDropout, case: Case, n_draws: int) -> Moments:
        """Call ``regress``; the variance is the epistemic one."""
        options: dict[str, Any] = (
            {} if self.output is whole else {"output": self.output}
        )
        found = sampler.regress(
            *case.args, n_draws=n_draws, precision=1.0, **options, **case.kwargs
        )
        return Moments(found.mean, found.epistemic_variance)

    def predict(self, sampler: MCDropout, case: Case, n_draws: int) -> object:
        """Mean and variance."""
        return self.ask(sampler, case, n_draws)


@dataclass(frozen=True)
class Classification:
    """Ask for a categorical predictive."""

    def read(self, output: Any) -> Tensor:
        """Read the logits."""
        return whole(output)

    def ask(self, sampler: MCDropout, case: Case, n_draws: int) -> Moments:
        """Call ``classify``; mean and variance are those of the logits."""
        found = sampler.classify(*case.args, n_draws=n_draws, **case.kwargs)
        return Moments(found.logits_mean, torch.square(found.logits_std))

    def predict(self, sampler: MCDropout, case: Case, n_draws: int) -> object:
        """Probabilities, entropy and mutual information."""
        found = sampler.classify(*case.args, n_draws=n_draws, **case.kwargs)
        return found.probs, found.entropy, found.mutual_information
