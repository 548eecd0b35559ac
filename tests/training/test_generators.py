"""Random operations drawn from generators of our own."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from caveat import noise
from caveat.errors import UnsupportedModelError
from caveat.training.generators import OwnGenerators

FAMILIES = [
    noise.Bernoulli(0.3, on_biases=True),
    noise.Gaussian(0.3),
    noise.DropConnect(0.3),
    noise.Concrete(0.3),
    noise.Mixture(0.3, std=0.1),
    noise.Components((0.3, 0.7), std=0.1),
    noise.LowRank(rank=2),
    noise.FactorisedGaussian(),
]
X = torch.linspace(-1, 1, 12).reshape(4, 3)


def gradients(net):
    net.zero_grad()
    net(X).square().sum().backward()
    return [p.grad.clone() for p in net.parameters()]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: type(f).__name__)
def test_numbers_and_gradients_are_those_of_a_seeded_torch(family):
    torch.manual_seed(0)
    net = nn.Sequential(family.wrap(nn.Linear(3, 5)), nn.Tanh(), nn.Linear(5, 1))
    net.train()
    torch.manual_seed(7)
    expected = gradients(net)
    state = torch.get_rng_state()
    with OwnGenerators(7):
        found = gradients(net)
    for ours, theirs in zip(found, expected, strict=True):
        assert torch.equal(ours, theirs)
    assert torch.equal(torch.get_rng_state(), state)


CALLS = {
    "dropout": lambda: F.dropout(X, 0.5),
    "rand": lambda: torch.rand(3, 2),
    "randn": lambda: torch.randn(3, dtype=torch.float64),
    "randint": lambda: torch.randint(10, (20,)),
    "randint from": lambda: torch.randint(5, 10, (20,)),
    "randperm": lambda: torch.randperm(20),
    "rand_like": lambda: torch.rand_like(X),
    "randn_like": lambda: torch.randn_like(X, dtype=torch.float64),
    "bernoulli": lambda: torch.bernoulli(torch.full((20,), 0.5)),
    "normal": lambda: torch.normal(0.0, X.abs()),
    "multinomial": lambda: torch.multinomial(torch.ones(9), 5),
    "exponential": lambda: torch.empty(5).exponential_(),
}


@pytest.mark.parametrize("name", CALLS)
def test_any_operation_repeats_itself_and_leaves_torch_alone(name):
    state = torch.get_rng_state()
    own, again = OwnGenerators(3), OwnGenerators(3)
    with own:
        first, second = CALLS[name](), CALLS[name]()
    with again:
        repeated = CALLS[name]()
    with again:  # another block goes on
        continued = CALLS[name]()
    assert torch.equal(first, repeated) and torch.equal(second, continued)
    assert not torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), state)


def test_native_dropout_is_dropout():
    x = torch.ones(1000, 20)
    with OwnGenerators(0):
        out, mask = torch.native_dropout(x, 0.25, True)
        same, whole = torch.native_dropout(x, 0.25, False)
    assert out.unique().tolist() == pytest.approx([0.0, 1 / 0.75])
    assert torch.equal(out != 0, mask)
    kept = mask.double().mean().item()
    assert abs(kept - 0.75) < 5 * (0.25 * 0.75 / x.numel()) ** 0.5
    assert torch.equal(same, x) and whole.all()


def test_what_takes_no_generator_is_refused():
    with (
        OwnGenerators(0),
        pytest.raises(UnsupportedModelError, match="takes no other"),
    ):
        torch.randint_like(X, 2, 5)


def test_fused_attention_without_dropout_draws_nothing():
    q = torch.randn(2, 4, 6, 8, requires_grad=True)
    with OwnGenerators(0):
        found = F.scaled_dot_product_attention(q, q, q)
    torch.testing.assert_close(found, F.scaled_dot_product_attention(q, q, q))


def test_attention_and_recurrent_dropout_repeat_themselves():
    net = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.5, batch_first=True)
    lstm = nn.LSTM(8, 8, num_layers=2, dropout=0.5)
    x, state = torch.randn(2, 5, 8), torch.get_rng_state()
    for module in (net.train(), lstm.train()):
        found = []
        for seed in (1, 1, 2):
            with OwnGenerators(seed):
                out = module(x)
            found.append(out[0] if isinstance(out, tuple) else out)
        assert torch.equal(found[0], found[1])
        assert not torch.allclose(found[0], found[2])
    assert torch.equal(torch.get_rng_state(), state)


def test_tensors_without_memory_need_no_generator():
    with OwnGenerators(0):
        layer = nn.Linear(3, 2, device="meta")
    assert layer.weight.is_meta
