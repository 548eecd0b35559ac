"""Noise put into networks that have none: what is kept, chosen, and said."""

import warnings

import pytest
import torch
from torch import nn

import caveat
from caveat import noise
from caveat.errors import (
    CaveatWarning,
    InputTypeError,
    ParameterError,
    UnsupportedModelError,
)
from caveat.noise import NoisyLayer
from tests.noise.families import FAMILIES, settings
from tests.sampling.snapshot import Snapshot


def inserted(model, family=None, where=None):
    with pytest.warns(CaveatWarning, match="no posterior"):
        return noise.insert(model, family or noise.Bernoulli(0.3), where)


def noisy_names(model):
    return [n for n, m in model.named_modules() if isinstance(m, NoisyLayer)]


def mlp():
    return nn.Sequential(
        nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2)
    )


def convnet():
    return nn.Sequential(
        nn.Conv2d(3, 6, 3, stride=2, padding=1),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.Conv2d(6, 12, 3, groups=3, dilation=2, padding="same", bias=False),
        nn.Flatten(),
        nn.Linear(12 * 16, 2),
    )


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.ModuleDict({"up": nn.Linear(4, 8), "down": nn.Linear(8, 4)})
        self.shared = nn.Linear(4, 4)
        self.again = self.shared

    def forward(self, x):
        x = x + self.body["down"](torch.relu(self.body["up"](x)))
        return self.again(torch.relu(self.shared(x)))


class Attention(nn.Module):
    """A transformer's block with projections as layers."""

    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(4, 4) for _ in range(4))
        self.norm = nn.LayerNorm(4)
        self.mlp = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4))

    def forward(self, x):
        q, k, v = self.query(x), self.key(x), self.value(x)
        x = x + self.out(nn.functional.scaled_dot_product_attention(q, k, v))
        return x + self.mlp(self.norm(x))


MODELS = {
    "mlp": (mlp, (5, 4), 3),
    "convnet": (convnet, (5, 3, 8, 8), 3),
    "residual": (Residual, (5, 4), 3),
    "attention": (Attention, (5, 6, 4), 6),
}


@pytest.mark.parametrize("family", FAMILIES, ids=settings)
@pytest.mark.parametrize("kind", MODELS)
def test_the_copy_predicts_the_same_and_draws(family, kind):
    make, shape, layers = MODELS[kind]
    model, x = make().eval(), torch.randn(shape)
    before = Snapshot(model, ((x,), {}))
    noisy = inserted(model, family)
    before.assert_unchanged("after insert")
    assert len(noisy_names(noisy)) == layers
    assert torch.equal(noisy(x), model(x))
    draws = caveat.MCDropout(noisy, seed=0).draws(x, n_draws=3)
    assert draws.std(0).max() > 0
    before.assert_unchanged("after draws")


def test_nothing_is_shared_with_the_model():
    model = mlp()
    noisy = inserted(model)
    mine = {p.data_ptr() for p in model.parameters()}
    assert not mine & {p.data_ptr() for p in noisy.parameters()}
    with torch.no_grad():
        noisy[0].weight.add_(1.0)
    assert not torch.equal(noisy[0].weight, model[0].weight)


def test_weights_are_where_they_are_said_to_be():
    model = convnet()
    noisy = inserted(model)
    names = dict(noisy.named_parameters())
    for name, parameter in model.named_parameters():
        path, _, leaf = name.rpartition(".")
        new = name if path == "1" else f"{path}.layer.{leaf}"
        assert torch.equal(names[new], parameter)
    assert noisy[3].layer.groups == 3
    assert noisy[0].layer.stride == (2, 2)


def test_noise_stands_before_each_layer():
    """All inputs lost: what is left of a layer is its bias."""
    model = mlp()
    noisy = inserted(model, noise.Bernoulli(1 - 1e-9))
    torch.testing.assert_close(noisy(torch.randn(3, 4)), model[4].bias.expand(3, 2))


def test_a_layer_used_twice_stays_one():
    noisy = inserted(Residual())
    assert noisy.shared is noisy.again
    assert isinstance(noisy.shared, NoisyLayer)
    by_its_other_name = inserted(Residual(), where=["again"])
    assert by_its_other_name.shared is by_its_other_name.again
    assert isinstance(by_its_other_name.shared, NoisyLayer)


def test_tied_weights_stay_tied():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
    model[2].weight = model[0].weight
    noisy = inserted(model)
    assert noisy[0].weight is noisy[2].weight


def test_a_single_layer():
    layer = nn.Linear(4, 2)
    noisy = inserted(layer)
    assert isinstance(noisy, NoisyLayer)
    assert noisy.layer is not layer


# Choosing


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (["query", "mlp.2"], ["query", "mlp.2"]),
        (["mlp"], ["mlp.0", "mlp.2"]),
        (lambda name, layer: layer.out_features == 8, ["mlp.0"]),
        (lambda name, layer: name in ("key", "out"), ["key", "out"]),
        (nn.Linear, ["query", "key", "value", "out", "mlp.0", "mlp.2"]),
    ],
)
def test_a_subset_of_layers(where, expected):
    assert noisy_names(inserted(Attention(), where=where)) == expected


def test_by_type():
    assert noisy_names(inserted(convnet(), where=nn.Conv2d)) == ["0", "3"]
    both = (nn.Conv2d, nn.Linear)
    assert noisy_names(inserted(convnet(), where=both)) == ["0", "3", "5"]


def test_map_layers_between_bayesian_ones():
    """The rest is deterministic: only the chosen layer is a site."""
    noisy = inserted(mlp(), where=["2"])
    sites = caveat.audit(noisy, torch.ones(2, 4))
    assert [site.path for site in sites] == ["2.noise"]


def test_families_can_be_mixed():
    noisy = inserted(inserted(mlp(), where=["0"]), noise.Concrete(), ["2"])
    assert noisy_names(noisy) == ["0", "2"]
    rest = inserted(noisy, noise.DropConnect(0.1))  # layers with noise keep theirs
    assert noisy_names(rest) == ["0", "2", "4"]
    assert type(rest[0]).__name__ == "BernoulliLayer"


# Attention of torch's own


def transformer():
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()


def test_torchs_transformer_has_noise_where_layers_are_called():
    model, x = transformer(), torch.randn(3, 5, 8)
    with pytest.warns(CaveatWarning, match=r"self_attn\.out_proj"):
        noisy = noise.insert(model, noise.Bernoulli(0.3))
    assert noisy_names(noisy) == [
        f"layers.{i}.linear{j}" for i in (0, 1) for j in (1, 2)
    ]
    with torch.no_grad():
        torch.testing.assert_close(noisy(x), model(x))
    draws = caveat.MCDropout(noisy, seed=0).draws(x, n_draws=4)
    assert draws.std(0).max() > 0


def test_the_output_layer_of_torchs_attention_is_refused():
    with pytest.raises(UnsupportedModelError, match="without calling it"):
        noise.insert(transformer(), noise.Bernoulli(0.3), ["layers.0.self_attn"])


def test_what_stays_without_noise_is_named():
    model = nn.ModuleList([nn.LSTM(2, 2), nn.Linear(2, 1), nn.Embedding(3, 2)])
    with pytest.warns(CaveatWarning, match="stay without noise: '0', '2'"):
        noise.insert(model, noise.Bernoulli(0.1))


# Modes, training, saving


def test_modes_are_kept_module_by_module():
    model = mlp().eval()
    model[2].train()
    noisy = inserted(model)
    assert [module.training for module in noisy.children()] == [
        False,
        False,
        True,
        False,
        False,
    ]


def test_hooks_come_along():
    model, seen = mlp(), []
    model[0].register_forward_hook(lambda *_: seen.append("called"))
    inserted(model)(torch.ones(1, 4))
    assert seen == ["called"]


def test_the_result_trains_and_loads():
    noisy = inserted(mlp(), noise.Concrete(0.2))
    optimiser = torch.optim.Adam(noisy.parameters(), lr=0.01)
    x, y = torch.randn(16, 4), torch.randn(16, 2)
    for _ in range(3):
        optimiser.zero_grad()
        error = (noisy(x) - y).square().sum(1).mean()
        (16 / 2 * error + noise.kl(noisy, 0.1)).backward()
        optimiser.step()
    other = inserted(mlp(), noise.Concrete(0.2))
    other.load_state_dict(noisy.state_dict())
    assert torch.equal(other.eval()(x), noisy.eval()(x))


# Refusals


def test_bad_choices():
    with pytest.raises(ParameterError, match=r"Got 'conv'; there are '0', '2', '4'"):
        noise.insert(mlp(), noise.Bernoulli(0.1), ["conv"])
    with pytest.raises(ParameterError, match="at least one weight layer"):
        noise.insert(mlp(), noise.Bernoulli(0.1), nn.Conv2d)
    with pytest.raises(ParameterError, match="none of its layers"):
        noise.insert(nn.ReLU(), noise.Bernoulli(0.1))
    with pytest.raises(InputTypeError, match="in a list"):
        noise.insert(mlp(), noise.Bernoulli(0.1), "0")
    with pytest.raises(InputTypeError, match="where must be"):
        noise.insert(mlp(), noise.Bernoulli(0.1), 3)


def test_bad_arguments():
    with pytest.raises(InputTypeError, match="family of noise"):
        noise.insert(mlp(), nn.Dropout(0.1))
    with pytest.raises(InputTypeError, match=r"torch\.nn\.Module"):
        noise.insert([mlp()], noise.Bernoulli(0.1))


def test_a_model_that_cannot_be_copied():
    model = mlp()
    model.cache = torch.ones(2, requires_grad=True) * 2
    with pytest.raises(UnsupportedModelError, match="cannot be copied"):
        noise.insert(model, noise.Bernoulli(0.1))


def test_the_warning_points_at_the_caller():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        noise.insert(mlp(), noise.Bernoulli(0.1))
    assert caught[0].filename == __file__
