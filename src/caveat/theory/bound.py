"""The variational bound on the evidence, and the objective that training minimises."""

import math

from torch import Tensor

from caveat import _validation as validation
from caveat.theory.loss import HALF_SQUARED_ERROR, Loss


def gaussian_log_likelihood(
    draws: Tensor, y: Tensor, *, precision: float | Tensor
) -> Tensor:
    """log N(y; f_t(x), I/tau) of each row under each draw (ledger E27).

    Divided by -tau it is paper 001's E(y, f) of eq. 9 with its constant,
    |y - f|²/2 + (D / (2 tau)) log(2 pi / tau).

    Parameters
    ----------
    draws : Tensor, shape (draws, batch, *event)
        Outputs of the net, one mask per draw; gradients pass through.
    y : Tensor, shape (batch, *event)
        What was observed.
    precision : float or Tensor
        tau, a number or one per output.

    Returns
    -------
    Tensor, shape (draws, batch)
        Summed over the event.

    Examples
    --------
    >>> import torch
    >>> draws, y = torch.zeros(2, 3, 1), torch.ones(3, 1)
    >>> gaussian_log_likelihood(draws, y, precision=2 * math.pi)[:, 0]
    tensor([-3.1416, -3.1416])
    """
    draws = validation.draws(draws, axes="(draws, batch, *event)", least=2)
    y = validation.target(y, draws[0])
    tau = validation.precision_for(precision, draws[0])
    # E27: sum_d -tau_d (y_d - f_td)² / 2 - log(2 pi / tau_d) / 2
    terms = -0.5 * (tau * (y - draws).square() - (tau / (2 * math.pi)).log())
    return terms.reshape(*draws.shape[:2], -1).sum(-1)


def elbo(log_likelihood: Tensor, kl: float | Tensor, *, n_train: int) -> Tensor:
    """Lower bound on the log evidence of all N training rows (ledger E28).

    N times the mean log-likelihood over draws and rows, less the KL of q(w) from the
    prior (paper 000 eqs 7, 12). From a random batch of rows and random draws it
    is an unbiased estimate, and so is its gradient.

    Parameters
    ----------
    log_likelihood : Tensor, shape (draws, batch)
        log p(y_i | x_i, w_t) of some or all rows.
    kl : float or Tensor
        A single number: the sum over the rows of all weight matrices and biases, of
        the functions in ``caveat.theory``.
    n_train : int
        N, however many rows are in the batch.

    Returns
    -------
    Tensor, shape ()
        In nats, to be maximised.

    Examples
    --------
    >>> import torch
    >>> elbo(torch.tensor([[-1.0, -3.0]]), 5.0, n_train=100)
    tensor(-205.)
    """
    values = validation.log_likelihoods(log_likelihood)
    divergence = validation.scalar("kl", kl).to(values)
    # E28: N mean_{t,i} log p(y_i | x_i, w_t) - KL
    return validation.positive_int("n_train", n_train) * values.mean() - divergence


def objective_from_elbo(
    bound: Tensor, *, precision: float, n_train: int, loss: Loss = HALF_SQUARED_ERROR
) -> Tensor:
    """Minus the bound, on the scale of the loss that is coded (ledger E29).

    -(2c / (tau N)) times the bound. For Gaussian noise this is the dropout objective,
    loss plus penalties (paper 001 eqs 1 and 9), up to a constant that depends on tau,
    l and s, not on the weights.

    Parameters
    ----------
    bound : Tensor, shape ()
        From ``elbo``.
    precision : float
        tau, as in the log-likelihood; 1 if that is not Gaussian.
    n_train : int
        N.
    loss : Loss
        What is coded as the data term.

    Returns
    -------
    Tensor, shape ()
        To be minimised.

    Examples
    --------
    >>> import torch
    >>> objective_from_elbo(torch.tensor(-200.0), precision=4.0, n_train=100)
    tensor(0.5000)
    """
    tau = validation.positive("precision", precision)
    n_rows = validation.positive_int("n_train", n_train)
    # E29: -(2c / (tau N)) bound
    return -2.0 * loss.scale / (tau * n_rows) * validation.scalar("bound", bound)
