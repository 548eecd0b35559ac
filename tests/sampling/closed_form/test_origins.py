"""Copies of a drawn number: Origins finds them, and no closed form adds them up."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from caveat import MCDropout
from caveat.errors import UnsupportedModelError
from caveat.predictive.gaussian import EXACT
from caveat.sampling.closed_form.origins import Origins
from tests.sampling.closed_form.nets import numbers, seeded


@pytest.mark.parametrize(
    ("view", "last_axis", "rows"),
    [
        (lambda m: m, True, True),
        (lambda m: m.expand(5, 3, 4), True, True),
        (lambda m: m.expand(5, 3, 4).flatten(1), True, True),
        (lambda m: m.expand(5, 3, 4).transpose(0, 1), True, False),
        (lambda m: m.expand(5, 3, 4).permute(1, 2, 0), False, False),
        (lambda m: m[:, :, :, None].expand(1, 3, 4, 2), False, False),
        (lambda m: m[:, :, :, None].expand(1, 3, 4, 2).flatten(2), False, False),
        (lambda m: m[:, :, None].expand(1, 3, 2, 4), True, False),
        (lambda m: m[:, :, None].expand(1, 3, 2, 4).flatten(1, 2), True, False),
        (lambda m: m[:, :, None].expand(1, 3, 2, 4).flatten(1), False, False),
        (lambda m: m.repeat(2, 1, 1), True, True),
        (lambda m: m.repeat(1, 1, 2), False, False),
        (lambda m: m.reshape(4, 3).t().contiguous(), True, True),
    ],
)
def test_where_the_same_number_turns_up_twice(view, last_axis, rows):
    found = Origins.of((1, 3, 4)).seen(view)
    assert found.apart_on_last_axis() == last_axis
    assert found.apart_in_rows() == rows


def test_a_single_number_is_apart_from_nothing():
    assert Origins.of(()).apart_in_rows()


class Copies(nn.Module):
    """Dropout, copies of what it gives, and a linear layer over them."""

    def __init__(self, copy, width: int):
        super().__init__()
        self.first, self.last = nn.Linear(3, 4), nn.Linear(width, 2)
        self.drop, self.copy = nn.Dropout(0.4), copy

    def forward(self, x):
        return self.last(self.copy(self.drop(self.first(x))))


SUMMED = {
    "expand_flatten": (lambda h: h[:, None].expand(-1, 3, -1).flatten(1), 12),
    "expand_reshape": (lambda h: h[:, :, None].expand(-1, -1, 2).reshape(-1, 8), 8),
    "repeat": (lambda h: h.repeat(1, 3), 12),
    "repeat_interleave": (lambda h: h.repeat_interleave(2, 1), 8),
    "cat": (lambda h: torch.cat([h, h], 1), 8),
    "index": (lambda h: h[:, [0, 0, 1, 1]], 4),
    "index_select": (lambda h: h.index_select(1, torch.tensor([2, 2, 3])), 3),
    "broadcast": (lambda h: h[:, :1] * torch.ones(3), 3),
    "drawn_again": (
        lambda h: F.dropout(h[:, None].expand(-1, 3, -1).flatten(1), 0.2),
        12,
    ),
}


@pytest.mark.parametrize("name", SUMMED)
@pytest.mark.parametrize("correlated", [False, True])
def test_no_variance_is_claimed_for_a_sum_over_copies(name, correlated):
    model, x = seeded(lambda: Copies(*SUMMED[name])), numbers(4, 3)
    mc = MCDropout(model, seed=0, analytic=True)
    found = mc.regress(x, precision=1.0, n_draws=40)
    assert found.method != EXACT
    drawn = found.draws.double()
    variance = drawn.var(0, correction=0).mean()
    assert found.epistemic_variance.double().mean().item() == pytest.approx(
        variance.item(), rel=1.0 if name == "drawn_again" else 1e-4
    )
    with pytest.raises(UnsupportedModelError):
        mc.moments(x, correlated=correlated)


def test_a_mask_that_drops_whole_rows():
    class DropsRows(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = nn.Linear(3, 2)

        def forward(self, x):
            mask = F.dropout(torch.ones_like(x[:, :1]), 0.5).expand(-1, 3)
            return self.last(x * mask)

    model, x = seeded(DropsRows), numbers(4, 3)
    mc = MCDropout(model, seed=0, shared=False)
    assert mc.regress(x, precision=1.0, n_draws=5).method != EXACT
    with pytest.raises(UnsupportedModelError, match="copies"):
        mc.moments(x)


def test_places_that_share_noise_have_exact_variances_but_no_covariance():
    model = seeded(lambda: Copies(lambda h: h[:, None].expand(-1, 3, -1), 4))
    mc, x = MCDropout(model, seed=0), numbers(4, 3)
    found = mc.regress(x, precision=1.0, n_draws=40)
    single = seeded(lambda: Copies(lambda h: h, 4))
    single.load_state_dict(model.state_dict())
    expected = MCDropout(single, seed=0).regress(x, precision=1.0, n_draws=40)
    assert found.method == expected.method == EXACT
    variance = expected.variance[:, None].expand(-1, 3, -1)
    assert torch.allclose(found.variance, variance, rtol=1e-5)
    drawn = found.draws.double().flatten(2)
    joint = torch.einsum("tbi,tbj->bij", *[drawn - drawn.mean(0)] * 2) / len(drawn)
    noise = torch.eye(6, dtype=torch.float64)
    assert torch.allclose(found.covariance.double(), joint + noise, atol=1e-4)
