"""A recorded pass used again: for other values the numbers of a fresh start."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import rnn

import caveat
from caveat.sampling import engine
from tests.sampling.comparing import SEED, assert_close, over_zoo, refusal_allowed
from tests.zoo.specimen import Specimen

N_DRAWS = 5
CALLS = ([0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8, 11], [0, 3, 6, 9])


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Draws for which a model was run, and not replayed."""
    seen: list[int] = []
    plain = engine.Session._run_model

    def counted(self, draw):
        seen.append(draw)
        return plain(self, draw)

    monkeypatch.setattr(engine.Session, "_run_model", counted)
    return seen


@over_zoo(where=lambda s: s.fixed_sites)
def test_later_batches_are_as_on_a_fresh_start(specimen: Specimen):
    warm = caveat.MCDropout(specimen.build(), seed=SEED)
    for rows in CALLS:
        rows = rows if specimen.row_wise or specimen.n_rows else rows[:1]
        with refusal_allowed(specimen):
            found = _draws(warm, specimen, rows)
            fresh = _draws(
                caveat.MCDropout(specimen.build(), seed=SEED), specimen, rows
            )
        assert_close(found, fresh, max(specimen.rounding, 1e-4), f"rows {rows}")


def _draws(mc, specimen, rows):
    args, kwargs = specimen.rows(rows)
    return specimen.tensors(mc.draws(*args, n_draws=N_DRAWS, **kwargs))


def mlp(rate: float = 0.5) -> nn.Module:
    torch.manual_seed(3)
    layers = [nn.Linear(4, 16), nn.ReLU(), nn.Dropout(rate), nn.Linear(16, 2)]
    return nn.Sequential(*layers).eval()


def batches(n: int, rows: int = 3, width: int = 4) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(rows, width, generator=generator) for _ in range(n)]


def test_the_third_batch_does_not_run_the_model(passes):
    mc = caveat.MCDropout(mlp(), seed=0)
    for x in batches(4):
        mc.draws(x, n_draws=3)
    assert passes == [0, 0]  # recorded, then proved


def test_the_same_batch_again_needs_no_proof(passes):
    mc = caveat.MCDropout(mlp(), seed=0)
    (x,) = batches(1)
    first, second = mc.draws(x, n_draws=3), mc.draws(x, n_draws=3)
    assert passes == [0]
    assert torch.equal(first, second)


def test_rows_of_a_larger_tensor(passes):
    """Where an input lies in its memory does not matter."""
    (x,) = batches(1, rows=8)
    mc = caveat.MCDropout(mlp(), seed=0)
    found = torch.cat([mc.draws(x[i : i + 1], n_draws=4) for i in range(8)], 1)
    assert len(passes) == 2
    assert torch.allclose(found, mc.draws(x, n_draws=4), atol=1e-6)


def changes_a_weight(model):
    with torch.no_grad():
        model[0].weight.mul_(2.0)


def changes_data(model):
    model[3].weight.data.add_(1.0)


def replaces_data(model):
    model[0].weight.data = torch.ones_like(model[0].weight)


def replaces_a_parameter(model):
    model[0].bias = nn.Parameter(torch.ones(16))


def loads(model):
    model.load_state_dict(mlp_with_other_weights().state_dict(), assign=True)


def replaces_a_module(model):
    model[1] = nn.Tanh()


def changes_a_rate(model):
    model[2].p = 0.1


def goes_double(model):
    model.double()


def hooks(model):
    model[1].register_forward_hook(lambda module, args, out: out + 1)


def mlp_with_other_weights():
    model = mlp()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3)
    return model


@pytest.mark.parametrize(
    "change",
    [
        changes_a_weight,
        changes_data,
        replaces_data,
        replaces_a_parameter,
        loads,
        replaces_a_module,
        changes_a_rate,
        goes_double,
        hooks,
    ],
)
def test_a_changed_model_is_seen(change):
    model = mlp()
    mc = caveat.MCDropout(model, seed=0)
    *before, x = batches(4)
    for y in before:
        mc.draws(y, n_draws=3)
    change(model)
    x = x.to(next(model.parameters()).dtype)
    fresh = caveat.MCDropout(copy.deepcopy(model), seed=0).draws(x, n_draws=3)
    assert torch.allclose(mc.draws(x, n_draws=3), fresh, atol=1e-6)


class ByValue(nn.Module):
    """Goes where its second input says, which all rows share."""

    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(4, 3), nn.Linear(4, 3)

    def forward(self, x, given):
        return nn.functional.dropout(self.changed(x, given), 0.5)

    def changed(self, x, given):
        return self.left(x) if given.sum() > 0 else self.right(x)


class ByList(ByValue):
    def changed(self, x, given):
        return self.left(x) if sum(given.tolist()) > 0 else self.right(x)


class ByNumpy(ByValue):
    def changed(self, x, given):
        return self.left(x) if given.numpy().sum() > 0 else self.right(x)


class ByCopy(ByValue):
    def changed(self, x, given):
        return self.left(x) * copy.deepcopy(given).sum()


class ByScale(ByValue):
    def changed(self, x, given):
        return self.left(x) / given.abs().max().item()


class ByData(ByValue):
    def changed(self, x, given):
        return self.left(x.data) * self.right.weight.data[0, 0] + given.data[0]


class BySize(ByValue):
    """Through a tensor whose size the values decide."""

    def changed(self, x, given):
        return self.left(x) + given[given > 0].sum() + len(given[given > 0])


class ByMemory(ByValue):
    """Through numpy and back, where no operation is seen."""

    def changed(self, x, given):
        return self.left(x) * torch.from_numpy(given.numpy()).sum()


class ByWrite(ByValue):
    """Through a weight that it writes over, and through a view of an input."""

    def changed(self, x, given):
        self.left.weight.data.copy_(self.right.weight * given[0])
        given[1:].mul_(3.0)
        return self.left(x) + given.sum()


class ByTable(ByValue):
    """Through a tensor made of nothing."""

    def changed(self, x, given):
        table = torch.zeros(4)
        table[1] = given[0]
        table[2:] = given[:2]
        return self.left(x) + table.cumsum(0)[-1]


KINDS = [ByValue, ByList, ByNumpy, ByCopy, ByScale, ByData, BySize, ByMemory]
KINDS += [ByWrite, ByTable]


@pytest.mark.parametrize("kind", KINDS)
def test_values_that_reach_python_are_checked(kind):
    torch.manual_seed(0)
    model = kind().eval()
    state = copy.deepcopy(model.state_dict())
    warm = caveat.MCDropout(model, seed=0)
    for x, given in zip(batches(9), batches(9, rows=1, width=5), strict=True):
        given = given[0]
        before = given.clone()
        fresh = caveat.MCDropout(copy.deepcopy(model), seed=0)
        expected = fresh.draws(x, given, n_draws=3)
        assert torch.allclose(warm.draws(x, given, n_draws=3), expected, atol=1e-6)
        assert torch.equal(given, before)
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, state[name])


def test_an_input_that_is_a_weight():
    """The next input is not put in the place of the weight."""
    model = mlp()
    mc = caveat.MCDropout(model, seed=0)
    rows = model[0].weight.detach()
    for x in (rows, *batches(3, rows=16)):
        fresh = caveat.MCDropout(copy.deepcopy(model), seed=0).draws(x, n_draws=3)
        assert torch.allclose(mc.draws(x, n_draws=3), fresh, atol=1e-6)


def test_two_inputs_that_are_one():
    class Sum(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 3)

        def forward(self, x, y):
            return nn.functional.dropout(self.layer(x - 2 * y), 0.5)

    model = Sum().eval()
    mc = caveat.MCDropout(model, seed=0)
    a, b, c, d = batches(4)
    for x, y in ((a, a), (b, b), (c, d), (d, c), (a, b)):
        fresh = caveat.MCDropout(copy.deepcopy(model), seed=0).draws(x, y, n_draws=3)
        assert torch.allclose(mc.draws(x, y, n_draws=3), fresh, atol=1e-6)


def test_early_exit_is_replayed_by_ways(passes):
    class Early(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 8)
            self.head = nn.Linear(8, 1)

        def forward(self, x):
            h = nn.functional.dropout(self.first(x).relu(), 0.5)
            if h.sum() > self.first(x).relu().sum():
                return self.head(h)
            return self.head(nn.functional.dropout(self.second(h), 0.5))

    torch.manual_seed(1)
    model = Early().eval()
    mc = caveat.MCDropout(model, seed=0)
    (x,) = batches(1)
    draws = mc.draws(x, n_draws=200)
    assert len(passes) == 2
    for t in range(0, 200, 7):
        assert torch.allclose(draws[t], mc.function(t)(x), atol=1e-6)


class Repacked(nn.Module):
    """Packs a sequence for a layer and pads it again: lengths are read in C++."""

    def __init__(self, *, noise_first):
        super().__init__()
        self.net, self.noise_first = nn.GRU(4, 3, batch_first=True), noise_first

    def forward(self, x, lengths):
        x = F.dropout(x, 0.4) if self.noise_first else x
        packed = rnn.pack_padded_sequence(
            x, lengths, batch_first=True, enforce_sorted=False
        )
        out, _ = rnn.pad_packed_sequence(self.net(packed)[0], batch_first=True)
        return F.dropout(out, 0.4).sum(1)


class Split(nn.Module):
    """Cuts its units where the input says."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 6)

    def forward(self, x, places):
        parts = torch.tensor_split(F.dropout(self.net(x), 0.5), places, dim=1)
        return torch.stack([part.sum(1) for part in parts], 1)


class Aligned(nn.Module):
    """A loss over sequences whose lengths are an input."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 6)

    def forward(self, x, lengths):
        logits = F.dropout(self.net(x), 0.5).log_softmax(-1).transpose(0, 1)
        labels = torch.tensor([[1, 2]]).expand(len(x), 2)
        sizes = torch.full((len(x),), 2)
        return F.ctc_loss(logits, labels, lengths, sizes, reduction="none")


@pytest.mark.parametrize(
    ("model", "first", "then"),
    [
        (Repacked(noise_first=True), [7, 4, 4], [7, 7, 1]),  # as long in all
        (Repacked(noise_first=False), [7, 4, 4], [7, 7, 1]),
        (Repacked(noise_first=True), [4, 7, 4], [4, 4, 7]),
        (Split(), [1, 4], [2, 4]),
        (Aligned(), [5, 6, 7], [7, 5, 5]),
    ],
)
@pytest.mark.filterwarnings("ignore:The rows of Repacked are not independent")
@pytest.mark.filterwarnings("ignore:Split cannot be run on")
@pytest.mark.filterwarnings("ignore:The rows of Split are not independent")
def test_lengths_that_are_read_unseen(model, first, then):
    shape = (3, 4) if isinstance(model, Split) else (3, 7, 4)
    mc = caveat.MCDropout(model, seed=0)
    for _ in range(3):  # until what was learned is trusted
        mc.draws(torch.randn(shape), torch.tensor(first), n_draws=3)
    given = torch.randn(shape), torch.tensor(then)
    found = mc.draws(*given, n_draws=3)
    fresh = caveat.MCDropout(model, seed=0)
    with torch.no_grad():
        loop = torch.stack([fresh.function(t)(*given) for t in range(3)])
    torch.testing.assert_close(found, loop)
