"""What nothing reads is not computed, and all else is what it was (rewriting)."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import caveat
from caveat.sampling.engine import Session
from caveat.sampling.rewriting import compute_parts, without_writes
from caveat.sampling.ways import Way
from caveat.sampling.work import work_of
from tests.sampling.test_rewriting import bound, recorded

ROWS, TOKENS, WIDTH = 6, 16, 64
DRAWS = range(1, 8)


class ReadsOnePlace(nn.Module):
    """Dropout, some operation on (rows, tokens, width), a layer, and a few tokens."""

    def __init__(self, operation, read):
        super().__init__()
        self.first, self.last = nn.Linear(8, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.query, self.key = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.places = nn.Parameter(torch.randn(TOKENS, WIDTH))
        self.operation, self.read = operation, read

    def forward(self, x):
        h = self.first(F.dropout(x, 0.3))
        h = self.operation(self, self.query(F.dropout(h, 0.3)))
        return self.read(self.last(F.dropout(h, 0.3)))


def heads(h):
    return h.view(len(h), TOKENS, 4, WIDTH // 4).transpose(1, 2)


def attention_by_hand(m, h):
    query, key = heads(h), heads(m.key(h))
    scores = (query @ key.transpose(-1, -2)).softmax(-1)
    mixed = F.dropout(scores, 0.2) @ key
    return mixed.transpose(1, 2).contiguous().view(len(h), TOKENS, WIDTH) + h


def attention(m, h, **options):
    options = {"dropout_p": 0.0, **options}
    q, k = heads(h), heads(m.key(h))
    mixed = F.scaled_dot_product_attention(q, k, k, **options)
    return mixed.transpose(1, 2).reshape(len(h), TOKENS, WIDTH)


def rotated(m, h):
    turned = torch.cat([-h[..., WIDTH // 2 :], h[..., : WIDTH // 2]], -1)
    return h * m.places.cos() + turned * m.places.sin()


def own_norm(m, h):
    return h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)


MASK = torch.zeros(TOKENS, TOKENS).masked_fill_(
    torch.ones(TOKENS, TOKENS).triu(1).bool(), -torch.inf
)

# Places are apart in these, so that the layer before them has few to compute.
APART = {
    "nothing": lambda m, h: h,
    "elements": lambda m, h: F.gelu(h * 2) + m.places + m.places[0] + h.relu(),
    "norms": lambda m, h: F.layer_norm(h, (WIDTH,), m.places[0]) + own_norm(m, h),
    "softmax": lambda m, h: h.softmax(-1) + h.log_softmax(2),
    "turned": lambda m, h: h.transpose(1, 2).exp().permute(2, 0, 1).transpose(0, 1),
    "heads": lambda m, h: heads(h).tanh().transpose(1, 2).reshape(h.shape),
    "flattened": lambda m, h: h.unflatten(2, (8, 8)).square().flatten(2),
    "expanded": lambda m, h: h + m.places[:1].expand(len(h), TOKENS, WIDTH),
    "rotated": rotated,
    "noise": lambda m, h: h + 0.1 * torch.randn_like(h),
    "conditions": lambda m, h: torch.where(h > 0, h, m.places),
    "types": lambda m, h: h.double().clone().float().contiguous(),
}
# Here places meet, as the keys of attention do.
MIXED = {
    "attention by hand": attention_by_hand,
    "attention": attention,
    "attention with a mask": lambda m, h: attention(m, h, attn_mask=MASK),
    "attention with dropout": lambda m, h: attention(m, h, dropout_p=0.2),
    "causal attention": lambda m, h: attention(m, h, is_causal=True),
    "softmax over places": lambda m, h: h.softmax(1),
    "sums over places": lambda m, h: h + h.cumsum(1) + h.mean(1, keepdim=True),
    "places turned": lambda m, h: h.flip(1) + h.roll(1, 1),
    "places folded": lambda m, h: h.reshape(len(h), -1, 2 * WIDTH).view(h.shape),
    "two places": lambda m, h: h[:, :1] + h[:, 1:2] + h,
}
READ = {
    "first": lambda h: h[:, 0],
    "last": lambda h: h[:, -1],
    "some": lambda h: h[:, 3:5],
    "some and a layer": lambda h: h[:, 3:5].mean(1),
}


def tapes(operation, read):
    torch.manual_seed(0)
    model = ReadsOnePlace(operation, read).eval()
    _, _, tape = recorded(model, torch.randn(ROWS, TOKENS, 8))
    without_writes(tape)
    tape.drop_dead()
    less = tape.copy()
    compute_parts(less)
    return tape, less


def layers(tape):
    """Work of the linear layers."""
    return [work_of(op, tape) for op in tape.ops if "linear" in str(op.func)]


def assert_same_draws(one, other):
    drawn = [bound(tape).outputs(5, DRAWS) for tape in (one, other)]
    for (left,), (right,) in zip(*drawn, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("read", READ)
@pytest.mark.parametrize("name", APART)
def test_places_that_are_apart(name, read):
    tape, less = tapes(APART[name], READ[read])
    few = 2 if "some" in read else 1
    assert layers(less) == [work * few / TOKENS for work in layers(tape)]
    assert_same_draws(tape, less)


@pytest.mark.parametrize("read", READ)
@pytest.mark.parametrize("name", MIXED)
def test_places_that_meet(name, read):
    tape, less = tapes(MIXED[name], READ[read])
    few = 2 if "some" in read else 1
    before, after = layers(tape), layers(less)
    assert after[-1] == before[-1] * few / TOKENS  # what comes after they have met
    assert after[0] == before[0]
    assert_same_draws(tape, less)


def test_noise_is_drawn_for_what_is_read_alone():
    tape, less = tapes(attention_by_hand, READ["last"])
    sizes = [[spec.shape for spec in t.noises.values()] for t in (tape, less)]
    assert sizes[0][-2:] == [(1, 4, TOKENS, TOKENS), (1, TOKENS, WIDTH)]
    assert sizes[1][-2:] == [(1, 4, 1, TOKENS), (1, 1, WIDTH)]


@pytest.mark.parametrize(
    "read",
    [
        lambda h: h,
        lambda h: h.mean(1),
        lambda h: h[:, 0] + h.mean(1),
        lambda h: h[:, ::2],
        lambda h: h[:, :],
        lambda h: h[:, torch.tensor([0, 3])],
    ],
)
def test_what_is_read_whole_stays(read):
    tape, less = tapes(APART["nothing"], read)
    assert layers(less) == layers(tape)
    assert_same_draws(tape, less)


def test_little_work_is_left_as_it_is():
    model = nn.Sequential(nn.Dropout(0.5), FirstAndMean())
    _, _, tape = recorded(model, torch.ones(2, 4, 3))
    source = bound(tape).source
    compute_parts(tape)
    assert bound(tape).source == source


class FirstAndMean(nn.Module):
    """To compute a part of the first would be an operation more."""

    def forward(self, h):
        return torch.tanh(h)[:, 0] + h.mean(1)


# ------------------------------------------------------------------ one leaf of several


class Encoder(nn.Module):
    """Returns all places, and one of them after another layer."""

    def __init__(self, width=WIDTH):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(8, width), nn.ReLU(), nn.Linear(width, width)
        )
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        h = self.body(F.dropout(x, 0.3))
        return {"places": h, "logits": self.head(F.dropout(h, 0.3)[:, 0])}


def whichever_works(out):
    try:
        return out["places"].mean((1, 2))[:, None] + out["logits"]
    except Exception:
        return out["logits"]


CHOICES = {
    "by name": lambda out: out["logits"],
    "by order": lambda out: list(out.values())[1],
    "another": lambda out: out["places"],
    "made of it": lambda out: out["logits"] * 2,
    "made of both": lambda out: out["logits"] + out["places"].mean(),
    "by values": lambda out: out["logits" if out["places"].sum() > 0 else "places"],
    "by shapes": lambda out: min(out.values(), key=lambda v: v.dim()),
    "by what fails": whichever_works,
}


@pytest.mark.parametrize("rows", [2, 400])
@pytest.mark.parametrize("name", CHOICES)
def test_choices_of_an_output(name, rows, monkeypatch):
    alone = []
    plain = Way.alone

    def noted(self, *args):
        alone.append(plain(self, *args))
        return alone[-1]

    monkeypatch.setattr(Way, "alone", noted)
    torch.manual_seed(0)
    model, choice = Encoder().eval(), CHOICES[name]
    x = torch.randn(rows, TOKENS, 8)
    drawn = caveat.MCDropout(model, seed=1).draws(x, n_draws=20)
    assert not alone
    found = caveat.MCDropout(model, seed=1, analytic=False).regress(
        x, n_draws=20, precision=1.0, output=choice
    )
    each = [choice({k: v[t] for k, v in drawn.items()}) for t in range(20)]
    torch.testing.assert_close(found.draws, torch.stack(each), rtol=1e-4, atol=1e-5)
    if name != "another":  # which leaves out a small layer, as it happens
        is_alone = name in ("by name", "by order")
        assert any(replay is not None for replay in alone) is is_alone


def test_logits_among_other_outputs(monkeypatch):
    torch.manual_seed(0)
    model, x = Encoder().eval(), torch.randn(5, TOKENS, 8)
    mc = caveat.MCDropout(model, seed=1)
    logits = mc.draws(x, n_draws=40)["logits"]
    found = mc.classify(x, n_draws=40)
    torch.testing.assert_close(found.draws, logits, rtol=1e-4, atol=1e-5)
    monkeypatch.setattr(Session, "leaf_alone", lambda self, picker: None)
    again = caveat.MCDropout(model, seed=1).classify(x, n_draws=40)
    torch.testing.assert_close(found.probs, again.probs, rtol=1e-4, atol=1e-6)
    # Later calls with other values, on the short road.
    for seed in range(3):
        x = torch.randn(5, TOKENS, 8, generator=torch.Generator().manual_seed(seed))
        logits = mc.draws(x, n_draws=40)["logits"]
        found = mc.classify(x, n_draws=40)
        torch.testing.assert_close(found.draws, logits, rtol=1e-4, atol=1e-5)
