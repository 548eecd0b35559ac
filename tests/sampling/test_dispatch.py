"""What depends on a drawn tensor's values, and what only on its shape or on others.

Nothing of the latter may count as drawn: once it reaches Python, as lengths do, every
draw would have to run the model.
"""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import caveat
from caveat.sampling.inputs import Batch

X = torch.linspace(-1, 1, 60).view(4, 5, 3)
LENGTHS = torch.tensor([5, 4, 4, 1])


class Reads(nn.Module):
    """Reads something of a drawn tensor in Python, and does nothing with it."""

    def __init__(self, read):
        super().__init__()
        self.layer, self.read = nn.Linear(3, 3), read

    def forward(self, x):
        h = F.dropout(self.layer(x), 0.5)
        return h + 0.0 * self.read(h, x)


def batch_sizes(h, x):
    packed = pack_padded_sequence(h, LENGTHS[: len(x)], batch_first=True)
    return sum(packed.batch_sizes.tolist())


def padded_lengths(h, x):
    packed = pack_padded_sequence(h, LENGTHS[: len(x)], batch_first=True)
    _, lengths = pad_packed_sequence(packed, batch_first=True)
    return float(lengths.float().mean())


def bag_sizes(h, x):
    index, offsets = torch.tensor([0, 1, 1, 0, 2]), torch.tensor([0, 2])
    return float(torch.embedding_bag(h[0], index, offsets)[2].sum())


CLEAN = {
    "zeros_like": lambda h, x: float(torch.zeros_like(h).sum()),
    "ones_like": lambda h, x: torch.ones_like(h, dtype=torch.int64)[0, 0, 0].item(),
    "full_like": lambda h, x: torch.full_like(h, 3.0).sum().item(),
    "new_zeros": lambda h, x: 1.0 if h.new_zeros(3).any() else 0.0,
    "new_ones": lambda h, x: len(h.new_ones(3).nonzero()),
    "new_full": lambda h, x: h.new_full((2,), 2.0).tolist()[0],
    "new_tensor": lambda h, x: h.new_tensor([1.0, 2.0])[0].item(),
    "type_as": lambda h, x: x.double().type_as(h).sum().item(),
    "to": lambda h, x: float(x.double().to(h).sum()),
    "reshape_as": lambda h, x: float(x.transpose(0, 1).reshape_as(h).sum()),
    "expand_as": lambda h, x: float(x[:1].expand_as(h).sum()),
    "shape": lambda h, x: len(h) + h.numel() + h.element_size() + float(h.is_conj()),
    "batch sizes": batch_sizes,
    "lengths": padded_lengths,
    "bag sizes": bag_sizes,
}

DRAWN = {
    "filled": lambda h, x: float(torch.zeros_like(h).copy_(h).sum()),
    "part filled": lambda h, x: float(F.pad(h, (1, 1)).sum()),
    "type": lambda h, x: h.double().type_as(x).sum().item(),
    "packed": lambda h, x: float(
        pack_padded_sequence(h, LENGTHS[: len(x)], True).data.sum()
    ),
    "lengths": lambda h, x: float(
        pack_padded_sequence(
            x, (h[:, 0, 0] != 9).long() + 1, True, enforce_sorted=False
        ).batch_sizes.sum()
    ),
}


def is_certain(read) -> bool:
    """Whether all draws go one way, whatever is drawn."""
    mc = caveat.MCDropout(Reads(read).eval(), seed=0)
    return mc._sampler.session(Batch.of((X,), {}, axis=0)).way is not None


@pytest.mark.parametrize("read", CLEAN.values(), ids=CLEAN)
def test_what_no_drawn_value_decides(read):
    assert is_certain(read)


@pytest.mark.parametrize("read", DRAWN.values(), ids=DRAWN)
def test_what_drawn_values_decide(read):
    assert not is_certain(read)


def test_writes_into_a_tensor_made_in_the_likeness_of_a_drawn_one():
    def assembled(h):
        parts = torch.empty_like(h)
        parts[:, 1:] = h[:, 1:] * 2
        parts[:, :1] = h[:, :1]
        return parts + h.new_zeros(h.shape).add_(h)

    class Assembles(Reads):
        def forward(self, x):
            return self.read(F.dropout(self.layer(x), 0.5))

    model = Assembles(assembled).eval()
    mc = caveat.MCDropout(model, seed=0)
    draws = mc.draws(X, n_draws=20)
    with torch.no_grad():
        for t in (0, 1, 7, 19):
            assert torch.allclose(mc.function(t)(X), draws[t], atol=1e-5)
    assert draws.std(0).max() > 0
