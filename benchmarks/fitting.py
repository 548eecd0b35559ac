"""The workloads with trained weights: short trainings on data shipped or made.

What stratified draws save depends on what a network has learned, so weights at their
start will not do here.
"""

import torch
from sklearn.datasets import load_digits, make_friedman1
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, interpolate, mse_loss

from benchmarks.tasks import Case
from benchmarks.workloads import Workload

BATCH, RATE = 64, 1e-3


def trained(workload: Workload, *, steps: int) -> Case:
    """The model after ``steps`` steps on its data, and rows of that data to ask."""
    case = workload.make(2)
    x, y = data(workload.name)
    model, classes = case.model, not y.is_floating_point()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        # Where the output is no prediction yet, a linear layer is trained with it.
        outputs = workload.task.read(model(*case.args, **case.kwargs)).shape[-1]
        wanted = 10 if classes else 1
        same = outputs == wanted or workload.name in ("W1", "W2", "W6")
        head = nn.Identity() if same else nn.Linear(outputs, wanted)
        workload.switch_on(model)
        optimiser = torch.optim.Adam([*model.parameters(), *head.parameters()], RATE)
        batch = 16 if workload.name in ("W5", "W6") else BATCH
        for _ in range(steps):
            rows = torch.randint(len(x), (batch,))
            found = head(workload.task.read(_called(model, case, x[rows])))
            loss = cross_entropy if classes else mse_loss
            optimiser.zero_grad()
            loss(found, y[rows]).backward()
            optimiser.step()
    asked = x[torch.arange(workload.rows) % len(x)]
    names = list(case.kwargs)
    args, kwargs = ((asked,), {}) if not names else ((), {names[0]: asked})
    return Case(model.eval(), args, kwargs)


def data(name: str) -> tuple[Tensor, Tensor]:
    """Inputs and targets in the shape that a workload takes."""
    if name in ("W3", "W3b"):
        x = torch.linspace(-2.0, 2.0, 1000)[:, None]
        return x, torch.sin(3.0 * x)
    if name == "W4":
        table, target = make_friedman1(10_000, 13, noise=1.0, random_state=0)
        y = torch.tensor(target, dtype=torch.float32)[:, None]
        return torch.tensor(table, dtype=torch.float32), (y - y.mean()) / y.std()
    pixels, labels = load_digits(return_X_y=True)
    images = torch.tensor(pixels, dtype=torch.float32).view(-1, 1, 8, 8)
    y = torch.tensor(labels)
    if name == "W5":  # a pixel is a word: its place and its grey
        words = images.flatten(1).long() + 17 * torch.arange(64)
        return words.repeat_interleave(2, 1), y
    size = 64 if name == "W6" else 28
    images = interpolate(images / 8 - 1, (size, size), mode="bilinear")
    return (images.expand(-1, 3, -1, -1) if name == "W6" else images), y


def _called(model: nn.Module, case: Case, rows: Tensor) -> object:
    names = list(case.kwargs)
    return model(**{names[0]: rows}) if names else model(rows)
