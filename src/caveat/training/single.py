"""One network of any kind, with any noise, trained on the bound in an ordinary loop.

A fleet stacks perceptrons with multiplicative noise. For other modules and other noise
(``caveat.noise``: learned rates, noise on weights) this is the plain way: minimise

    mean loss + KL(q || prior) / (tau N),

which is minus the bound of paper 000 divided by tau N (ledger E29).
"""

import copy
import math
from typing import TypeVar

import numpy as np
import torch
from torch import nn

from caveat import _validation as validation
from caveat import noise
from caveat._progress import ProgressBar
from caveat.errors import CaveatError
from caveat.training.members import Recipe, Rows
from caveat.training.schedules import schedule
from caveat.training.streams import RowOrder, steps_per_epoch

Module = TypeVar("Module", bound=nn.Module)


def fit_module(  # noqa: PLR0913
    model: Module,
    rows: Rows,
    recipe: Recipe,
    *,
    precision: float,
    lengthscale: float,
    learning_rate: float = 1e-2,
    epochs: int = 400,
    seed: int = 0,
    progress: bool | None = False,
) -> Module:
    """Train a copy of a module with its noise switched on.

    Parameters
    ----------
    model : nn.Module
        Of rows (batch, inputs) to outputs; not changed. Its first weights are used.
    rows : Rows
        Standardised.
    recipe : Recipe
        Its objective, batch size and schedule; the architecture is the model's own.
    precision : float
        tau in standard units; 1 for a log-likelihood.
    lengthscale : float
        l of the prior N(0, 1/l²).
    learning_rate : float
        Peak of the schedule.
    epochs : int
        Passes over the rows.
    seed : int
        Of the order of rows and of the noise; torch's own generator is left alone.
    progress : bool or None
        Show a progress bar; None shows it on a terminal.

    Returns
    -------
    nn.Module
        The trained copy, in evaluation mode.
    """
    precision = validation.positive("precision", precision)
    validation.module("model", model)
    own = copy.deepcopy(model).train()
    optimiser = torch.optim.Adam(own.parameters(), lr=learning_rate)
    order = RowOrder(len(rows), recipe, seed)
    total = validation.positive_int("epochs", epochs) * steps_per_epoch(
        len(rows), recipe
    )
    factor = schedule(recipe.schedule)
    bar = ProgressBar("Training steps", total, progress)
    with torch.random.fork_rng([]), torch.enable_grad(), bar:
        torch.manual_seed(seed)
        for step in range(total):
            places = order.take(1)[0]
            chosen = torch.from_numpy(places[places >= 0])
            outputs = own(rows.x[chosen])
            loss = recipe.objective.loss(outputs, rows.y[chosen]).mean()
            loss = loss + noise.kl(own, lengthscale) / (precision * len(rows))
            optimiser.zero_grad()
            loss.backward()
            for group in optimiser.param_groups:
                group["lr"] = learning_rate * float(factor(np.array(step / total)))
            optimiser.step()
            bar.advance()
    last = float(loss.detach())
    if not math.isfinite(last):
        raise CaveatError(
            f"training of {type(model).__name__} diverged: its loss is {last}. "
            "Lower the learning rate."
        )
    return own.eval()
