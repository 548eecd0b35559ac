"""What a server has all day: a small model, few rows, other values in every call."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks import models, small_models
from benchmarks.floors import OnePass
from benchmarks.naive import dropout_modules_on, everything_on
from benchmarks.tasks import Case, Classification, Regression, Task, pooled, whole
from benchmarks.workloads import Budget, Target, Workload

N_DRAWS = 100
CALLS = 16
"""Calls after which the same inputs come again; made before the clock starts."""

Inputs = Callable[[int, int], dict[str, Tensor]]
"""Rows and the number of the call -> tensors by name; ``""`` means positional."""


@dataclass(frozen=True)
class LatencyCase:
    """A model, and what is asked of its answers to a few rows."""

    name: str
    description: str
    network: Callable[[], nn.Module]
    inputs: Inputs
    task: Task
    targets: dict[int, Target]
    """By the number of rows."""
    switch_on: Callable[[nn.Module], None] = dropout_modules_on
    naive_draws: int = N_DRAWS
    """Draws at which the loop is timed; its time is scaled."""
    checked_rows: int | None = None
    """Rows in the comparison with the loop; ``None`` means those that are timed."""

    def model(self) -> nn.Module:
        """Build the model in eval mode, the same at every call."""
        return models.frozen(self.network)

    def stream(self, model: nn.Module, rows: int) -> Iterator[Case]:
        """Inputs of call after call for ``model``, made beforehand."""
        return cycle([self._case(model, rows, call) for call in range(CALLS)])

    def workload(self, rows: int) -> Workload:
        """The first call as a workload, which the guard can check."""
        return Workload(
            name=self.name,
            description=self.description,
            network=self.network,
            inputs=lambda n: self.inputs(n, 0),
            rows=rows,
            n_draws=N_DRAWS,
            task=self.task,
            target=self.targets[rows],
            floor=OnePass(),
            budget=Budget(naive=self.naive_draws, memory=N_DRAWS, quick=10),
            switch_on=self.switch_on,
            checked_rows=self.checked_rows,
        )

    def _case(self, model: nn.Module, rows: int, call: int) -> Case:
        named = self.inputs(rows, call)
        args = (named.pop(""),) if "" in named else ()
        return Case(model, args, named)


def mean_state(output: Any) -> Tensor:
    """Read the last hidden state of a Hugging Face model, averaged over its places.

    Single places have two modes, token dropped or not: too far from a Gaussian for the
    guard's comparison of variances with few draws.
    """
    return whole(output.last_hidden_state.mean(1))


def forces(output: Any) -> Tensor:
    """Read the forces."""
    return whole(output["forces"])


def _generator(call: int) -> torch.Generator:
    return torch.Generator().manual_seed(call + 1)


def _normal(*event: int) -> Inputs:
    def inputs(rows: int, call: int) -> dict[str, Tensor]:
        return {"": torch.randn(rows, *event, generator=_generator(call))}

    return inputs


def _tokens(rows: int, call: int, *, length: int = 16) -> dict[str, Tensor]:
    ids = torch.randint(3, 1000, (rows, length), generator=_generator(call))
    return {"input_ids": ids}


def _tokens_of_new_length(rows: int, call: int) -> dict[str, Tensor]:
    return _tokens(rows, call, length=8 + call)


def _ragged(rows: int, call: int) -> dict[str, Tensor]:
    generator = _generator(call)
    x = torch.randn(rows, 12, 16, generator=generator)
    return {"x": x, "lengths": 12 - torch.arange(rows) % 6}


def _spectra(rows: int, call: int) -> dict[str, Tensor]:
    generator = _generator(call)
    ids = torch.randint(3, 1000, (rows, 8), generator=generator)
    x = torch.randn(rows, 16, 60, generator=generator)
    return {"input_features": x, "decoder_input_ids": ids}


def _everywhere(target: Target, rows: Sequence[int] = (1, 16)) -> dict[int, Target]:
    return dict.fromkeys(rows, target)


_FASTER = _everywhere(Target(1.0))
_CLEARLY_FASTER = _everywhere(Target(1.5))

CASES: tuple[LatencyCase, ...] = (
    LatencyCase(
        name="MLP",
        description="10-100-100-1, dropout before every layer but the first",
        network=small_models.mlp,
        inputs=_normal(10),
        task=Regression(),
        targets={1: Target(20), 16: Target(8)},
    ),
    LatencyCase(
        name="LeNet",
        description="dropout before the last layer, images 28x28",
        network=partial(models.lenet, dropout_everywhere=False),
        inputs=_normal(1, 28, 28),
        task=Classification(),
        targets={1: Target(1.0, passes=2.0), 16: Target(1.0, passes=1.3)},
    ),
    LatencyCase(
        name="ResNet-18",
        description="dropout before the last layer, images 3x64x64",
        network=models.resnet18,
        inputs=_normal(3, 64, 64),
        task=Classification(),
        targets=_everywhere(Target(1.0, passes=1.15)),
        naive_draws=10,
    ),
    LatencyCase(
        name="LSTM",
        description="2 layers of 64, dropout between them and before the head",
        network=small_models.LSTMClassifier,
        inputs=_normal(12, 16),
        task=Classification(),
        targets=_everywhere(Target(4)),
        switch_on=everything_on,
    ),
    LatencyCase(
        name="BERT",
        description="2 layers of 64, 16 tokens, dropout at every site",
        network=small_models.bert,
        inputs=_tokens,
        task=Regression(pooled),
        targets=_everywhere(Target(3)),
        switch_on=everything_on,
    ),
    LatencyCase(
        name="BART",
        description="2 + 2 layers of 64, 16 tokens",
        network=small_models.bart,
        inputs=_tokens,
        task=Regression(mean_state),
        targets=_CLEARLY_FASTER,
        switch_on=everything_on,
    ),
    LatencyCase(
        name="Whisper",
        description="2 + 2 layers of 64, 60 frames and 8 tokens",
        network=small_models.whisper,
        inputs=_spectra,
        task=Regression(mean_state),
        targets=_CLEARLY_FASTER,
        switch_on=everything_on,
    ),
    LatencyCase(
        name="Wav2Vec2",
        description="2 layers of 64, 800 samples, layerdrop 0",
        network=small_models.wav2vec2,
        inputs=_normal(800),
        task=Regression(mean_state),
        targets=_CLEARLY_FASTER,
        switch_on=everything_on,
    ),
    LatencyCase(
        name="early exit",
        description="4 blocks with a head each, left by a drawn value",
        network=small_models.EarlyExit,
        inputs=_normal(16),
        task=Classification(),
        targets=_FASTER,
        checked_rows=1,  # rows decide together when to leave
    ),
    LatencyCase(
        name="pack",
        description="dropout, then a packed sequence, LSTM of 64",
        network=small_models.DropThenPack,
        inputs=_ragged,
        task=Classification(),
        targets=_FASTER,
    ),
    LatencyCase(
        name="BERT, new length",
        description="as BERT, 8 to 23 tokens, another number in every call",
        network=small_models.bert,
        inputs=_tokens_of_new_length,
        task=Regression(pooled),
        targets=_FASTER,
        switch_on=everything_on,
    ),
    LatencyCase(
        name="forces",
        description="energy and forces, autograd in the forward",
        network=small_models.EnergyAndForces,
        inputs=_normal(12),
        task=Regression(forces),
        targets=_FASTER,
    ),
)


def select(names: Sequence[str] | None) -> tuple[LatencyCase, ...]:
    """Return the cases with these names, or all; names of other benchmarks are none."""
    return tuple(case for case in CASES if not names or case.name in names)
