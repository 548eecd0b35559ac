"""The contract that every family keeps, on every kind of layer."""

import io

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, stack_module_state, vmap

import caveat
from caveat import noise
from caveat.errors import InputTypeError, ParameterError, UnsupportedModelError
from caveat.noise.units import InputNoisyLayer
from tests.noise.families import FAMILIES, LAYERS, settings
from tests.sampling.snapshot import Snapshot

over_families = pytest.mark.parametrize("family", FAMILIES, ids=settings)
over_layers = pytest.mark.parametrize("kind", LAYERS)


def made(family, kind):
    make, shape = LAYERS[kind]
    layer = make()
    return layer, family.wrap(layer), torch.randn(shape)


@over_families
@over_layers
def test_evaluation_is_the_bare_layer_and_training_is_not(family, kind):
    layer, wrapped, x = made(family, kind)
    assert torch.equal(wrapped.eval()(x), layer(x))
    assert torch.equal(wrapped(x), layer(x))
    drawn = wrapped.train()(x)
    assert drawn.shape == layer(x).shape
    assert drawn.dtype == x.dtype
    assert not torch.equal(drawn, wrapped(x))


@over_families
@over_layers
def test_gradients_of_draw_and_kl_reach_every_parameter(family, kind):
    _, wrapped, x = made(family, kind)
    loss = wrapped(x).square().sum() + wrapped.kl(0.5)
    loss.backward()
    for name, parameter in wrapped.named_parameters():
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().max() > 0, name


@over_families
@over_layers
def test_the_engine_finds_the_noise_and_touches_nothing(family, kind):
    _, wrapped, x = made(family, kind)
    if x.dim() == 1 or kind == "conv3d without batch":
        x = torch.stack([x, -x, 2 * x])
    for model in (wrapped, wrapped.eval()):
        before = Snapshot(model, ((x,), {}))
        draws = caveat.MCDropout(model, seed=1).draws(x, n_draws=4)
        before.assert_unchanged("after draws")
        assert draws.std(0).max() > 0
        again = caveat.MCDropout(model, seed=1).draws(x[:2], n_draws=4)
        assert torch.allclose(again, draws[:, :2], atol=1e-6)


@over_families
@over_layers
def test_networks_mapped_over_have_noise_of_their_own(family, kind):
    class Objective(nn.Module):
        def __init__(self, layer):
            super().__init__()
            self.model = nn.Sequential(family.wrap(layer))

        def forward(self, x):
            return self.model(x).square().mean() + 1e-3 * noise.kl(self.model, 0.5)

    make, shape = LAYERS[kind]
    layer = make()
    members = [Objective(layer) for _ in range(3)]  # the same weights in all of them
    state = members[0].state_dict()
    for member in members:
        member.load_state_dict(state)
    parameters, _ = stack_module_state(members)
    x = torch.randn(shape)

    def loss(own):
        return functional_call(members[0], own, (x,))

    losses = vmap(loss, randomness="different")(parameters)
    assert len(set(losses.tolist())) == 3
    for name, gradient in vmap(grad(loss), randomness="different")(parameters).items():
        assert gradient.isfinite().all(), name
    same = vmap(loss, randomness="same")(parameters)
    torch.testing.assert_close(same, same[:1].expand(3))


@over_families
def test_a_state_dict_makes_the_round_trip(family):
    wrapped = family.wrap(nn.Linear(4, 3))
    with torch.no_grad():
        for parameter in wrapped.parameters():
            parameter.add_(0.1)
    file = io.BytesIO()
    torch.save(wrapped.state_dict(), file)
    file.seek(0)
    other = family.wrap(nn.Linear(4, 3))
    other.load_state_dict(torch.load(file, weights_only=True))
    x = torch.randn(5, 4)
    assert torch.equal(wrapped.eval()(x), other.eval()(x))
    assert torch.equal(wrapped.kl(0.5), other.kl(0.5))
    assert {"layer.weight", "layer.bias"} <= set(wrapped.state_dict())


@over_families
def test_kl_is_pure_and_takes_a_lengthscale_as_a_tensor(family):
    wrapped = family.wrap(nn.Linear(4, 3))
    before = Snapshot(wrapped, ((), {}))
    first, again = wrapped.kl(0.5), wrapped.kl(0.5)
    before.assert_unchanged("after kl")
    assert first.dim() == 0
    assert torch.equal(first, again)
    torch.testing.assert_close(wrapped.kl(torch.tensor(0.5)), first)
    lengths = torch.tensor([0.1, 0.5])
    torch.testing.assert_close(vmap(wrapped.kl)(lengths)[1], first)


@over_families
def test_wrapping_keeps_mode_type_and_the_layer_itself(family):
    layer = nn.Linear(4, 3).double().eval()
    wrapped = family.wrap(layer)
    assert wrapped.layer is layer
    assert wrapped.weight is layer.weight
    assert wrapped.bias is layer.bias
    assert not any(module.training for module in wrapped.modules())
    assert {p.dtype for p in wrapped.parameters()} == {torch.float64}
    assert wrapped.train()(torch.ones(2, 4).double()).dtype == torch.float64


@over_families
def test_it_runs_on_another_device(family):
    """The meta device has no numbers, but objects to a tensor from elsewhere."""
    wrapped = family.wrap(nn.Linear(4, 3)).to("meta")
    assert wrapped(torch.ones(2, 4, device="meta")).device.type == "meta"
    assert wrapped.kl(0.5).device.type == "meta"
    on_meta = family.wrap(nn.Linear(4, 3, device="meta"))
    assert {p.device.type for p in on_meta.parameters()} == {"meta"}


@over_families
def test_families_are_values(family):
    assert family == type(family)(**vars(family))
    assert hash(family) == hash(type(family)(**vars(family)))
    with pytest.raises(AttributeError):
        family.anything = 1
    assert repr(family).startswith(type(family).__name__)


@over_families
def test_other_layers_are_refused(family):
    with pytest.raises(UnsupportedModelError, match="Got LSTM"):
        family.wrap(nn.LSTM(2, 2))
    with pytest.raises(UnsupportedModelError, match="Got ConvTranspose2d"):
        family.wrap(nn.ConvTranspose2d(2, 2, 2))
    with pytest.raises(UnsupportedModelError, match="no weights yet"):
        family.wrap(nn.LazyLinear(2))
    with pytest.raises(UnsupportedModelError, match="Got "):
        family.wrap(family.wrap(nn.Linear(2, 2)))
    with pytest.raises(InputTypeError, match=r"torch\.nn\.Module"):
        family.wrap(torch.ones(2, 2))


@over_families
def test_bad_lengthscales_are_refused(family):
    wrapped = family.wrap(nn.Linear(2, 2))
    with pytest.raises(ParameterError, match="lengthscale"):
        wrapped.kl(0.0)
    with pytest.raises(InputTypeError, match="lengthscale"):
        wrapped.kl("1")


@over_families
def test_weight_norm_layers(family):
    layer = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))
    wrapped = family.wrap(layer)
    (wrapped(torch.randn(5, 4)).sum() + wrapped.kl(0.5)).backward()
    norm = layer.parametrizations.weight.original0
    assert norm.grad.isfinite().all()
    assert norm.grad.abs().max() > 0


class Scaled(nn.Linear):
    def forward(self, x):
        return 2 * super().forward(x)


@over_families
def test_a_layer_with_a_forward_of_its_own(family):
    """Noise on units works with it; drawn weights would leave out what it adds."""
    on_units = isinstance(family.wrap(nn.Linear(4, 3)), InputNoisyLayer)
    if on_units and not getattr(family, "on_biases", False):
        layer = Scaled(4, 3)
        x = torch.randn(5, 4)
        assert torch.equal(family.wrap(layer).eval()(x), layer(x))
    else:
        with pytest.raises(UnsupportedModelError, match="of its own"):
            family.wrap(Scaled(4, 3))
