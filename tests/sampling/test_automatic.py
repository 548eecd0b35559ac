"""Many rows are split by themselves, where that changes nothing."""

import pytest
import torch
from torch import nn

from caveat.errors import CaveatWarning
from caveat.sampling import MCDropout, calling


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(calling, "_ROWS_AT_ONCE", 10)


class Counted(nn.Module):
    """A net that knows how many rows it was given at once."""

    def __init__(self, mixes: bool = False) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(2, 8), nn.Dropout(0.5), nn.Linear(8, 1))
        self.mixes = mixes
        self.most = 0

    def forward(self, x):
        sizes.append(len(x))
        return self.inner(x - x.mean(0) if self.mixes else x)


sizes: list[int] = []


def run(model: nn.Module, x: torch.Tensor, **options):
    sizes.clear()
    predictive = MCDropout(model, seed=0).regress(
        x, precision=1.0, n_draws=8, **options
    )
    return predictive, max(sizes)


@pytest.mark.parametrize("kept", [True, False])
def test_many_rows_are_split_and_nothing_changes(kept) -> None:
    model, x = Counted(), torch.randn(35, 2)
    split, most = run(model, x, keep_draws=kept)
    assert most <= 10
    whole, all_of_them = run(model, x, keep_draws=kept, batch_size=35)
    assert all_of_them == 35
    torch.testing.assert_close(split.mean, whole.mean)
    torch.testing.assert_close(split.variance, whole.variance)
    torch.testing.assert_close(split.mean_error, whole.mean_error)


def test_rows_that_depend_on_each_other_stay_together() -> None:
    x = torch.randn(35, 2)
    model = Counted(mixes=True)
    with pytest.warns(CaveatWarning):  # they do, as it says in any case
        found, most = run(model, x)
    assert most == 35
    centred = x - x.mean(0)
    plain = MCDropout(model.inner, seed=0)
    assert found.mean.shape == plain.draws(centred, n_draws=2)[0].shape


def test_few_rows_are_run_at_once() -> None:
    _, most = run(Counted(), torch.randn(20, 2))
    assert most == 20


def test_arrays_and_classes_too() -> None:
    model = nn.Sequential(nn.Linear(2, 8), nn.Dropout(0.5), nn.Linear(8, 3))
    x = torch.randn(35, 2)
    mc = MCDropout(model, seed=0)
    found = mc.classify(x.numpy(), n_draws=8)
    torch.testing.assert_close(
        found.probs, mc.classify(x, n_draws=8, batch_size=35).probs
    )
    torch.testing.assert_close(
        mc.draws(x, n_draws=3), mc.draws(x, n_draws=3, batch_size=35)
    )
