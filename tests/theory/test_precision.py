"""tau, lambda and l: reference values, round trips, and the linear model."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from caveat.errors import InputTypeError, ParameterError
from caveat.theory import (
    Loss,
    bias_l2_penalty,
    l2_penalty,
    lengthscale,
    model_precision,
    penalty_from_weight_decay,
    require_coupled_decay,
    weight_decay_from_penalty,
)

# theory.md, section 13: p = .9, l = 1, N = 200, lambda = 1e-3
KNOWN = {"lengthscale": 1.0, "keep_prob": 0.9, "n_train": 200}
LOSSES = st.sampled_from(
    [
        Loss.half_squared_error(),
        Loss.squared_error(),
        Loss.mean_squared_error(n_outputs=3),
        Loss.half_squared_error().summed_over_rows(32),
    ]
)
POSITIVE = st.floats(1e-6, 1e6)
SETTINGS = {
    "keep_prob": st.floats(0.01, 1.0),
    "n_train": st.integers(1, 10**7),
    "loss": LOSSES,
    "inverted": st.booleans(),
}


def double(values):
    return torch.tensor(values, dtype=torch.float64)


# Reference values


@pytest.mark.parametrize(
    ("how", "tau"),
    [
        ({}, 2.25),
        ({"loss": Loss.squared_error()}, 4.5),
        ({"l2_penalty": penalty_from_weight_decay(1e-3)}, 4.5),
        ({"inverted": True}, 2.7777777778),
    ],
)
def test_reference_values(how, tau):
    found = model_precision(**({"l2_penalty": 1e-3} | KNOWN | how))
    assert found == pytest.approx(tau, abs=1e-10)


def test_bias_penalty_is_that_of_the_weights_over_keep_prob():
    known = {"precision": 2.25, "lengthscale": 1.0, "n_train": 200}
    assert l2_penalty(keep_prob=0.9, **known) == pytest.approx(1e-3, rel=1e-14)
    assert bias_l2_penalty(**known) == pytest.approx(1e-3 / 0.9, rel=1e-14)


def test_every_row_of_the_table_of_theory_5():
    p, length, n, penalty, outputs = 0.8, 0.3, 50, 2e-3, 4
    known = {"lengthscale": length, "keep_prob": p, "n_train": n}
    mse = Loss.mean_squared_error(outputs)
    table = [
        (
            model_precision(l2_penalty=penalty, **known),
            p * length**2 / (2 * n * penalty),
        ),
        (
            model_precision(l2_penalty=penalty, loss=Loss.squared_error(), **known),
            p * length**2 / (n * penalty),
        ),
        (
            model_precision(l2_penalty=penalty, loss=mse, **known),
            p * length**2 / (outputs * n * penalty),
        ),
        (
            model_precision(l2_penalty=penalty_from_weight_decay(penalty), **known),
            p * length**2 / (n * penalty),
        ),
        (
            model_precision(
                l2_penalty=penalty_from_weight_decay(penalty), loss=mse, **known
            ),
            2 * p * length**2 / (outputs * n * penalty),
        ),
        (
            model_precision(l2_penalty=penalty, inverted=True, **known),
            length**2 / (2 * n * penalty * p),
        ),
    ]
    for found, expected in table:
        assert found == pytest.approx(expected, rel=1e-14)


# Properties


@given(tau=POSITIVE, length=POSITIVE, **SETTINGS)
def test_any_two_give_the_third(tau, length, **how):
    penalty = l2_penalty(precision=tau, lengthscale=length, **how)
    back = model_precision(lengthscale=length, l2_penalty=penalty, **how)
    assert back == pytest.approx(tau, rel=1e-12)
    scale = lengthscale(precision=tau, l2_penalty=penalty, **how)
    assert scale == pytest.approx(length, rel=1e-12)


@given(tau=POSITIVE, length=POSITIVE, **SETTINGS)
def test_the_objective_is_the_bound_rescaled(tau, length, **how):
    """lambda |M|² over the loss's c equals (p l²/2) |M|² over tau N / 2."""
    keep, inverted = how["keep_prob"], how["inverted"]
    stored = keep if inverted else 1.0  # W of a unit M
    penalty = l2_penalty(precision=tau, lengthscale=length, **how) * stored**2
    kl = 0.5 * keep * length**2
    expected = kl * 2 * how["loss"].scale / (tau * how["n_train"])
    assert penalty == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("ratio", "same"), [("2 N tau / p", True), ("tau", False)])
def test_ratio_of_the_factors_of_loss_and_decay(ratio, same):
    """Eqs 1 and 3 of paper 000, r1 E + r2 |M|², against eqs 14 and 15 at l = 1."""
    tau, keep, n_rows = 2.5, 0.75, 7
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(n_rows, k, generator=generator).double() for k in (3, 1))
    r1 = {"2 N tau / p": 2 * n_rows * tau / keep, "tau": tau}[ratio]  # at r2 = 1
    quotients = []
    for _ in range(3):
        weights = torch.randn(3, 1, generator=generator).double()
        square, decay = (y - x @ weights).square().sum(), weights.square().sum()
        objective = r1 * square / (2 * n_rows) + decay
        quotients.append(objective / (tau / 2 * square + keep / 2 * decay))
    assert torch.allclose(torch.stack(quotients), quotients[0]) is same
    penalty = l2_penalty(precision=tau, lengthscale=1.0, keep_prob=keep, n_train=n_rows)
    assert 1 / penalty == pytest.approx(2 * n_rows * tau / keep)


@given(penalty=POSITIVE)
def test_decay_and_penalty_round_trip(penalty):
    assert penalty_from_weight_decay(weight_decay_from_penalty(penalty)) == penalty


def test_weight_decay_has_the_gradient_of_the_penalty():
    weight, penalty = nn.Parameter(torch.tensor([2.0, -3.0], dtype=torch.float64)), 0.05
    (penalty * weight.square().sum()).backward()
    decay = weight_decay_from_penalty(penalty)
    torch.testing.assert_close(weight.grad, decay * weight.detach())


# Other likelihoods


def test_a_log_likelihood_has_precision_one():
    loss = Loss.negative_log_likelihood()
    known = {"keep_prob": 0.5, "n_train": 100, "loss": loss}
    penalty = l2_penalty(precision=1.0, lengthscale=2.0, **known)
    assert penalty == pytest.approx(0.5 * 2.0**2 / (2 * 100))
    with pytest.raises(ParameterError, match="is 1"):
        l2_penalty(precision=2.0, lengthscale=2.0, **known)
    with pytest.raises(ParameterError, match="no open precision"):
        model_precision(lengthscale=2.0, l2_penalty=penalty, **known)


# Theory.md, section 5: without a hidden layer it is Bayesian dropout regression


def test_linear_model_with_lambda0_equal_to_2_n_lambda():
    """Minimise eq. 1 of paper 001 over all masks; section 13 gives paper 002's mu."""
    x = double([[1, 0.5], [-0.4, 1.2], [0.8, -1], [0.3, 0.9]])
    y = double([1.2, 0.1, 0.4, 0.9])
    keep, prior = 0.6, 0.5  # f = .4, lambda0 = .5 = p l² / tau
    tau = 3.0
    penalty = l2_penalty(
        precision=tau,
        lengthscale=math.sqrt(prior * tau / keep),
        keep_prob=keep,
        n_train=len(x),
    )
    assert 2 * len(x) * penalty == pytest.approx(prior, rel=1e-14)
    masks = [(0, 0, 0.16), (0, 1, 0.24), (1, 0, 0.24), (1, 1, 0.36)]

    def objective(weights):
        value = penalty * weights.square().sum()
        for first, second, probability in masks:
            mask = double([first, second])
            error = y - x @ (mask * weights)
            value = value + probability * 0.5 * error.square().mean()
        return value

    zero = torch.zeros(2).double()
    gradient = torch.autograd.functional.jacobian(objective, zero)
    hessian = torch.autograd.functional.hessian(objective, zero)
    found = -torch.linalg.solve(hessian, gradient)  # it is quadratic
    expected = double([0.677269288047, 0.308594862033])
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


# Refusals


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lengthscale": 0.0}, "lengthscale must be finite and above 0"),
        ({"lengthscale": math.inf}, "lengthscale must be finite"),
        ({"keep_prob": 0.0}, "keep_prob"),
        ({"keep_prob": 1.1}, "one minus the drop rate"),
        ({"n_train": 0}, "n_train must be at least 1"),
        ({"l2_penalty": -1.0}, "l2_penalty"),
    ],
)
def test_values_out_of_range(change, message):
    with pytest.raises(ParameterError, match=message):
        model_precision(**({"l2_penalty": 1e-3} | KNOWN | change))


def test_kinds():
    with pytest.raises(InputTypeError, match="n_train"):
        model_precision(**(KNOWN | {"l2_penalty": 1e-3, "n_train": 2.5}))
    with pytest.raises(InputTypeError, match="keep_prob"):
        model_precision(**(KNOWN | {"l2_penalty": 1e-3, "keep_prob": "half"}))


def optimisers():
    weight = [nn.Parameter(torch.ones(1))]
    return [
        torch.optim.AdamW,
        torch.optim.AdamW(weight),
        torch.optim.NAdam(weight, decoupled_weight_decay=True),
    ]


@pytest.mark.parametrize("optimiser", optimisers(), ids=["class", "object", "option"])
def test_decoupled_decay_is_refused_with_the_reason(optimiser):
    with pytest.raises(ParameterError, match="not the gradient of a penalty"):
        require_coupled_decay(optimiser)
    with pytest.raises(ParameterError, match=r"torch\.optim\.Adam or"):
        penalty_from_weight_decay(1e-2, optimiser=optimiser)


def test_coupled_decay_is_accepted():
    weight = [nn.Parameter(torch.ones(1))]
    for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.NAdam):
        require_coupled_decay(kind)
        require_coupled_decay(kind(weight, lr=0.1))
