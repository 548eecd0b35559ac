"""Stratified draws: the same law, less error, the same numbers in any order.

Standardised errors over seeds are compared with 1 by chi-squared bounds that a right
error leaves for one set of seeds in a million.
"""

import itertools

import pytest
import torch
from scipy import stats
from sklearn.datasets import load_diabetes, load_digits
from torch import nn

import caveat
from caveat import noise
from tests.statistics import assert_mean_is

X = torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(4, 3)


def net(seed=0, rate=0.3):
    torch.manual_seed(seed)
    layers = [nn.Linear(3, 8), nn.Tanh(), nn.Dropout(rate), nn.Linear(8, 6), nn.Tanh()]
    return nn.Sequential(*layers, nn.Dropout(rate), nn.Linear(6, 2)).double()


def draws(model, n_draws, seed=0, x=X, **options):
    mc = caveat.MCDropout(model, seed=seed, stratified=True, **options)
    return mc.draws(x, n_draws=n_draws)


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_what_is_additive_in_the_masks_has_the_error_of_exact_shares(rate):
    """Over 64 draws a unit is dropped ⌊64 p⌋ times, or once more."""
    units = 5
    model = nn.Sequential(nn.Dropout(rate), nn.Linear(units, 1, bias=False)).double()
    x = torch.ones(1, units, dtype=torch.float64)
    means = torch.stack([draws(model, 64, seed, x).mean() for seed in range(400)])
    share = 64 * rate % 1
    each = model[1].weight.detach().square().sum() / (64 * (1 - rate)) ** 2
    exact = float(each * share * (1 - share))
    plain = float(each * 64 * rate * (1 - rate))
    assert_mean_is(means, model[1].weight.detach().sum())
    found = float((means - model[1].weight.detach().sum()).square().mean())
    assert exact * 0.7 - 1e-18 < found < exact * 1.3 + 1e-18 < plain / 15


def test_the_mean_is_that_of_all_masks():
    model = net()
    keeps = list(itertools.product([0.0, 1.0], repeat=8 + 6))
    first, second = torch.tensor(keeps, dtype=torch.float64).split([8, 6], 1)
    weights = (0.7 ** torch.tensor(keeps).sum(1)) * 0.3 ** (
        14 - torch.tensor(keeps).sum(1)
    )
    h = torch.tanh(model[0](X[:1])) * first / 0.7
    h = torch.tanh(model[3](h)) * second / 0.7
    exact = (weights.double()[:, None] * model[6](h)).sum(0).detach()
    seeds = torch.stack([draws(model, 32, s, X[:1]).mean(0)[0] for s in range(300)])
    assert_mean_is(seeds, exact)


@pytest.mark.parametrize("shared", [True, False])
def test_numbers_do_not_depend_on_how_they_are_made(shared):
    model = net()
    whole = draws(model, 100, shared=shared)
    fewer = draws(model, 37, shared=shared)
    torch.testing.assert_close(fewer, whole[:37], atol=1e-12, rtol=0)
    mc = caveat.MCDropout(model, seed=0, shared=shared, stratified=True)
    parts = mc.draws(X, n_draws=100, batch_size=3)
    torch.testing.assert_close(parts, whole, atol=1e-12, rtol=0)
    if shared:
        torch.testing.assert_close(mc.function(70)(X), whole[70], atol=1e-12, rtol=0)


def test_other_noise_is_stratified_too():
    model = nn.Sequential(noise.GaussianNoise(0.25), nn.Linear(4, 1, bias=False))
    model = model.double()
    x = torch.ones(1, 4, dtype=torch.float64)
    means = torch.stack([draws(model, 64, seed, x).mean() for seed in range(200)])
    assert_mean_is(means, model[1].weight.detach().sum())
    plain = 0.25 * float(model[1].weight.detach().square().sum()) / 64
    assert float(means.var()) < plain / 20


def test_stratified_draws_are_the_default():
    model = net()
    mc = caveat.MCDropout(model, seed=0)
    assert torch.equal(mc.draws(X, n_draws=20), draws(model, 20))
    plain = caveat.MCDropout(model, seed=0, stratified=False).draws(X, n_draws=20)
    assert torch.equal(mc.independent().draws(X, n_draws=20), plain)
    assert not torch.equal(draws(model, 20), plain)
    torch.testing.assert_close(mc.independent().function(7)(X), plain[7])


@pytest.mark.parametrize("stratified", [True, False])
def test_calls_in_a_block_are_the_same_draws(stratified):
    model = net()
    options = {"seed": 3, "stratified": stratified}
    with caveat.stochastic(model, **options), torch.no_grad():
        passes = torch.stack([model(X) for _ in range(20)])
    expected = caveat.MCDropout(model, **options).draws(X, n_draws=20)
    torch.testing.assert_close(passes, expected, atol=1e-12, rtol=0)


def test_repr_says_so():
    assert "independent" in repr(caveat.MCDropout(net(), seed=0, stratified=False))
    assert "independent" not in repr(caveat.MCDropout(net(), seed=0))


def mlp(rate, *sizes):
    layers = []
    for inputs, outputs in itertools.pairwise(sizes[:-1]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU(), nn.Dropout(rate)]
    return nn.Sequential(*layers, nn.Linear(*sizes[-2:]))


class Reader(nn.Module):
    """A small transformer that reads a digit row by row."""

    def __init__(self, rate):
        super().__init__()
        self.embed = nn.Linear(8, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=rate, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.out = nn.Linear(128, 10)

    def forward(self, x):
        return self.out(self.body(self.embed(x.view(-1, 8, 8))).flatten(1))


def convolutions():
    return nn.Sequential(
        *(nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 8, 3, padding=1), nn.ReLU()),
        *(nn.Dropout2d(0.2), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.3)),
        *(nn.Linear(128, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 10)),
    )


def diabetes():
    x, y = (
        torch.tensor(a, dtype=torch.float32) for a in load_diabetes(return_X_y=True)
    )
    return x / x.std(0), ((y - y.mean()) / y.std())[:, None]


def curve():
    x = torch.linspace(-2, 2, 200)[:, None]
    return x, torch.sin(3 * x)


def digits():
    x, y = load_digits(return_X_y=True)
    noisy = torch.randn(x.shape, generator=torch.Generator().manual_seed(0)) * 0.7
    return torch.tensor(x / 8 - 1, dtype=torch.float32) + noisy, torch.tensor(y)


NETS = {
    "diabetes, two layers, 0.05": (lambda: mlp(0.05, 10, 100, 100, 1), diabetes),
    "diabetes, four layers, 0.1": (lambda: mlp(0.1, 10, 64, 64, 64, 64, 1), diabetes),
    "curve, 0.25": (lambda: mlp(0.25, 1, 100, 100, 1), curve),
    "digits, one layer, 0.5": (lambda: mlp(0.5, 64, 100, 10), digits),
    "digits, three layers, 0.1": (lambda: mlp(0.1, 64, 100, 100, 100, 10), digits),
    "digits, transformer, 0.1": (lambda: Reader(0.1), digits),
    "digits, convolutions, 0.2 and 0.3": (convolutions, digits),
}


def trained(name, steps=200):
    build, data = NETS[name]
    x, y = data()
    torch.manual_seed(0)
    model = build().train()
    loss = nn.MSELoss() if y.is_floating_point() else nn.CrossEntropyLoss()
    optimiser = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(steps):
        rows = torch.randint(len(x), (64,))
        optimiser.zero_grad()
        loss(model(x[rows]), y[rows]).backward()
        optimiser.step()
    return model.eval(), x[:: len(x) // 16], y.is_floating_point()


def answers(name, n_draws, n_seeds, **options):
    """Means and their errors, (seeds, rows, outputs), over seeds."""
    model, x, is_regression = trained(name)
    means, errors = [], []
    for seed in range(n_seeds):
        mc = caveat.MCDropout(model, seed=seed, **options)
        if is_regression:
            found = mc.regress(x, n_draws=n_draws, precision=1.0, keep_draws=False)
            means.append(found.mean)
        else:
            found = mc.classify(x, n_draws=n_draws, keep_draws=False)
            means.append(found.probs)
        errors.append(found.mean_error)
    means, errors = torch.stack(means), torch.stack(errors)
    return means.flatten(1), errors.flatten(1), is_regression


def assert_honest(name, n_draws, n_seeds, **options):
    """The mean of squares of standardised errors, over seeds and outputs, is 1.

    Outputs of a net are dependent, so they count as one: the bounds hold whatever
    their correlation. Single outputs may be off by more, as docs/design.md says.
    """
    means, errors, is_regression = answers(name, n_draws, n_seeds, **options)
    centre = means.mean(0)
    spread = n_seeds / (n_seeds - 1) * (means - centre).square()
    squares = (spread / errors.square()).mean(0)
    low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], n_seeds) / n_seeds
    clear = torch.ones_like(centre).bool()
    if not is_regression:
        clear = centre * (1 - centre) > 0.05
        near = ~clear & (centre * (1 - centre) > 1e-4)
        assert float(squares[near].mean()) < 1.3 * high
    assert int(clear.sum()) > 3
    assert low < float(squares[clear].mean()) < high
    assert float(squares[clear].max()) < 2 * high


@pytest.mark.parametrize("n_draws", [64, 100])
def test_errors_are_honest(n_draws):
    assert_honest("curve, 0.25", n_draws, 60, analytic=False)


def test_errors_of_an_integrated_last_layer_are_honest():
    assert_honest("curve, 0.25", 64, 60, analytic=True)


@pytest.mark.slow
@pytest.mark.parametrize("n_draws", [32, 64, 100, 256])
@pytest.mark.parametrize("name", NETS)
def test_errors_are_honest_over_many_seeds(name, n_draws):
    assert_honest(name, n_draws, 200, analytic=False)


def test_a_tolerance_stops_on_the_honest_error():
    model, x, _ = trained("curve, 0.25", steps=50)
    options = {"precision": 100.0, "tolerance": 0.02, "max_draws": 4096}
    found = {}
    for stratified in (True, False):
        mc = caveat.MCDropout(model, seed=0, stratified=stratified, analytic=False)
        found[stratified] = mc.regress(x, **options)
        assert bool(
            (found[stratified].mean_error <= 0.02 * found[stratified].std).all()
        )
    assert 2 * found[True].n_draws <= found[False].n_draws
