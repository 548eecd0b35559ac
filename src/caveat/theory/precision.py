"""Model precision, weight decay and length-scale: any two give the third.

Dropout training minimises, over N rows,

    (1/N) sum_i c |y_i - f(x_i)|² + sum_layers lambda |M|² + lambda_b |m|²

with M the weights, m the biases and c the scale of the loss that was coded. It equals
minus the bound of the deep Gaussian process (papers 000 and 001) with observation
precision tau and prior N(0, 1/l²) on each weight, divided by tau N / (2c), if

    lambda = c p l² / (tau N),      lambda_b = c l² / (tau N),      p = Pr(keep).

Paper 001's eq. 12 is the case c = 1/2. Torch's inverted dropout divides what it keeps
by p and so stores W = p M: a penalty lambda |W|² then has lambda = c l² / (p tau N).
"""

import math

from torch.optim import Optimizer

from caveat import _validation as validation
from caveat.errors import ParameterError
from caveat.theory.loss import HALF_SQUARED_ERROR, Loss

_DECOUPLED = {"AdamW", "Adafactor", "Muon", "Lion", "SGDW", "LAMB", "Lamb"}


def model_precision(
    *,
    lengthscale: float,
    keep_prob: float,
    n_train: int,
    l2_penalty: float,
    loss: Loss = HALF_SQUARED_ERROR,
    inverted: bool = False,
) -> float:
    """Observation precision tau that a penalty and a length-scale stand for.

    tau = c p l² / (N lambda), paper 001 eq. 12 for any loss (ledger E15). The defaults
    are the paper's; torch's own dropout needs ``inverted=True``.

    Parameters
    ----------
    lengthscale : float
        l; the prior of each weight is N(0, 1/l²).
    keep_prob : float
        p, one minus the drop rate on the input of the layer.
    n_train : int
        N, the number of training rows.
    l2_penalty : float
        lambda in ``lambda * W.square().sum()``; half an optimiser's ``weight_decay``.
    loss : Loss
        What is coded as the data term.
    inverted : bool
        True if kept units are divided by p while training (torch, Keras), so that the
        penalised weights are p times the papers'.

    Returns
    -------
    float
        tau in the units the net is trained in; see ``precision_in_units_of_y``.

    Examples
    --------
    >>> known = dict(lengthscale=1.0, keep_prob=0.9, n_train=200, l2_penalty=1e-3)
    >>> round(model_precision(**known), 9)
    2.25
    >>> round(model_precision(**known, inverted=True), 9)
    2.777777778
    """
    if not loss.gaussian:
        raise ParameterError(
            "A log-likelihood has no open precision: tau is 1 there. "
            "Use lengthscale(precision=1.0, …) to see what the penalty says."
        )
    length, keep, n_rows = _prior(lengthscale, keep_prob, n_train)
    penalty = validation.positive("l2_penalty", l2_penalty)
    # E15: tau = c l² / (N lambda), times p; with W = p M divided by p
    tau = _times_keep(loss.scale * length**2 / (n_rows * penalty), keep, inverted)
    return _in_range("precision", tau)


def l2_penalty(
    *,
    precision: float,
    lengthscale: float,
    keep_prob: float,
    n_train: int,
    loss: Loss = HALF_SQUARED_ERROR,
    inverted: bool = False,
) -> float:
    """Penalty lambda on |W|² of a layer that a precision and a length-scale ask for.

    lambda = c p l² / (tau N) (ledger E14), one for each layer if the layers have
    several keep probabilities: one common lambda means a length-scale per layer.

    Parameters
    ----------
    precision : float
        tau in the units the net is trained in; 1 for a log-likelihood.
    lengthscale, keep_prob, n_train, loss, inverted
        As in ``model_precision``.

    Returns
    -------
    float
        lambda in ``lambda * W.square().sum()``.

    Examples
    --------
    >>> known = dict(precision=2.25, lengthscale=1.0, n_train=200)
    >>> [round(l2_penalty(keep_prob=p, **known), 9) for p in (0.9, 0.45)]
    [0.001, 0.0005]
    """
    keep = validation.keep_prob("keep_prob", keep_prob)
    unit = bias_l2_penalty(
        precision=precision, lengthscale=lengthscale, n_train=n_train, loss=loss
    )
    # E14: lambda = p lambda_b on M; lambda_b / p on W = p M, as p |M|² = |W|² / p
    return _in_range("l2_penalty", _times_keep(unit, keep, inverted))


def bias_l2_penalty(
    *,
    precision: float,
    lengthscale: float,
    n_train: int,
    loss: Loss = HALF_SQUARED_ERROR,
) -> float:
    """Penalty lambda_b on |b|² of biases, or of any weights that nothing drops.

    lambda_b = c l² / (tau N) (ledger E13): 1/p times that of the weights, as biases
    are never dropped.

    Parameters
    ----------
    precision, lengthscale, n_train, loss
        As in ``l2_penalty``.

    Returns
    -------
    float
        lambda_b in ``lambda_b * b.square().sum()``.

    Examples
    --------
    >>> round(bias_l2_penalty(precision=2.25, lengthscale=1.0, n_train=200), 9)
    0.001111111
    """
    tau = _precision_of(loss, precision)
    length, _, n_rows = _prior(lengthscale, 1.0, n_train)
    # E13: lambda_b = c l² / (tau N)
    return _in_range("l2_penalty", loss.scale * length**2 / (n_rows * tau))


def lengthscale(
    *,
    precision: float,
    l2_penalty: float,
    keep_prob: float,
    n_train: int,
    loss: Loss = HALF_SQUARED_ERROR,
    inverted: bool = False,
) -> float:
    """Prior length-scale l of a layer that a penalty and a precision stand for.

    l² = tau N lambda / (c p) (ledger E16).

    Parameters
    ----------
    precision : float
        tau in the units the net is trained in; 1 for a log-likelihood.
    l2_penalty, keep_prob, n_train, loss, inverted
        As in ``model_precision``.

    Returns
    -------
    float
        l; the prior of each weight of the layer is N(0, 1/l²).

    Examples
    --------
    >>> known = dict(precision=2.25, l2_penalty=1e-3, n_train=200)
    >>> round(lengthscale(keep_prob=0.9, **known), 9)
    1.0
    """
    tau = _precision_of(loss, precision)
    penalty = validation.positive("l2_penalty", l2_penalty)
    _, keep, n_rows = _prior(1.0, keep_prob, n_train)
    # E16: l² = tau N lambda / c, divided by p; with W = p M times p
    squared = _times_keep(tau * n_rows * penalty / loss.scale, keep, not inverted)
    return math.sqrt(_in_range("square of the lengthscale", squared))


def weight_decay_from_penalty(l2_penalty: float) -> float:
    """An optimiser's ``weight_decay`` for a penalty lambda |W|²: 2 lambda (ledger E17).

    The optimiser adds ``weight_decay * W`` to the gradient, which is that of
    (weight_decay / 2) |W|². This holds for a decay that passes through the gradient
    (SGD, Adam), not for AdamW: see ``require_coupled_decay``.

    Parameters
    ----------
    l2_penalty : float
        lambda, above 0.

    Returns
    -------
    float
        2 lambda.

    Examples
    --------
    >>> weight_decay_from_penalty(0.001)
    0.002
    """
    # E17: weight_decay = 2 lambda
    return 2.0 * validation.positive("l2_penalty", l2_penalty)


def penalty_from_weight_decay(
    weight_decay: float, *, optimiser: Optimizer | type[Optimizer] | None = None
) -> float:
    """The penalty lambda on |W|² that an optimiser's ``weight_decay`` stands for.

    Parameters
    ----------
    weight_decay : float
        As given to the optimiser.
    optimiser : Optimizer or its class, optional
        Refused if its decay is not the gradient of a penalty (AdamW).

    Returns
    -------
    float
        lambda = weight_decay / 2 (ledger E17).

    Examples
    --------
    >>> from torch import optim
    >>> penalty_from_weight_decay(0.002, optimiser=optim.Adam)
    0.001
    """
    if optimiser is not None:
        require_coupled_decay(optimiser)
    return validation.positive("weight_decay", weight_decay) / 2.0


def require_coupled_decay(optimiser: Optimizer | type[Optimizer]) -> None:
    """Refuse an optimiser whose decay is decoupled, such as AdamW.

    It shrinks weights beside the gradient step, by the same share whatever the size of
    Adam's own step. That is not the gradient of a penalty, so where it comes to rest is
    not the minimum of the objective, and no tau or length-scale belongs to it.

    Parameters
    ----------
    optimiser : Optimizer or its class
        Known as decoupled: AdamW, Adafactor, Muon and their like, and whatever has
        ``decoupled_weight_decay`` switched on.

    Raises
    ------
    ParameterError
        With the reason.

    Examples
    --------
    >>> from torch import optim
    >>> require_coupled_decay(optim.SGD)
    """
    kind = optimiser if isinstance(optimiser, type) else type(optimiser)
    groups = getattr(optimiser, "param_groups", ())
    decoupled = any(group.get("decoupled_weight_decay", False) for group in groups)
    if decoupled or any(base.__name__ in _DECOUPLED for base in kind.__mro__):
        raise ParameterError(
            f"The optimiser must add its weight decay to the gradient. "
            f"{kind.__name__} decays weights beside the gradient, which is not the "
            f"gradient of a penalty, so precision and length-scale say nothing about "
            f"it. Use torch.optim.Adam or torch.optim.SGD."
        )


def _prior(
    lengthscale: float, keep_prob: float, n_train: int
) -> tuple[float, float, int]:
    return (
        validation.lengthscale(lengthscale),
        validation.keep_prob("keep_prob", keep_prob),
        validation.positive_int("n_train", n_train),
    )


def _precision_of(loss: Loss, precision: float) -> float:
    tau = validation.positive("precision", precision)
    if not loss.gaussian and tau != 1.0:
        raise ParameterError(
            f"The precision of a log-likelihood is 1: it has no other noise to scale. "
            f"Got {precision}; pass precision=1.0, or a Loss of squared errors."
        )
    return tau


def _in_range(name: str, found: float) -> float:
    """A result that neither overflowed nor underflowed."""
    if not 0.0 < found < math.inf:
        raise ParameterError(
            f"The {name} that follows is too large or too small for a number: {found}. "
            f"Look at the units of what was given."
        )
    return found


def _times_keep(value: float, keep_prob: float, divide: bool) -> float:
    """``value`` times the keep probability, or divided by it."""
    return value / keep_prob if divide else value * keep_prob
