"""Tensors whose number of entries values decide, among others that only look alike."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import caveat
from caveat.errors import CaveatWarning
from caveat.sampling.inputs import Batch
from caveat.sampling.probing import look
from tests.sampling.comparing import assert_close
from tests.zoo.models import BY_NAME

LENGTHS = torch.tensor([2, 2])


def real(x: Tensor) -> Tensor:
    return torch.arange(x.shape[1]) < LENGTHS[:, None]


def scattered(x: Tensor) -> Tensor:
    y = torch.zeros(*x.shape)
    y[real(x)] = x[real(x)] * 2
    return y


def packed(x: Tensor) -> object:
    return pack_padded_sequence(x, LENGTHS, batch_first=True)


def looked_up(x: Tensor) -> Tensor:
    values, places = x[..., 0].gt(0).long().unique(return_inverse=True)
    return values.float()[places]


def to_the_longest(x: Tensor) -> Tensor:
    return x[:, : int(LENGTHS.max())].reshape(-1, x.shape[2])


PICKED = {
    "without padding": lambda x: x[real(x)],
    "and transposed": lambda x: x[real(x)].sin().t().contiguous(),
    "selected": lambda x: x.masked_select(real(x)[..., None]),
    "found": lambda x: x.flatten(0, 1)[real(x).flatten().nonzero()[:, 0]],
    "packed": lambda x: packed(x).data,
    "repeated": lambda x: x[torch.repeat_interleave(torch.arange(2), LENGTHS)],
    "joined": lambda x: torch.cat(
        [a[:n] for a, n in zip(x, LENGTHS.tolist(), strict=True)]
    ),
    "made in its likeness": lambda x: x[real(x)].new_ones(4, 1),
}
PLAIN = {
    "rows": lambda x: x,
    "folded": lambda x: x.flatten(0, 1),
    "put back": scattered,
    "padded again": lambda x: pad_packed_sequence(packed(x), batch_first=True)[0],
    "looked up": looked_up,
    "one number": lambda x: x[real(x)].mean(),
    "cut to the longest": to_the_longest,
    "a number alone": lambda x: torch.rand([]) * len(LENGTHS.tolist()),
    "joined to nothing": lambda x: torch.cat([torch.zeros(0), x.sin()], -2),
    "joined features": lambda x: torch.cat([x[..., :2], x[..., 2:]], -1),
}


class Dropped(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return nn.functional.dropout(self.function(x), 0.5)


@pytest.mark.parametrize(
    "function, expected",
    [(f, True) for f in PICKED.values()] + [(f, False) for f in PLAIN.values()],
    ids=[*PICKED, *PLAIN],
)
def test_what_values_decide_is_known(function, expected):
    x = torch.linspace(-1, 1, 2 * 5 * 3).view(2, 5, 3)
    seen = look(Dropped(function), Batch.of((x,), {}, axis=0))
    assert bool(seen.ragged) == expected


@pytest.mark.filterwarnings("ignore:.* draws noise at")
@pytest.mark.parametrize("name", ["drops_in_unpadded", "drops_in_joined"])
def test_what_rows_were_seen_first_does_not_matter(name):
    """The plan of rows of equal length serves others, and the other way round."""
    specimen = BY_NAME[name]
    (x, even), _ = specimen.rows()
    uneven = even.roll(1)
    warm = caveat.MCDropout(specimen.build(), seed=0)
    warm.draws(x, even, n_draws=2)
    fresh = caveat.MCDropout(specimen.build(), seed=0).draws(x, uneven, n_draws=3)
    assert_close([warm.draws(x, uneven, n_draws=3)], [fresh], 1e-6)


class CutToTheLongest(nn.Module):
    """Padding that no row needs is left out, then steps are rows of a linear layer."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(3, 6), nn.Linear(6, 1)

    def forward(self, x, length):
        x = x[:, : int(length.max())]
        h = nn.functional.dropout(self.first(x).view(-1, 6), 0.4, self.training)
        real = torch.arange(x.shape[1]) < length[:, None]
        return (self.last(h).view(real.shape) * real).sum(1)


def test_rows_that_do_not_lie_where_those_of_two_rows_lay_are_told_of():
    mc = caveat.MCDropout(CutToTheLongest(), seed=0)
    x = torch.linspace(-1, 1, 4 * 5 * 3).view(4, 5, 3)
    mc.draws(x, torch.tensor([2, 2, 1, 2]), n_draws=2)  # as long as its first two rows
    with pytest.warns(CaveatWarning, match="draws noise at") as told:
        mc.draws(x, torch.tensor([2, 2, 1, 4]), n_draws=2)
    assert len(told) == 1


class DropsNothingFirst(nn.Module):
    """A list that is empty this time, then the one that is not."""

    def __init__(self):
        super().__init__()
        self.last = nn.Linear(7, 2)

    def forward(self, x):
        nothing = nn.functional.dropout(x[:, :0], 0.5, self.training)
        nothing = torch.dropout(nothing, 0.5, self.training)
        x = nn.functional.dropout(x, 0.5, self.training)
        return self.last(torch.cat([nothing, x], 1))


def test_dropout_of_nothing_is_counted_with_gradients_too():
    mc, x = caveat.MCDropout(DropsNothingFirst(), seed=0), torch.ones(3, 7)
    drawn = mc.draws(x, n_draws=2)[1]
    assert_close([mc.function(1)(x).detach()], [drawn], 1e-6)
