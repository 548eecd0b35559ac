"""One mask a sequence: against torch's cells with masked weights, step by step."""

import itertools

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn.utils.rnn import pack_padded_sequence, pack_sequence, pad_packed_sequence
from torch.testing import assert_close

import caveat
from caveat import noise
from caveat.errors import InputTypeError, ParameterError, UnsupportedModelError
from tests.sampling.snapshot import Snapshot
from tests.statistics import assert_mean_is, assert_variance_is

KINDS = {"LSTM": (noise.LSTM, nn.LSTM), "GRU": (noise.GRU, nn.GRU)}
over_kinds = pytest.mark.parametrize("kind", KINDS)
OPTIONS = [
    {},
    {"batch_first": True},
    {"num_layers": 2, "bias": False},
    {"num_layers": 2, "bidirectional": True, "batch_first": True},
]
over_options = pytest.mark.parametrize("options", OPTIONS, ids=str)


def pair(kind, **options):
    """Ours with no mask at all, and torch's, with the same weights."""
    ours, plain = KINDS[kind]
    torchs = plain(3, 4, **options)
    rates = {"input_drop_rate": 0.0, "recurrent_drop_rate": 0.0}
    return ours.like(torchs, **rates), torchs


def start(kind, layers, rows):
    h, c = torch.randn(layers, rows, 4), torch.randn(layers, rows, 4)
    return (h, c) if kind == "LSTM" else h


def assert_same(found, expected):
    for one, other in zip(flat(found), flat(expected), strict=True):
        assert_close(one, other, rtol=1e-5, atol=1e-6)


def flat(output):
    y, state = output
    return [y, *(state if isinstance(state, tuple) else (state,))]


# Without masks: torch's own networks


@over_kinds
@over_options
@pytest.mark.parametrize("training", [True, False])
def test_without_masks_it_is_torchs_own(kind, options, training):
    ours, torchs = pair(kind, **options)
    ours.train(training)
    layers = options.get("num_layers", 1) * (1 + options.get("bidirectional", False))
    x = torch.randn(5, 5, 3)
    assert_same(ours(x), torchs(x))
    hx = start(kind, layers, 5)
    assert_same(ours(x, hx), torchs(x, hx))
    single = torch.randn(6, 3)
    assert_same(ours(single), torchs(single))
    h = tuple(s[:, 0] for s in hx) if kind == "LSTM" else hx[:, 0]
    assert_same(ours(single, h), torchs(single, h))


@over_kinds
@over_options
@pytest.mark.parametrize("training", [True, False])
def test_packed_sequences(kind, options, training):
    ours, torchs = pair(kind, **options)
    ours.train(training)
    layers = options.get("num_layers", 1) * (1 + options.get("bidirectional", False))
    sequences = [torch.randn(n, 3) for n in (2, 6, 4, 4)]
    packed = pack_sequence(sequences, enforce_sorted=False)
    in_order = pack_sequence(sorted(sequences, key=len, reverse=True))
    for given in (packed, in_order):
        for hx in (None, start(kind, layers, 4)):
            (y, state), (wanted, wanted_state) = ours(given, hx), torchs(given, hx)
            assert torch.equal(y.batch_sizes, wanted.batch_sizes)
            assert_same((y.data, state), (wanted.data, wanted_state))
            padded, _ = pad_packed_sequence(y)
            assert_close(padded, pad_packed_sequence(wanted)[0], rtol=1e-5, atol=1e-6)


@over_kinds
def test_evaluation_is_bit_exact_with_masks_set(kind):
    ours, plain = KINDS[kind]
    torchs = plain(3, 4, num_layers=2)
    noisy = ours.like(torchs.eval(), input_drop_rate=0.5, recurrent_drop_rate=0.5)
    x = torch.randn(6, 2, 3)
    assert not noisy.training
    assert torch.equal(noisy(x)[0], torchs(x)[0])
    assert list(noisy.state_dict()) == list(torchs.state_dict())


# With masks


def masked(torchs, x_mask, h_mask):
    """Torch's network with dropped units as zero columns of its weights."""
    copy = type(torchs)(torchs.input_size, torchs.hidden_size).double()
    copy.load_state_dict(torchs.state_dict())
    with torch.no_grad():
        copy.weight_ih_l0.mul_(x_mask)
        copy.weight_hh_l0.mul_(h_mask)
    return copy


def masks(size, rate):
    for bits in itertools.product((0.0, 1.0), repeat=size):
        kept = sum(bits)
        weight = (1 - rate) ** kept * rate ** (size - kept)
        yield torch.tensor(bits).double() / (1 - rate), weight


@over_kinds
def test_draws_have_the_moments_of_all_masks(kind):
    """All 2^4 masks on weights, which are the same at all steps (ledger E39)."""
    ours, plain = KINDS[kind]
    torchs = plain(2, 2).double()
    x = torch.randn(5, 1, 2).double()
    outputs, weights = [], []
    for (x_mask, p), (h_mask, q) in itertools.product(masks(2, 0.3), masks(2, 0.4)):
        outputs.append(masked(torchs, x_mask, h_mask)(x)[0].detach())
        weights.append(p * q)
    outputs, weights = torch.stack(outputs), torch.tensor(weights).double()
    mean = torch.tensordot(weights, outputs, 1)
    variance = torch.tensordot(weights, (outputs - mean).square(), 1)
    noisy = ours.like(torchs, input_drop_rate=0.3, recurrent_drop_rate=0.4)
    for model in (noisy.train(), noisy.eval()):
        mc = caveat.MCDropout(model, seed=1, batch_dim=1)
        draws = mc.draws(x, n_draws=2000)[0]
        assert_mean_is(draws, mean)
        assert_variance_is(draws, variance)


@over_kinds
def test_masks_differ_between_sequences_and_calls_not_between_steps(kind):
    """An input unit is lost for good: a step's input is seen at all steps or none."""
    ours, _ = KINDS[kind]
    noisy = ours(1, 8, input_drop_rate=0.5, recurrent_drop_rate=0.0)
    x = torch.randn(4, 64, 1)
    y, _ = noisy(x)
    empty, _ = noisy.eval()(torch.zeros_like(x))
    lost = torch.isclose(y, empty, atol=1e-6).all(-1)  # shape: (time, batch)
    assert (lost.all(0) | ~lost.any(0)).all()
    assert 0 < lost[0].sum() < 64


@over_kinds
def test_state_on_its_way_through_is_not_masked(kind):
    """All of the state lost to the gates leaves the cell's own memory."""
    ours, plain = KINDS[kind]
    torchs = plain(2, 3)
    noisy = ours.like(torchs, input_drop_rate=0.0, recurrent_drop_rate=0.999999)
    x, hx = torch.randn(1, 1, 2), start(kind, 1, 1)
    hx = tuple(s[..., :3] for s in hx) if kind == "LSTM" else hx[..., :3]
    expected = plain(2, 3)
    expected.load_state_dict(torchs.state_dict())
    nn.init.zeros_(expected.weight_hh_l0)
    assert_same(noisy(x, hx), expected(x, hx))


# The contract


@over_kinds
def test_kl_restated(kind):
    ours, _ = KINDS[kind]
    noisy = ours(3, 4, 2, input_drop_rate=0.2, recurrent_drop_rate=0.5)
    expected = 0.0
    for name, parameter in noisy.named_parameters():
        keep = {"weight_ih": 0.8, "weight_hh": 0.5}.get(name[:9], 1.0)
        expected = expected + 0.5 * 0.3**2 / keep * parameter.square().sum()
    assert_close(noisy.kl(0.3), expected)


@over_kinds
def test_gradients_reach_every_parameter(kind):
    ours, _ = KINDS[kind]
    noisy = ours(3, 4, num_layers=2, bidirectional=True)
    noisy(torch.randn(5, 2, 3))[0].square().sum().backward()
    for name, parameter in noisy.named_parameters():
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().max() > 0, name


@over_kinds
def test_networks_can_be_mapped_over(kind):
    ours, _ = KINDS[kind]
    noisy, x = ours(3, 4), torch.randn(5, 2, 3)
    stacked = {k: v.detach().expand(3, *v.shape) for k, v in noisy.named_parameters()}

    def loss(own):
        return functional_call(noisy, own, (x,))[0].square().mean()

    losses = vmap(loss, randomness="different")(stacked)
    assert len(set(losses.tolist())) == 3
    gradients = vmap(grad(loss), randomness="different")(stacked)
    assert all(g.isfinite().all() for g in gradients.values())


@over_kinds
def test_the_engine_finds_the_masks_and_touches_nothing(kind):
    ours, _ = KINDS[kind]
    model = ours(3, 4, num_layers=2, batch_first=True).eval()
    x = torch.randn(5, 6, 3)
    before = Snapshot(model, ((x,), {}))
    sites = caveat.audit(model, x)
    draws, _ = caveat.MCDropout(model, seed=1).draws(x, n_draws=3)
    before.assert_unchanged("after draws")
    assert [site.mask_shape for site in sites] == [(1, 3), (1, 4), (1, 4), (1, 4)]
    assert {site.rate for site in sites} == {0.1}
    again, _ = caveat.MCDropout(model, seed=1).draws(x[:2], n_draws=3)
    assert_close(again, draws[:, :2])


@over_kinds
def test_double_precision_and_copies(kind):
    ours, plain = KINDS[kind]
    torchs = plain(3, 4).double()
    state = torch.get_rng_state()
    noisy = ours.like(torchs)
    assert torch.equal(torch.get_rng_state(), state)
    x = torch.randn(5, 2, 3).double()
    assert noisy(x)[0].dtype == torch.float64
    with torch.no_grad():
        noisy.weight_ih_l0.add_(1.0)
    assert not torch.equal(noisy.weight_ih_l0, torchs.weight_ih_l0)


@over_kinds
def test_bad_arguments(kind):
    ours, plain = KINDS[kind]
    with pytest.raises(UnsupportedModelError, match="input_drop_rate"):
        ours(3, 4, num_layers=2, dropout=0.5)
    with pytest.raises(UnsupportedModelError, match="input_drop_rate"):
        ours.like(plain(3, 4, num_layers=2, dropout=0.5))
    with pytest.raises(ParameterError, match=f"inputs of {kind}"):
        ours(3, 4, input_drop_rate=1.0)
    with pytest.raises(ParameterError, match=f"state of {kind}"):
        ours(3, 4, recurrent_drop_rate=-0.1)
    with pytest.raises(InputTypeError, match=f"takes a torch.nn.{kind}"):
        ours.like(nn.RNN(3, 4))
    assert "recurrent_drop_rate=0.25" in repr(ours(3, 4, recurrent_drop_rate=0.25))


def test_projections_are_refused():
    with pytest.raises(UnsupportedModelError, match="proj_size"):
        noise.LSTM(3, 4, proj_size=2)


def test_padding_does_not_leak_into_packed_results():
    """Longer neighbours change nothing: same masks, same numbers."""
    gru = noise.GRU(3, 4, bidirectional=True)
    x = torch.randn(6, 2, 3)
    lengths = torch.tensor([6, 3])
    other = x.clone()
    other[3:, 1] = 99.0
    results = []
    for padded in (x, other):
        torch.manual_seed(0)
        results.append(gru(pack_padded_sequence(padded, lengths))[0].data)
    assert torch.equal(*results)
