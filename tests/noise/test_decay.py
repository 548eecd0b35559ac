"""Parameter groups: which dropout feeds which layer, and the decay that follows."""

import math

import pytest
import torch
from torch import nn

from caveat import noise
from caveat.errors import InputTypeError, ParameterError
from caveat.noise import weight_decay_groups
from caveat.theory import Loss

PRIOR = {
    "precision": 4.0,
    "lengthscale": 0.3,
    "n_train": 200,
    "loss": Loss.half_squared_error(),
}
UNIT = 0.3**2 / (4.0 * 200)  # weight decay of what nothing drops


def keeps(model, keep_prob=None):
    """{name: p} read back from the decays; inf where nothing is decayed."""
    names = {parameter: name for name, parameter in model.named_parameters()}
    found = {}
    for group in weight_decay_groups(model, keep_prob=keep_prob, **PRIOR):
        decay = group["weight_decay"]
        for parameter in group["params"]:
            found[names[parameter]] = UNIT / decay if decay else math.inf
    assert set(found) == set(names.values())
    return {name: pytest.approx(keep) for name, keep in found.items()}


class Block(nn.Module):
    """Calls its layers in an order that cannot be read off."""

    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)
        self.linear = nn.Linear(3, 3)
        self.norm = nn.LayerNorm(3)

    def forward(self, x):
        return self.norm(self.linear(self.drop(x)))


# Chains


def test_each_layer_has_the_dropout_that_feeds_it():
    net = nn.Sequential(
        nn.Dropout(0.1),
        nn.Linear(4, 5),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(5, 5),
        nn.ReLU(),
        nn.Linear(5, 1),
    )
    assert keeps(net) == {
        "1.weight": 0.9,
        "1.bias": 1.0,
        "4.weight": 0.5,
        "4.bias": 1.0,
        "6.weight": 1.0,
        "6.bias": 1.0,
    }


def test_nested_chain_with_convolutions_norms_and_no_bias():
    features = nn.Sequential(
        nn.Conv2d(1, 2, 3, bias=False), nn.BatchNorm2d(2), nn.PReLU(), nn.Dropout2d(0.2)
    )
    net = nn.Sequential(features, nn.Flatten(), nn.Dropout(0.5), nn.Linear(8, 2))
    assert keeps(net) == {
        "0.0.weight": 1.0,
        "0.1.weight": math.inf,
        "0.1.bias": math.inf,
        "0.2.weight": math.inf,
        "3.weight": 0.8 * 0.5,
        "3.bias": 1.0,
    }


def test_a_single_layer_is_a_chain():
    assert keeps(nn.Linear(2, 1)) == {"weight": 1.0, "bias": 1.0}


def test_groups_are_one_per_decay_and_fit_optimisers():
    net = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.5), nn.Linear(3, 1))
    groups = weight_decay_groups(net, **PRIOR)
    assert [set(group) for group in groups] == [{"params", "weight_decay"}] * 2
    for kind in (torch.optim.SGD, torch.optim.Adam):
        net(torch.ones(1, 2)).sum().backward()
        kind(groups, lr=0.1).step()


@pytest.mark.parametrize(
    "loss", [Loss.half_squared_error(), Loss.mean_squared_error(8)], ids=str
)
def test_decay_is_the_gradient_of_the_kl_term(loss):
    """theory.md 5: (p l²/2) |M|² + (l²/2) |m|², over tau N / (2c), with W = p M."""
    net = nn.Sequential(
        nn.Linear(2, 3), nn.ReLU(), nn.Dropout(0.1), nn.Linear(3, 2)
    ).double()
    first, last, keep = net[0], net[3], 0.9
    term = keep * (last.weight / keep).square().sum()
    for tensor in (first.weight, first.bias, last.bias):
        term = term + tensor.square().sum()
    scale = 2 * loss.scale / (PRIOR["precision"] * PRIOR["n_train"])
    (0.5 * PRIOR["lengthscale"] ** 2 * term * scale).backward()
    for group in weight_decay_groups(net, **(PRIOR | {"loss": loss})):
        for tensor in group["params"]:
            torch.testing.assert_close(group["weight_decay"] * tensor, tensor.grad)


def test_reference_value():
    """theory.md 13: p .9, l 1, N 200, lambda 1e-3, inverted weights: tau 2.78."""
    net = nn.Sequential(nn.Dropout(0.1), nn.Linear(3, 1, bias=False))
    (group,) = weight_decay_groups(
        net,
        precision=2.7777777778,
        lengthscale=1.0,
        n_train=200,
        loss=Loss.half_squared_error(),
    )
    assert group["weight_decay"] == pytest.approx(2e-3)  # 2 lambda


# Other nets


def test_one_number_for_all_weights():
    net = nn.Sequential(Block(), nn.LSTM(3, 2))
    found = keeps(net, keep_prob=0.5)
    assert found["0.linear.weight"] == 0.5
    assert found["0.linear.bias"] == 1.0
    assert found["0.norm.weight"] == math.inf
    assert found["1.weight_hh_l0"] == 0.5
    assert found["1.bias_hh_l0"] == 1.0


def test_a_mapping_supplements_the_chain():
    net = nn.Sequential(nn.Dropout(0.2), nn.Linear(3, 3), Block(), nn.Linear(3, 1))
    with pytest.raises(ParameterError, match=r"2\.linear\.weight', '3\.weight'"):
        keeps(net)
    found = keeps(net, keep_prob={"2.linear.weight": 0.5, "3.weight": 1.0})
    assert found["1.weight"] == 0.8
    assert found["2.linear.weight"] == 0.5
    assert found["3.weight"] == 1.0


@pytest.mark.parametrize(
    "make",
    [
        Block,
        lambda: nn.Sequential(nn.AlphaDropout(0.1), nn.Linear(2, 1)),
        lambda: nn.Sequential(nn.LSTM(2, 2)),
        lambda: nn.utils.parametrizations.weight_norm(nn.Linear(2, 1)),
    ],
)
def test_what_cannot_be_told_is_an_error(make):
    with pytest.raises(ParameterError, match="cannot be read off"):
        weight_decay_groups(make(), **PRIOR)


def test_a_chain_with_its_own_forward_is_not_followed():
    class Backwards(nn.Sequential):
        def forward(self, x):
            return self[0](self[1](x))

    with pytest.raises(ParameterError, match="cannot be read off Backwards"):
        weight_decay_groups(Backwards(nn.Linear(2, 2), nn.Dropout(0.1)), **PRIOR)


def test_a_shared_layer_needs_one_keep_probability():
    shared = nn.Linear(2, 2)
    same = nn.Sequential(nn.Dropout(0.1), shared, nn.Dropout(0.1), shared)
    assert keeps(same)["1.weight"] == 0.9
    different = nn.Sequential(shared, nn.Dropout(0.1), shared)
    with pytest.raises(ParameterError, match=r"'0\.weight'"):
        keeps(different)


def test_bad_arguments():
    net = nn.Sequential(nn.Linear(2, 1))
    with pytest.raises(ParameterError, match=r"there are '0\.weight', '0\.bias'"):
        keeps(net, keep_prob={"weight": 0.5})
    with pytest.raises(ParameterError, match=r"keep_prob\['0\.weight'\]"):
        keeps(net, keep_prob={"0.weight": 1.5})
    with pytest.raises(ParameterError, match="keep_prob"):
        keeps(net, keep_prob=0.0)
    with pytest.raises(InputTypeError, match=r"torch\.nn\.Module"):
        weight_decay_groups([nn.Linear(2, 1)], **PRIOR)
    with pytest.raises(ParameterError, match="drop rate"):
        keeps(nn.Sequential(nn.Dropout(1.0), nn.Linear(2, 1)))


# Layers that carry their noise


def test_noisy_layers_carry_their_keep_probability_anywhere():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = noise.Bernoulli(0.2, on_biases=True).wrap(nn.Linear(3, 3))
            self.second = noise.DropConnect(0.5).wrap(nn.Linear(3, 1))
            self.lstm = noise.LSTM(3, 2, input_drop_rate=0.1, recurrent_drop_rate=0.3)

    found = keeps(Net())
    assert found["first.layer.weight"] == 0.8
    assert found["first.layer.bias"] == 0.8
    assert found["second.layer.weight"] == 0.5
    assert found["second.layer.bias"] == 1.0
    assert found["lstm.weight_ih_l0"] == 0.9
    assert found["lstm.weight_hh_l0"] == 0.7
    assert found["lstm.bias_hh_l0"] == 1.0


def test_noise_in_a_chain_multiplies_with_dropout_before():
    net = nn.Sequential(
        noise.BernoulliNoise(0.1),
        nn.Linear(2, 2),
        nn.Dropout(0.5),
        noise.Mixture(0.2, std=0.1).wrap(nn.Linear(2, 2)),
        nn.Linear(2, 1),
    )
    found = keeps(net)
    assert found["1.weight"] == 0.9
    assert found["3.layer.weight"] == 0.5 * 0.8
    assert found["3.layer.bias"] == 1.0
    assert found["4.weight"] == 1.0


def test_decay_is_the_gradient_of_the_kl_of_noisy_layers():
    net = nn.Sequential(
        noise.Bernoulli(0.1).wrap(nn.Linear(2, 3)),
        nn.ReLU(),
        noise.DropConnect(0.4, on_biases=True).wrap(nn.Linear(3, 1)),
    ).double()
    scale = 1 / (PRIOR["precision"] * PRIOR["n_train"])
    (noise.kl(net, PRIOR["lengthscale"]) * scale).backward()
    for group in weight_decay_groups(net, **PRIOR):
        for tensor in group["params"]:
            torch.testing.assert_close(group["weight_decay"] * tensor, tensor.grad)


@pytest.mark.parametrize(
    "family",
    [
        noise.Gaussian(0.2),
        noise.Concrete(),
        noise.Components(),
        noise.LowRank(),
        noise.FactorisedGaussian(),
    ],
    ids=lambda family: type(family).__name__,
)
def test_noise_whose_kl_is_no_decay_is_refused(family):
    net = nn.Sequential(nn.Linear(2, 2), family.wrap(nn.Linear(2, 1)))
    for keep_prob in (None, 0.9):
        with pytest.raises(ParameterError, match=r"'1' is no weight decay[\s\S]*kl\("):
            weight_decay_groups(net, keep_prob=keep_prob, **PRIOR)


@pytest.mark.parametrize("module", [noise.GaussianNoise(0.1), noise.ConcreteNoise()])
def test_noise_that_is_no_dropout_hides_what_feeds_the_next_layer(module):
    with pytest.raises(ParameterError, match=r"'1\.weight'"):
        weight_decay_groups(nn.Sequential(module, nn.Linear(2, 1)), **PRIOR)


def test_a_recurrent_net_behind_dropout_cannot_be_told():
    net = nn.Sequential(nn.Dropout(0.5), noise.GRU(2, 2))
    with pytest.raises(ParameterError, match=r"'1\.weight_ih_l0'"):
        weight_decay_groups(net, **PRIOR)
