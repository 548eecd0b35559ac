"""The workloads W1 to W6: a network, its inputs, the number of draws, the target."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from benchmarks import models
from benchmarks.floors import Floor, Matmuls, OnePass, PassPerDraw
from benchmarks.naive import dropout_modules_on, everything_on
from benchmarks.tasks import Case, Classification, Regression, Task, pooled


@dataclass(frozen=True)
class Target:
    """What the benchmark has to show."""

    ratio: float
    """At least this many times faster than the naive loop."""
    passes: float | None = None
    """At most this many deterministic passes for all draws, or no such limit."""

    def is_met(self, *, ratio: float, passes: float) -> bool:
        """Tell whether a measured ratio and multiple of one pass are good enough."""
        return ratio >= self.ratio and (self.passes is None or passes <= self.passes)


@dataclass(frozen=True)
class Budget:
    """Draws for the variants that are too slow, or too large, at the full number."""

    naive: int
    """The naive loop when it is timed; its time is scaled to the full number."""
    memory: int
    """The naive loop when its memory is measured; never scaled."""
    quick: int
    """Everything, in a smoke run."""


@dataclass(frozen=True)
class Workload:
    """One line of the benchmark."""

    name: str
    description: str
    network: Callable[[], nn.Module]
    inputs: Callable[[int], dict[str, Tensor]]
    """Fixed random inputs by the name of the argument; ``""`` means positional."""
    rows: int
    n_draws: int
    task: Task
    target: Target
    floor: Floor
    budget: Budget
    switch_on: Callable[[nn.Module], None] = dropout_modules_on
    """How the naive loop makes the model random."""
    checked_rows: int | None = None
    """Rows in the comparison with the naive loop; ``None`` means all."""

    def make(self, rows: int | None = None) -> Case:
        """Build the model in eval mode and its inputs, the same at every call."""
        named = self.inputs(self.rows if rows is None else rows)
        args = (named.pop(""),) if "" in named else ()
        return Case(models.frozen(self.network), args, named)


def _normal(*event: int) -> Callable[[int], dict[str, Tensor]]:
    def inputs(rows: int) -> dict[str, Tensor]:
        return {"": torch.randn(rows, *event, generator=_generator())}

    return inputs


def _tokens(rows: int) -> dict[str, Tensor]:
    return {"input_ids": torch.randint(0, 30_000, (rows, 128), generator=_generator())}


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(1)


def _deep_mlp(name: str, *, drop_rate: float, target: Target, quick: int) -> Workload:
    return Workload(
        name=name,
        description=f"MLP 1-5x1024-1, dropout {drop_rate} at 5 sites, 1000 points",
        network=partial(models.deep_mlp, drop_rate=drop_rate),
        inputs=_normal(1),
        rows=1000,
        n_draws=1000,
        task=Regression(),
        target=target,
        floor=Matmuls(1000, (1, *[1024] * 5, 1), keep_prob=1 - drop_rate),
        budget=Budget(naive=20, memory=100, quick=quick),
    )


WORKLOADS: tuple[Workload, ...] = (
    Workload(
        name="W1",
        description="LeNet, dropout before the last layer, 1000 images 28x28",
        network=partial(models.lenet, dropout_everywhere=False),
        inputs=_normal(1, 28, 28),
        rows=1000,
        n_draws=100,
        task=Classification(),
        target=Target(75, passes=1.4),
        floor=OnePass(),
        budget=Budget(naive=20, memory=100, quick=5),
    ),
    Workload(
        name="W2",
        description="LeNet, dropout before every layer but the first, 1000 images",
        network=partial(models.lenet, dropout_everywhere=True),
        inputs=_normal(1, 28, 28),
        rows=1000,
        n_draws=100,
        task=Classification(),
        target=Target(4),
        floor=PassPerDraw(channels_last=True),
        budget=Budget(naive=10, memory=100, quick=3),
    ),
    _deep_mlp("W3", drop_rate=0.1, target=Target(1.4), quick=5),
    _deep_mlp("W3b", drop_rate=0.5, target=Target(5), quick=10),
    Workload(
        name="W4",
        description="UCI net 13-50-1, dropout 0.05 at 2 sites, 10,000 points",
        network=models.uci_net,
        inputs=_normal(13),
        rows=10_000,
        n_draws=10_000,
        task=Regression(),
        target=Target(10),
        floor=Matmuls(10_000, (13, 50, 1)),
        budget=Budget(naive=100, memory=1000, quick=100),
    ),
    Workload(
        name="W5",
        description="BERT encoder 4x256, dropout 0.1 at every site, 32 x 128 tokens",
        network=models.small_bert,
        inputs=_tokens,
        rows=32,
        n_draws=30,
        task=Regression(pooled),
        target=Target(1.25),
        floor=PassPerDraw(),
        budget=Budget(naive=10, memory=30, quick=2),
        switch_on=everything_on,
        checked_rows=4,
    ),
    Workload(
        name="W6",
        description="ResNet-18, dropout before the last layer, 32 images 3x64x64",
        network=models.resnet18,
        inputs=_normal(3, 64, 64),
        rows=32,
        n_draws=50,
        task=Classification(),
        target=Target(42, passes=1.2),
        floor=OnePass(),
        budget=Budget(naive=10, memory=50, quick=5),
    ),
)


def select(names: Sequence[str] | None) -> tuple[Workload, ...]:
    """Return the workloads with these names (``W3`` means ``W3b`` too), or all."""
    if not names:
        return WORKLOADS
    chosen = tuple(w for w in WORKLOADS if {w.name, w.name[:2]} & set(names))
    unknown = set(names) - {w.name for w in WORKLOADS}
    if unknown:
        known = ", ".join(w.name for w in WORKLOADS)
        raise ValueError(f"no workload {sorted(unknown)}; there are {known}")
    return chosen
