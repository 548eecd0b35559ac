"""Many draws computed together are the draws computed one by one."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import rnn

import caveat
from caveat.sampling import engine, replay
from tests.sampling.comparing import SEED, assert_close, over_zoo, refusal_allowed
from tests.zoo.specimen import Specimen

N_DRAWS = 40  # more than are computed at a time


@pytest.fixture
def draw(monkeypatch):
    """Draw by ``call``, together or not; says which it was."""
    settled = []
    plain = engine.Way.settle

    def settle(self, agrees):
        found = plain(self, agrees)
        settled.append(found and self.replay.together)
        return found

    monkeypatch.setattr(engine.Way, "settle", settle)
    monkeypatch.setattr(replay, "_draws_at_once", lambda tape: 16)

    def drawn(call, *, together):
        settled.clear()
        monkeypatch.setattr(replay, "_is_mostly_overhead", lambda tape: together)
        return call(), any(settled)

    return drawn


@over_zoo(where=lambda s: s.fixed_sites)
def test_on_the_zoo(specimen: Specimen, draw):
    def call():
        mc = caveat.MCDropout(specimen.build(), seed=SEED)
        args, kwargs = specimen.rows()
        return specimen.tensors(mc.draws(*args, n_draws=N_DRAWS, **kwargs))

    with refusal_allowed(specimen):
        one, _ = draw(call, together=True)
        other, _ = draw(call, together=False)
    assert_close(one, other, max(specimen.rounding, 1e-4))


class Does(nn.Module):
    """A layer, dropout, then some operation on what is noisy (rows, 6)."""

    def __init__(self, operation):
        super().__init__()
        self.first = nn.Linear(4, 6)
        self.second = nn.Linear(6, 6)
        self.table = nn.Parameter(torch.randn(6, 6))
        self.operation = operation

    def forward(self, x):
        return self.operation(self, F.dropout(self.first(x), 0.4))


def own_weights(m, h):
    return F.linear(h, F.dropout(m.table, 0.5), F.dropout(m.second.bias, 0.5))


def attention(m, h):
    x = h.view(-1, 1, 2, 3)
    return F.scaled_dot_product_attention(x, x, x).flatten(1)


def convolution(m, h):
    x = F.conv1d(h.unsqueeze(1), m.table[:2, None, :3])
    return F.max_pool1d(x, 2).flatten(1)


def embedding(m, h):
    table = F.dropout(m.table, 0.5)
    drawn = F.embedding(torch.tensor([1, 2]), table).sum()
    return drawn + F.embedding((h > 0).long(), m.table).mean(1)


def products(m, h):
    pairs = torch.bmm(h.view(-1, 2, 3), h.view(-1, 3, 2)).flatten(1)
    return h @ m.table + torch.mm(h, m.table.t()) + pairs.sum(1, keepdim=True)


OPERATIONS = {
    "arithmetic": lambda m, h: (h * 2 + 1 - h / 3).pow(2).sqrt(),
    "fewer axes": lambda m, h: h + F.dropout(m.table[0], 0.5),
    "compared": lambda m, h: torch.where(h > 0, h, -h) * (h >= 0.1),
    "softmax": lambda m, h: h.softmax(-1) + h.softmax(1) + h.log_softmax(-1),
    "reduced": lambda m, h: h.mean(1, keepdim=True) + h.sum(-1)[:, None] + h.amax(1)[0],
    "all reduced": lambda m, h: h - h[:, :1].mean(),
    "reshaped": lambda m, h: h.view(-1, 2, 3).flatten(1).unflatten(1, (3, 2)),
    "turned": lambda m, h: h.t().t().unsqueeze(1).transpose(1, 2).squeeze(2),
    "permuted": lambda m, h: h.view(-1, 2, 3).permute(0, 2, 1).reshape(-1, 6),
    "cut": lambda m, h: torch.cat([h[:, 2:], h[:, :2]], 1) + h.narrow(1, 0, 6),
    "chunks": lambda m, h: (
        torch.cat(h.chunk(2, 1)[::-1], -1) + h.split(2, dim=1)[0][0, 0]
    ),
    "stacked": lambda m, h: torch.stack([h, h.relu()], 1).sum(1),
    "selected": lambda m, h: h.index_select(1, torch.tensor([5, 0, 3])),
    "expanded": lambda m, h: h[:, :1].expand(-1, 6) * h,
    "linear": lambda m, h: m.second(m.second(h).relu()),
    "own weights": own_weights,
    "products": products,
    "added products": lambda m, h: torch.addmm(m.second.bias, h, m.table),
    "layer norm": lambda m, h: F.layer_norm(h, (6,), m.second.bias, None),
    "batch norm": lambda m, h: F.batch_norm(h, m.second.bias, m.table[0].square() + 1),
    "group norm": lambda m, h: F.group_norm(h, 2),
    "convolution": convolution,
    "attention": attention,
    "einsum": lambda m, h: torch.einsum("ni,ij->nj", h, m.table),
    "gathered": lambda m, h: h.gather(1, h.argsort(1)),
    "cumulated": lambda m, h: h.cumsum(1),
    "typed": lambda m, h: h.double().to(h.dtype).clone().contiguous(),
    "repeated": lambda m, h: h.repeat(1, 2),
    "embedding": embedding,
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.filterwarnings("ignore:.*not independent")
def test_operations(name, rows, draw):
    x = torch.linspace(-1, 2, 4 * rows).view(rows, 4)

    def call():
        torch.manual_seed(2)
        model = Does(OPERATIONS[name]).eval()
        return caveat.MCDropout(model, seed=0).draws(x, n_draws=N_DRAWS)

    one, were = draw(call, together=True)
    other, were_not = draw(call, together=False)
    assert were and not were_not
    assert torch.allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("batch_first", [True, False])
def test_recurrent_layers(kind, batch_first, draw):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            options = {"bidirectional": True, "batch_first": batch_first}
            self.layers = kind(3, 5, 2, dropout=0.5, **options)

        def forward(self, x):
            return self.layers(x)[0]

    x = torch.linspace(-1, 2, 24).view(2, 4, 3)

    def call():
        torch.manual_seed(0)
        mc = caveat.MCDropout(Model().eval(), seed=0, batch_dim=0 if batch_first else 1)
        return mc.draws(x, n_draws=N_DRAWS)

    one, were = draw(call, together=True)
    other, _ = draw(call, together=False)
    assert were
    assert torch.allclose(one, other, atol=1e-5)


class Packed(nn.Module):
    """Dropout, then a packed sequence, and padded again if asked for."""

    def __init__(self, kind, *, batch_first, padded, options):
        super().__init__()
        self.net = kind(4, 3, batch_first=batch_first, **options)
        self.batch_first, self.padded = batch_first, padded

    def forward(self, x, lengths):
        x = F.dropout(x, 0.4)
        x = x if self.batch_first else x.transpose(0, 1)
        packed = rnn.pack_padded_sequence(
            x, lengths, batch_first=self.batch_first, enforce_sorted=False
        )
        out, state = self.net(packed)
        if not self.padded:
            return (state[0] if isinstance(state, tuple) else state).movedim(1, 0)
        out, _ = rnn.pad_packed_sequence(
            out, batch_first=self.batch_first, total_length=7
        )
        return torch.tanh(out if self.batch_first else out.transpose(0, 1))


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize(
    ("batch_first", "options"),
    [(True, {}), (False, {"num_layers": 2}), (True, {"bidirectional": True})],
)
def test_packed_sequences(kind, padded, batch_first, options, draw):
    torch.manual_seed(0)
    model = Packed(kind, batch_first=batch_first, padded=padded, options=options)
    x = torch.randn(5, 7, 4)
    lengths = torch.tensor([3, 7, 1, 7, 5])

    def call():
        mc = caveat.MCDropout(model, seed=SEED)
        return mc.draws(x, lengths, n_draws=N_DRAWS)

    one, was_together = draw(call, together=True)
    other, _ = draw(call, together=False)
    assert was_together
    assert_close([one], [other], 1e-5)


class Ways(nn.Module):
    """Goes on until a drawn value stops it."""

    def __init__(self, *, after):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(4))
        self.after = after

    def forward(self, x):
        for number, layer in enumerate(self.layers):  # noqa: B007, of the last one
            x = F.dropout(torch.relu(layer(x)), 0.5)
            if self.after(x):
                break
        return torch.cat([x, torch.full_like(x[:, :1], number)], 1)


def by_item(x):
    return x.sum(1).max().gt(0.9).item()


def by_whole_number(x):
    return int((x > 0.4).sum()) in (2, 5, 6)


def by_truth(x):
    return bool((x.amax(1) > 0.8).any().unsqueeze(0))


@pytest.mark.parametrize("after", [by_item, by_whole_number, by_truth])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.filterwarnings("ignore:The rows of Ways are not independent")
@pytest.mark.filterwarnings("ignore:Ways draws noise for this batch")
def test_draws_that_go_several_ways(after, rows, draw):
    torch.manual_seed(1)
    model, x = Ways(after=after), torch.randn(rows, 6)

    def call():
        mc = caveat.MCDropout(model, seed=SEED)
        mc.draws(x + 1, n_draws=N_DRAWS)  # another batch first
        return mc.draws(x, n_draws=3 * N_DRAWS)

    one, was_together = draw(call, together=True)
    other, _ = draw(call, together=False)
    assert was_together
    assert_close([one], [other], 1e-5)
    mc = caveat.MCDropout(model, seed=SEED)
    with torch.no_grad():
        loop = [mc.function(t)(x) for t in range(60, 70)]
    assert_close([one[60:70]], [torch.stack(loop)], 1e-5)
    assert len(one[..., -1].unique()) > 2
    blocks = mc.regress(x, n_draws=3 * N_DRAWS, precision=1.0)
    assert_close([blocks.draws], [one], 1e-5)


class Looks(nn.Module):
    """A drawn number is looked up where only one way has enough entries."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 8)
        self.short, self.long = nn.Parameter(torch.randn(3)), torch.randn(9)

    def forward(self, x):
        n = (F.dropout(self.net(x), 0.5) > 0).sum(1)
        table = self.short if int(n.max()) < 3 else self.long
        return table[n].unsqueeze(1)


def test_a_draw_that_left_its_way_may_fail_on_it(draw):
    torch.manual_seed(0)
    model, x = Looks(), torch.randn(1, 4)

    def call():
        return caveat.MCDropout(model, seed=SEED).draws(x, n_draws=N_DRAWS)

    one, was_together = draw(call, together=True)
    other, _ = draw(call, together=False)
    assert was_together
    assert_close([one], [other], 1e-6)


class Constant(nn.Module):
    """Noise decides which of two constants is returned, and nothing else."""

    def __init__(self):
        super().__init__()
        self.ones = nn.Parameter(torch.ones(8))

    def forward(self, x):
        up = bool(F.dropout(self.ones, 0.5).sum() > 8)
        return x + 1 if up else x - 1


def test_ways_without_noise_in_their_outputs(draw):
    x = torch.zeros(2, 1)

    def call():
        return caveat.MCDropout(Constant(), seed=SEED).draws(x, n_draws=N_DRAWS)

    one, _ = draw(call, together=True)
    other, _ = draw(call, together=False)
    assert torch.equal(one, other)
    assert one.unique().tolist() == [-1.0, 1.0]


@pytest.mark.parametrize("shape", [(1, 5), (3, 5), (2, 2, 5), (70, 5)])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("outputs", [2, 80])
def test_heads_of_any_size(shape, bias, outputs, draw):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Tanh(), nn.Dropout(0.3), nn.Linear(5, outputs, bias=bias))
    x = torch.randn(shape)

    def call():
        return caveat.MCDropout(model, seed=SEED).draws(x, n_draws=200)

    one, _ = draw(call, together=True)
    other, _ = draw(call, together=False)
    mc = caveat.MCDropout(model, seed=SEED)
    assert_close([one], [other], 1e-5)
    assert_close(
        [one[[0, 99]]], [torch.stack([mc.function(t)(x) for t in (0, 99)])], 1e-5
    )
