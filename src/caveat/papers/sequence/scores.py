"""Error and log-likelihood of draws: of ratings, and of sentiments."""

import copy
from typing import NamedTuple

import torch
from torch import Tensor

from caveat.papers.sequence.networks import Reader
from caveat.papers.sequence.texts import Texts, TextTask
from caveat.predictive import CategoricalPredictive, GaussianPredictive
from caveat.sampling.mcdropout import MCDropout
from caveat.training.likelihood import best_scale, residuals

_PRECISIONS = (1.0, 1e4)  # of ratings, whose standard deviation is 0.18


class Score(NamedTuple):
    """How well targets are predicted."""

    error: float  # root mean squared error of a rating, or share of wrong labels
    log_likelihood: float  # mean over the rows, in nats


@torch.no_grad()
def point_draws(reader: Reader, part: Texts) -> Tensor:
    """Outputs without masks, as a single draw (1, rows, outputs)."""
    still = copy.deepcopy(reader).eval()
    return torch.cat([still(words) for words in part.words]).unsqueeze(0)


def mc_draws(mc: MCDropout, part: Texts, n_draws: int) -> Tensor:
    """Outputs under masks, (draws, rows, outputs); one draw is one function."""
    groups = [mc.draws(words, n_draws=n_draws, progress=False) for words in part.words]
    return torch.cat(groups, 1)


def best_precision(task: TextTask, draws: Tensor) -> float:
    """Of the noise in ratings, where validation rows are most likely (ledger E3)."""
    if task.n_outputs > 1:
        return 1.0
    errors = residuals(_ratings(task, draws), None, _targets(task, task.validation))
    low, high = _PRECISIONS
    return best_scale([errors], low=low, high=high).scale


def score(task: TextTask, part: Texts, draws: Tensor, precision: float) -> Score:
    """Of the mean of draws, or of the mean of their probabilities.

    Draws have shape (draws, rows, outputs); the precision is that of ratings.
    """
    targets = _targets(task, part)
    if task.n_outputs > 1:
        classes = CategoricalPredictive.from_logits(draws)
        wrong = (classes.label != targets).double().mean()
        return Score(float(wrong), float(classes.log_prob(targets).mean()))
    ratings = GaussianPredictive.from_draws(_ratings(task, draws), precision=precision)
    error = (ratings.mean - targets).square().mean().sqrt()
    return Score(float(error), float(ratings.log_prob(targets).mean()))


def _ratings(task: TextTask, draws: Tensor) -> Tensor:
    return draws.double() * task.scale + task.shift


def _targets(task: TextTask, part: Texts) -> Tensor:
    targets = torch.cat(part.targets)
    return targets if task.n_outputs > 1 else _ratings(task, targets)
