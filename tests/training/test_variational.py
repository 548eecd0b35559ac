"""Factorised Gaussian weights of a stack: the gradient, the prior, the modules."""

import math

import pytest
import torch
from torch.distributions import Normal, kl_divergence

from caveat.errors import DivergedError, ParameterError
from caveat.noise import FactorisedGaussian
from caveat.noise.factorised import FactorisedLayer
from caveat.training import Member, NetworkSpec, Schedule
from caveat.training.members import Architecture, Rows
from caveat.training.stack import Stack, Workspace, layers
from caveat.training.variational import FactorisedStack, train_factorised

NETWORKS, ROWS, N_TRAIN, INPUTS, HIDDEN = 2, 7, 40, 3, 5


def a_spec(**changes):
    schedule = Schedule(60, 16, changes.pop("rate", 1e-2), "cosine", keep_last=True)
    return NetworkSpec(
        (HIDDEN,),
        noise=FactorisedGaussian(),
        drop_rate=0.5,
        input_drop_rate=0.5,
        schedule=schedule,
    )


def members_of(data, **changes):
    spec = a_spec(**changes)
    return [
        Member.of(spec, f"{k}", precision=1.0, n_train=len(data[k]), data=k, seed=k)
        for k in range(len(data))
    ]


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(3)


@pytest.fixture
def model(generator):
    spec = a_spec()
    stack = Stack(Architecture.of(spec, INPUTS, 1), spec.objective)
    size = stack.architecture.n_parameters
    means = torch.randn(NETWORKS, size, generator=generator)
    found = FactorisedStack(stack, means, 0.3, N_TRAIN)
    found.log_stds.add_(0.5 * torch.randn(means.shape, generator=generator))
    found.log_precisions.copy_(torch.tensor([[0.4], [-0.7]]))
    return found


def filled(model, generator):
    table = torch.randn(20, INPUTS + 1, generator=generator)
    places = torch.randint(20, (NETWORKS, ROWS), generator=generator)
    work = Workspace(model.stack.architecture, NETWORKS, ROWS)
    work.load(table, places, torch.full((NETWORKS, ROWS, 1), 1 / ROWS))
    return work


def minus_bound(state, model, work, epsilon):
    """Over N, of one draw, up to a constant: written out, the prior at its best."""
    shape, size = model.stack.architecture, epsilon.shape[1]
    means, log_stds = state[:, :size], state[:, size:-1]
    tau = state[:, -1].exp()
    drawn = layers(means + log_stds.exp() * epsilon, shape)
    (w, b), (v, c) = drawn
    f = torch.relu(work.x @ w + b) @ v + c
    fit = 0.5 * tau * (f - work.y).square().mean((1, 2)) - 0.5 * tau.log()
    return fit + _kl(means, log_stds, shape, lambda own: own.mean()) / model.n_train


def _kl(means, log_stds, shape, precision):
    """Of each network by torch.distributions, with one prior precision per layer."""
    found = []
    for network in range(len(means)):
        own = slice(network, network + 1)
        pairs = zip(
            layers(means[own], shape), layers(log_stds[own], shape), strict=True
        )
        total = torch.zeros(())
        for parts, log_parts in pairs:
            m = torch.cat([part.flatten() for part in parts])
            s = torch.cat([part.flatten() for part in log_parts]).exp()
            scale = precision(m.square() + s.square()).sqrt()
            total = total + kl_divergence(Normal(m, s), Normal(0.0, scale)).sum()
        found.append(total)
    return torch.stack(found)


def test_gradient_is_that_of_autograd(model, generator):
    work = filled(model, generator)
    epsilon = torch.randn(model.means.shape, generator=generator)
    state = model.state.clone().requires_grad_()
    minus_bound(state, model, work, epsilon).sum().backward()
    with torch.no_grad():
        found = model.gradient(work, epsilon).clone()
    torch.testing.assert_close(found, state.grad, rtol=1e-4, atol=1e-5)


def test_the_prior_is_the_one_of_least_divergence(model):
    """The KL at the chosen precision of each layer is below that at any other."""
    shape = model.stack.architecture
    best = _kl(model.means, model.log_stds, shape, lambda own: own.mean())
    for factor in (0.8, 1.25):
        other = _kl(
            model.means, model.log_stds, shape, lambda own, f=factor: f * own.mean()
        )
        assert (other > best).all()
    squares = model.means.square() + (2 * model.log_stds).exp()
    for own, found in zip(
        layers(squares, shape), layers(model.prior_precisions(), shape), strict=True
    ):
        together = torch.cat([part.flatten(1) for part in own], 1).mean(1)
        for part in found:
            expected = together.reciprocal().reshape(-1, 1, 1).expand_as(part)
            torch.testing.assert_close(part, expected)


@pytest.fixture(scope="module")
def trained():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 400, INPUTS, generator=generator)
    noise = 0.1 * torch.randn(2, 400, 1, generator=generator)
    data = [Rows(x[k], x[k][:, :1] - 0.5 * x[k][:, 1:2] + noise[k]) for k in (0, 1)]
    return data, train_factorised(members_of(data), data)


def test_modules_carry_what_was_learned(trained):
    data, found = trained
    assert found.precisions.shape == (2,) and (found.precisions > 2).all()
    for k, module in enumerate(found.trained.modules):
        noisy = [m for m in module if isinstance(m, FactorisedLayer)]
        assert [m.weight.shape for m in noisy] == [(HIDDEN, INPUTS), (1, HIDDEN)]
        module.eval()
        with torch.no_grad():
            error = (module(data[k].x) - data[k].y).square().mean()
        assert error < 0.2 * data[k].y.var()


def test_kl_of_a_module_is_that_of_its_gaussians(trained):
    _, found = trained
    (first, *_) = [
        m for m in found.trained.modules[0] if isinstance(m, FactorisedLayer)
    ]
    prior = Normal(0.0, 1 / 0.7)
    exact = sum(
        kl_divergence(Normal(m, s.exp()), prior).sum()
        for m, s in (
            (first.weight, first.log_std),
            (first.bias, first.log_sd_bias),
        )
    )
    torch.testing.assert_close(first.kl(0.7), exact)


def test_stacked_networks_do_not_see_each_other(trained):
    """The first of two alone gives the same weights."""
    data, both = trained
    alone = train_factorised(members_of(data)[:1], data[:1])
    for own, other in zip(
        alone.trained.modules[0].parameters(),
        both.trained.modules[0].parameters(),
        strict=True,
    ):
        torch.testing.assert_close(own, other, rtol=1e-3, atol=1e-4)


def test_sets_of_different_length_are_refused(trained):
    data, _ = trained
    shorter = [data[0], Rows(data[1].x[:-1], data[1].y[:-1])]
    with pytest.raises(ParameterError, match="as many rows"):
        train_factorised(members_of(shorter), shorter)


def test_weights_that_are_not_finite_are_an_error(trained):
    data, _ = trained
    broken = [Rows(rows.x * math.inf, rows.y) for rows in data]
    with pytest.raises(DivergedError, match="lower learning_rate"):
        train_factorised(members_of(broken), broken)
