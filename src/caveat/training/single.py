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
from caveat.errors import DivergedError, ParameterError
from caveat.training.generators import OwnGenerators
from caveat.training.members import Rows
from caveat.training.objectives import Objective
from caveat.training.schedules import Schedule, decay
from caveat.training.streams import RowOrder

Module = TypeVar("Module", bound=nn.Module)


def fit_module(
    model: Module,
    rows: Rows,
    *,
    objective: Objective,
    schedule: Schedule,
    precision: float,
    lengthscale: float,
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
    objective : Objective
        The loss of a row.
    schedule : Schedule
        Epochs, batches and rates; without early stopping.
    precision : float
        tau in standard units; 1 for a log-likelihood.
    lengthscale : float
        l of the prior N(0, 1/l²).
    seed : int
        Of the order of rows and of the noise. Torch's own generators are neither read
        nor set, on any device.
    progress : bool or None
        Show a progress bar; None shows it on a terminal.

    Returns
    -------
    nn.Module
        The trained copy, in evaluation mode.
    """
    precision = validation.positive("precision", precision)
    validation.module("model", model)
    if schedule.early_stopping is not None:
        raise ParameterError(
            "fit_module does not stop early. Leave early_stopping out, or choose the "
            "number of epochs by a search."
        )
    if getattr(objective, "beta", 0.0):
        raise ParameterError(
            f"fit_module minimises the bound, so beta must be 0. Got {objective!r}."
        )
    own = copy.deepcopy(model).train()
    optimiser = torch.optim.Adam(own.parameters(), lr=schedule.learning_rate)
    order = RowOrder(len(rows), schedule, seed)
    total = schedule.n_steps(len(rows))
    factor, noisy = decay(schedule.decay), OwnGenerators(seed)
    with ProgressBar("Training steps", total, progress) as bar, torch.enable_grad():
        for step in range(total):
            places = order.take(1)[0]
            chosen = torch.from_numpy(places[places >= 0])
            with noisy:
                outputs = own(rows.x[chosen])
            loss = objective.loss(outputs, rows.y[chosen]).mean()
            loss = loss + noise.kl(own, lengthscale) / (precision * len(rows))
            optimiser.zero_grad()
            loss.backward()
            share = float(factor(np.array(step / total)))
            for group in optimiser.param_groups:
                group["lr"] = schedule.learning_rate * share
            optimiser.step()
            bar.advance()
    last = float(loss.detach())
    if not math.isfinite(last):
        raise DivergedError(
            f"training of {type(model).__name__} diverged: its loss is {last}. "
            "Lower the learning rate."
        )
    return own.eval()
