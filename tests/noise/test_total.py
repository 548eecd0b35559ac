"""The KL of a model: sums, points, and the bound of paper 000."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from caveat import noise, theory
from caveat.errors import InputTypeError, ParameterError
from tests.noise.families import FAMILIES, settings


def net(family):
    return nn.Sequential(
        family.wrap(nn.Linear(3, 5)), nn.ReLU(), nn.LayerNorm(5), nn.Linear(5, 2)
    ).double()


@pytest.mark.parametrize("family", FAMILIES, ids=settings)
def test_noisy_layers_count_by_their_own_kl_and_others_as_points(family):
    model, length = net(family), 0.4
    expected = model[0].kl(length)
    for tensor in (model[3].weight, model[3].bias):
        expected = expected + 0.5 * length**2 * tensor.square().sum()
    assert_close(noise.kl(model, length), expected)


def test_minus_the_bound_is_the_loss():
    """tau N/2 mean|y - f|² + kl is -(ledger E28) but for constants in the weights."""
    tau, length, keep, n = 4.0, 0.6, 0.8, 7
    model = nn.Sequential(
        noise.Bernoulli(0.2).wrap(nn.Linear(3, 5)),
        nn.Tanh(),
        noise.Bernoulli(0.2).wrap(nn.Linear(5, 2)),
    ).double()
    x, y = torch.randn(n, 3).double(), torch.randn(n, 2).double()

    def both():
        torch.manual_seed(3)
        out = model(x)
        error = (out - y).square().sum(1).mean()
        loss = tau / 2 * n * error + noise.kl(model, length)
        kl = sum(
            theory.kl_row_lower_bound(
                m.weight.T / keep,
                keep_prob=keep,
                component_std=1e-3,
                lengthscale=length,
            ).sum()
            + theory.kl_bias(m.bias, component_std=1e-3, lengthscale=length)
            for m in (model[0], model[2])
        )
        likelihood = theory.gaussian_log_likelihood(out[None], y, precision=tau)
        return loss, -theory.elbo(likelihood, kl=kl, n_train=n)

    loss, minus_bound = both()
    constant = loss - minus_bound
    gradient, expected = (
        torch.autograd.grad(term, list(model.parameters()), retain_graph=True)
        for term in (loss, minus_bound)
    )
    for one, other in zip(gradient, expected, strict=True):
        assert_close(one, other)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.3)
    loss, minus_bound = both()
    assert_close(loss - minus_bound, constant)


def test_shared_modules_and_tied_weights_count_once():
    shared = noise.Bernoulli(0.1).wrap(nn.Linear(3, 3))
    assert_close(
        noise.kl(nn.Sequential(shared, nn.ReLU(), shared), 0.5), shared.kl(0.5)
    )
    tied = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False))
    tied[1].weight = tied[0].weight
    assert_close(noise.kl(tied, 1.0), 0.5 * tied[0].weight.square().sum())


def test_recurrent_and_other_weights_count_too():
    model = nn.ModuleList([noise.GRU(2, 3), nn.Embedding(4, 2), nn.LSTM(2, 2)])
    points = sum(0.5 * p.square().sum() for m in model[1:] for p in m.parameters())
    assert_close(noise.kl(model, 1.0), model[0].kl(1.0) + points)


def test_dropout_beside_layers_needs_a_keep_probability():
    model = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.2), nn.Linear(3, 1))
    with pytest.raises(ParameterError, match=r"keep_prob must be given .* '1' feed"):
        noise.kl(model, 1.0)
    by_name = noise.kl(model, 1.0, keep_prob={"2.weight": 0.8})
    twin = nn.Sequential(model[0], noise.Bernoulli(0.2).wrap(model[2]))
    assert_close(by_name, noise.kl(twin, 1.0))
    for_all = noise.kl(model, 1.0, keep_prob=0.8)
    both = nn.Sequential(*(noise.Bernoulli(0.2).wrap(model[i]) for i in (0, 2)))
    assert_close(for_all, noise.kl(both, 1.0))


@pytest.mark.parametrize(
    "module",
    [noise.BernoulliNoise(0.2), nn.LSTM(2, 2, num_layers=2, dropout=0.1)],
    ids=["ours", "between recurrent layers"],
)
def test_other_dropout_is_noticed(module):
    with pytest.raises(ParameterError, match="keep_prob must be given"):
        noise.kl(nn.ModuleList([module, nn.Linear(2, 1)]), 1.0)


@pytest.mark.parametrize("module", [noise.ConcreteNoise(), noise.GaussianNoise(0.1)])
def test_noise_without_a_rate_must_be_carried_by_a_layer(module):
    model = nn.Sequential(module, nn.Linear(2, 1))
    for keep_prob in (None, 0.9):
        with pytest.raises(ParameterError, match="no keep probability"):
            noise.kl(model, 1.0, keep_prob=keep_prob)


def test_dropout_that_drops_nothing_is_no_matter():
    model = nn.Sequential(nn.Dropout(0.0), nn.Linear(2, 1))
    assert noise.kl(model, 1.0) > 0
    assert noise.kl(nn.ReLU(), 1.0) == 0


def test_bad_arguments():
    model = nn.Sequential(nn.Linear(2, 1))
    with pytest.raises(ParameterError, match="lengthscale"):
        noise.kl(model, -1.0)
    with pytest.raises(ParameterError, match=r"there are '0\.weight', '0\.bias'"):
        noise.kl(model, 1.0, keep_prob={"weight": 0.5})
    with pytest.raises(ParameterError, match=r"keep_prob\['0\.weight'\]"):
        noise.kl(model, 1.0, keep_prob={"0.weight": 1.5})
    with pytest.raises(ParameterError, match="keep_prob"):
        noise.kl(model, 1.0, keep_prob=0.0)
    with pytest.raises(InputTypeError, match=r"torch\.nn\.Module"):
        noise.kl([model], 1.0)
