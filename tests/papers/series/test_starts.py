"""First weights: kinks over the data, tents that dropout does not wake."""

import torch

from caveat.papers.series.starts import spread_kinks, tents

X = torch.linspace(-1.7, 1.7, 200)[:, None]


def rng():
    return torch.Generator().manual_seed(0)


def test_first_kinks_lie_over_the_data():
    for start in (spread_kinks, tents):
        weight, bias = start(X, 400, 3, rng())[0]
        kinks = -bias / weight[0]
        assert kinks.min() >= -1.7001 and kinks.max() <= 1.7001
        assert abs(kinks.mean()) < 0.25  # 5 standard errors


def test_tents_are_narrow_and_stay_asleep_under_dropout():
    (w1, b1), (w2, b2), *_ = tents(X, 400, 3, rng())
    hidden = torch.relu(X @ w1 + b1)
    tent = (hidden @ w2 + b2)[:, :200]
    asleep = tent < -tent.max()  # well beyond the foot
    assert (torch.relu(tent) > 0).double().mean() < 0.25
    kept = torch.empty_like(hidden).bernoulli_(0.9, generator=rng()) / 0.9
    noisy = ((hidden * kept) @ w2 + b2)[:, :200]
    assert (noisy[asleep] > 0).double().mean() < 0.02
    torch.testing.assert_close(
        torch.relu(tent).square().mean(), torch.tensor(1.0), rtol=1e-3, atol=0
    )
