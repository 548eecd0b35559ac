"""Several last masks for each draw, against all masks there are."""

import itertools

import pytest
import torch
from torch import nn

import caveat
from caveat.errors import CaveatWarning
from caveat.sampling.last_masks import LAST_MASKS, LastLinear

RATE = 0.5


def small_net(**changes):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        net = nn.Sequential(
            nn.Linear(2, 3),
            nn.ReLU(),
            nn.Dropout(RATE),
            nn.Linear(3, 4),
            nn.ReLU(),
            nn.Dropout(RATE),
            nn.Linear(4, 3),
        ).eval()
        for parameter in net.parameters():
            parameter.data.mul_(2.0)
    return net


def wide_net():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(
            *(nn.Linear(20, 400), nn.ReLU(), nn.Dropout(0.2)),
            *(nn.Linear(400, 400), nn.ReLU(), nn.Dropout(0.1)),
            *(nn.Linear(400, 50), nn.ReLU(), nn.Dropout(0.5)),
            nn.Linear(50, 5),
        ).eval()


def inputs(n_rows, n_columns, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n_rows, n_columns, generator=generator)


def exact(net, x):
    """Probabilities and mean entropy over all masks, which are equally probable."""
    first, second = net[0], net[3]
    probs, entropies = [], []
    with torch.no_grad():
        for one in itertools.product((0.0, 2.0), repeat=3):
            h = second(first(x).relu() * torch.tensor(one)).relu()
            for two in itertools.product((0.0, 2.0), repeat=4):
                p = net[6](h * torch.tensor(two)).softmax(-1).double()
                probs.append(p)
                entropies.append(torch.special.entr(p).sum(-1))
    return torch.stack(probs).mean(0), torch.stack(entropies).mean(0)


def test_means_are_those_over_all_masks():
    net, x = small_net(), inputs(5, 2)
    probs, entropy = exact(net, x)
    found = caveat.MCDropout(net, seed=0, analytic=True).classify(x, n_draws=2048)
    assert found.method == LAST_MASKS
    # 5 sigma of 25 numbers: a false alarm in 70,000 seeds.
    assert bool(((found.probs - probs).abs() < 5 * found.mean_error).all())
    gap = (found.expected_entropy - entropy).abs()
    assert bool((gap < 5 * found.expected_entropy_error).all())


def test_errors_are_honest_and_smaller():
    net, x = small_net(), inputs(4, 2)
    probs, _ = exact(net, x)
    scores, gaps = [], {True: 0.0, False: 0.0}
    for seed in range(60):
        for analytic in gaps:
            mc = caveat.MCDropout(net, seed=seed, analytic=analytic)
            found = mc.classify(x, n_draws=64)
            gap = found.probs - probs
            gaps[analytic] += float(gap.square().sum())
            if analytic:
                scores.append(gap / found.mean_error)
    spread = float(torch.stack(scores).square().mean())
    assert 0.4 < spread < 1.6
    assert gaps[True] < 0.6 * gaps[False]


def test_draws_stay_what_they_are():
    net, x = small_net(), inputs(4, 2)
    plain = caveat.MCDropout(net, seed=1, analytic=False).classify(x, n_draws=40)
    found = caveat.MCDropout(net, seed=1, analytic=True).classify(x, n_draws=40)
    assert (plain.method, found.method) == ("sampled", LAST_MASKS)
    torch.testing.assert_close(found.draws, plain.draws)
    for name in ("variation_ratio", "argmax_variation_ratio", "logits_mean"):
        torch.testing.assert_close(getattr(found, name), getattr(plain, name))
    total = found.expected_entropy + found.mutual_information
    torch.testing.assert_close(total, found.entropy)


@pytest.mark.parametrize("how", ["batches", "stream", "not kept", "again", "order"])
def test_it_does_not_matter_how_rows_are_given(how):
    net, x = wide_net(), inputs(600, 20)
    mc = caveat.MCDropout(net, seed=2)
    whole = mc.classify(x, n_draws=48)
    assert whole.method == LAST_MASKS
    rows = slice(None)
    if how == "batches":
        found = mc.classify(x, n_draws=48, batch_size=300)
    elif how == "stream":
        found = mc.classify((x[i : i + 300] for i in (0, 300)), n_draws=48)
    elif how == "not kept":
        found = mc.classify(x, n_draws=48, keep_draws=False)
    elif how == "again":
        found = [mc.classify(x, n_draws=48) for _ in range(3)][-1]
    else:
        found, rows = mc.classify(x.flip(0), n_draws=48), list(range(599, -1, -1))
    assert found.method == LAST_MASKS
    for name in ("probs", "entropy", "mutual_information", "log_probs"):
        expected = getattr(whole, name)[rows]
        torch.testing.assert_close(getattr(found, name), expected, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(
        found.mean_error, whole.mean_error[rows], atol=1e-5, rtol=0.02
    )


def test_longer_sequences_start_with_shorter_ones():
    """A tolerance goes on where the first round was: as if all were asked for."""
    net, x = wide_net(), inputs(600, 20)
    mc = caveat.MCDropout(net, seed=2)
    found = mc.classify(x, tolerance=0.002, max_draws=64)
    assert (found.method, found.n_draws) == (LAST_MASKS, 64)
    again = mc.classify(x, n_draws=64)
    torch.testing.assert_close(found.draws, again.draws)
    torch.testing.assert_close(found.probs, again.probs, atol=0.02, rtol=0.0)
    stream = mc.classify(
        (x[i : i + 300] for i in (0, 300)), tolerance=0.002, max_draws=64
    )
    assert stream.method == LAST_MASKS
    torch.testing.assert_close(stream.probs, found.probs, atol=1e-5, rtol=1e-4)


def test_fewer_draws_reach_a_tolerance():
    net, x = wide_net(), inputs(600, 20)
    n_draws = [
        caveat.MCDropout(net, seed=0, analytic=analytic)
        .classify(x, tolerance=0.05)
        .n_draws
        for analytic in (True, False)
    ]
    assert n_draws[0] <= n_draws[1]


class Scaled(nn.Module):
    """Temperature after the last layer."""

    def __init__(self):
        super().__init__()
        self.net = small_net()

    def forward(self, x):
        return self.net(x) / 2.0


class Head(nn.Module):
    """No noise but in the head."""

    def __init__(self):
        super().__init__()
        self.net = small_net()
        self.net[2] = nn.Identity()

    def forward(self, x):
        return self.net(x)


PLAIN = {
    "never": (small_net, {"analytic": False}, {}),
    "masks per row": (small_net, {"analytic": True, "shared": False}, {}),
    "something after": (Scaled, {"analytic": True}, {}),
    "no other noise": (Head, {"analytic": True}, {}),
    "picked": (small_net, {"analytic": True}, {"output": lambda z: z[:, :2]}),
    "small": (small_net, {}, {}),
}


@pytest.mark.parametrize("name", PLAIN)
def test_elsewhere_draws_are_averaged_as_they_are(name):
    make, how, asked = PLAIN[name]
    mc = caveat.MCDropout(make().eval(), seed=0, **how)
    x = inputs(6, 2)
    found = mc.classify(x, n_draws=20, **asked)
    assert found.method == "sampled"
    torch.testing.assert_close(found.probs, found.draws.softmax(-1).mean(0))


def test_an_end_that_is_not_what_it_seems_is_not_used(monkeypatch):
    monkeypatch.setattr(
        LastLinear, "factors", lambda self, drawn: drawn.reshape(len(drawn), -1) * 1.5
    )
    mc = caveat.MCDropout(small_net(), seed=0, analytic=True)
    assert mc.classify(inputs(4, 2), n_draws=20).method == "sampled"


def test_a_contradiction_is_said_and_draws_are_used(monkeypatch):
    monkeypatch.setattr("caveat.sampling.last_masks._repeats_a_draw", lambda *_: True)
    monkeypatch.setattr(
        LastLinear, "factors", lambda self, drawn: drawn.reshape(len(drawn), -1) * 50
    )
    mc = caveat.MCDropout(small_net(), seed=0, analytic=True)
    with pytest.warns(CaveatWarning, match="contradict"):
        found = mc.classify(inputs(40, 2), n_draws=1000)
    assert found.method == "sampled"


def test_masked_and_extreme_classes_have_finite_logs():
    net = small_net()
    net[6].bias.data[0] = -200.0
    mc = caveat.MCDropout(net, seed=0, analytic=True)
    found = mc.classify(inputs(4, 2), n_draws=64)
    assert found.method == LAST_MASKS
    assert bool((found.log_probs[:, 0] < -100).all())
    assert bool(found.log_probs.isfinite().all())
