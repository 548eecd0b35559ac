"""Kinds of input, batching, picked outputs, tolerance, dtypes and devices."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

import caveat
from caveat import MCDropout
from caveat.errors import CaveatWarning
from tests.sampling.comparing import assert_close
from tests.zoo.models import BY_NAME
from tests.zoo.specimen import normal

SEED = 3
X = normal(10, 5)


def net(outputs: int = 2) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layers = [nn.Linear(5, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, outputs)]
        return nn.Sequential(*layers).eval()


def deep() -> nn.Module:
    """With noise before a non-linear layer, so that no closed form is exact."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        first = [nn.Linear(5, 16), nn.Dropout(0.5), nn.Tanh()]
        return nn.Sequential(*first, nn.Dropout(0.3), nn.Linear(16, 2)).eval()


def sampler(outputs: int = 2, analytic: bool | None = None) -> MCDropout:
    return MCDropout(net(outputs), seed=SEED, analytic=analytic)


@pytest.fixture
def expected() -> torch.Tensor:
    return sampler().draws(X, n_draws=6)


class Rows(Dataset):
    def __init__(self, x: torch.Tensor):
        self.x = x

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index]


SAME_INPUT = {
    "numpy": lambda: X.numpy(),
    "list": lambda: [X[:3], X[3:7], X[7:]],
    "list of arrays": lambda: [X[:4].numpy(), X[4:].numpy()],
    "generator": lambda: (X[i : i + 4] for i in range(0, 10, 4)),
    "loader of tensors": lambda: DataLoader(Rows(X), batch_size=4),
    "loader of lists": lambda: DataLoader(TensorDataset(X), batch_size=3),
    "one batch": lambda: [X],
    "uneven": lambda: [X[:1], X[1:]],
}


@pytest.mark.parametrize("make", SAME_INPUT.values(), ids=SAME_INPUT)
def test_every_kind_of_input_gives_the_same_draws(make, expected):
    assert_close([sampler().draws(make(), n_draws=6)], [expected], 1e-6)


@pytest.mark.parametrize("make", SAME_INPUT.values(), ids=SAME_INPUT)
def test_every_kind_of_input_gives_the_same_predictive(make):
    whole = sampler().regress(X, n_draws=6, precision=2.0)
    parts = sampler().regress(make(), n_draws=6, precision=2.0)
    assert_close([parts.mean, parts.std], [whole.mean, whole.std], 1e-6)
    assert_close([parts.draws], [whole.draws], 1e-6)


@pytest.mark.parametrize("batch_size", [1, 3, 10, 100])
def test_batch_size_splits_predictives(batch_size):
    whole = sampler(3).classify(X, n_draws=8)
    parts = sampler(3).classify(X, n_draws=8, batch_size=batch_size)
    for name in ("probs", "entropy", "mutual_information", "variation_ratio"):
        assert_close([getattr(parts, name)], [getattr(whole, name)], 1e-5, name)
    assert parts.n_draws == 8


def test_batch_size_splits_batches_of_an_iterable(expected):
    found = sampler().draws([X[:7], X[7:]], n_draws=6, batch_size=3)
    assert_close([found], [expected], 1e-6)


def test_independent_rows_do_not_repeat_over_batches():
    """shared=False: two batches with equal rows still get different masks."""
    mc = MCDropout(net(), seed=SEED, shared=False)
    for inputs, options in ((X[:1].repeat(4, 1), {"batch_size": 1}), ([X[:1]] * 4, {})):
        draws = mc.draws(inputs, n_draws=20, **options)
        assert not torch.equal(draws[:, 0], draws[:, 1])
        assert not torch.equal(draws[:, 0], draws[:, 3])


@pytest.mark.parametrize("name", ["mlp", "lstm", "encoder_layer", "sdpa", "drop_path"])
def test_independent_masks_do_not_depend_on_the_batch_size(name):
    specimen = BY_NAME[name]
    mc = MCDropout(specimen.build(), seed=SEED, shared=False)
    (x,), _ = specimen.rows(list(range(6)))
    whole, parts = (mc.draws(x, n_draws=3, batch_size=size) for size in (None, 4))
    assert_close([parts], [whole], specimen.rounding)


@pytest.mark.parametrize("name", ["decoder", "lstm_packed", "keywords_only"])
def test_several_tensors_and_keywords_in_batches(name):
    specimen = BY_NAME[name]
    mc = MCDropout(specimen.build(), seed=SEED)
    args, kwargs = specimen.rows(list(range(6)))
    whole = mc.draws(*args, n_draws=3, **kwargs)
    parts = mc.draws(*args, n_draws=3, batch_size=4, **kwargs)
    assert_close(specimen.tensors(parts), specimen.tensors(whole), specimen.rounding)


def test_loader_of_tuples_feeds_positional_arguments():
    specimen = BY_NAME["decoder"]
    args, _ = specimen.rows(list(range(6)))
    mc = MCDropout(specimen.build(), seed=SEED)
    loader = DataLoader(TensorDataset(*args), batch_size=4)
    found, whole = mc.draws(loader, n_draws=3), mc.draws(*args, n_draws=3)
    assert_close([found], [whole], 1e-5)


def test_loader_of_dicts_feeds_keywords():
    specimen = BY_NAME["bert_sdpa"]
    mc = MCDropout(specimen.build(), seed=SEED)
    _, kwargs = specimen.rows(list(range(6)))
    batches = [{k: v[i : i + 4] for k, v in kwargs.items()} for i in (0, 4)]
    found, whole = mc.draws(batches, n_draws=2), mc.draws(**kwargs, n_draws=2)
    assert_close([found.logits], [whole.logits], 1e-5)


def test_logits_are_found():
    bert = BY_NAME["bert_sdpa"]
    _, kwargs = bert.rows()
    mc = MCDropout(bert.build(), seed=SEED)
    logits = mc.draws(**kwargs, n_draws=4).logits
    assert_close([mc.classify(**kwargs, n_draws=4).draws], [logits], 1e-6)
    made_dict = BY_NAME["returns_dict"]
    mc = MCDropout(made_dict.build(), seed=SEED)
    (x,), _ = made_dict.rows()
    found = mc.regress(x, n_draws=4, precision=1.0)
    assert_close([found.draws], [mc.draws(x, n_draws=4)["logits"]], 1e-6)


@pytest.mark.parametrize("keep_draws", [True, False])
def test_output_picks_what_is_read(keep_draws):
    specimen = BY_NAME["returns_nested"]
    (x,), _ = specimen.rows()
    mc = MCDropout(specimen.build(), seed=SEED)
    draws = mc.draws(x, n_draws=5)["pair"].scale
    found = mc.regress(
        x,
        n_draws=5,
        precision=1.0,
        keep_draws=keep_draws,
        output=lambda output: output["pair"].scale,
    )
    assert_close([found.mean], [draws.mean(0)], 1e-5)


def test_moments_do_not_need_the_draws():
    mc = sampler(3, analytic=False)
    kept = mc.regress(X, n_draws=50, precision=2.0)
    not_kept = mc.regress(X, n_draws=50, precision=2.0, keep_draws=False)
    for name in ("mean", "variance", "epistemic_variance", "covariance", "mean_error"):
        assert_close([getattr(not_kept, name)], [getattr(kept, name)], 1e-5, name)
    kept, not_kept = (mc.classify(X, n_draws=50, keep_draws=k) for k in (True, False))
    names = ["probs", "entropy", "expected_entropy", "mutual_information"]
    names += ["variation_ratio", "argmax_variation_ratio", "logits_mean", "logits_std"]
    for name in names:
        assert_close([getattr(not_kept, name)], [getattr(kept, name)], 1e-5, name)


def test_predictives_are_those_of_the_draws():
    mc = sampler(3)
    draws = mc.draws(X, n_draws=7)
    assert_close([mc.regress(X, n_draws=7, precision=1.0).draws], [draws], 1e-6)
    assert_close([mc.classify(X, n_draws=7).draws], [draws], 1e-6)


@pytest.mark.parametrize("keep_draws", [True, False])
def test_tolerance_is_reached(keep_draws):
    found = sampler(analytic=False).regress(
        X, precision=1000.0, tolerance=0.05, max_draws=20_000, keep_draws=keep_draws
    )
    assert (found.mean_error <= 0.05 * found.std).all()
    assert 2 < found.n_draws < 20_000


def test_smaller_tolerance_takes_more_draws():
    ask = partial(sampler(analytic=False).regress, X, precision=1000.0)
    counts = [ask(tolerance=t, max_draws=20_000).n_draws for t in (0.2, 0.02)]
    assert counts[0] < counts[1]


def test_tolerance_respects_its_cap():
    plain = sampler(analytic=False)
    with pytest.warns(CaveatWarning, match="after max_draws=64") as caught:
        found = plain.regress(X, precision=1e6, tolerance=1e-4, max_draws=64)
    assert found.n_draws == 64
    assert caught[0].filename == __file__


def test_tolerance_holds_for_classes():
    found = sampler(3).classify(X, tolerance=0.1, max_draws=20_000)
    assert found.n_draws < 20_000
    assert found.mean_error.max() < 0.1


@pytest.mark.parametrize("keep_draws", [True, False])
@pytest.mark.parametrize("analytic", [None, False])
@pytest.mark.parametrize("make", [None, list], ids=["batch_size", "list"])
def test_tolerance_does_not_depend_on_the_batch_size(make, analytic, keep_draws):
    """All rows get as many draws, whichever rows need them."""
    mc = MCDropout(deep(), seed=SEED, analytic=analytic)
    ask = partial(
        mc.regress, precision=1e4, tolerance=0.01, keep_draws=keep_draws, max_draws=5000
    )
    rows = torch.cat([X[:5] * 1e-3, X[5:]])
    whole = ask(rows)
    for size in (1, 4):
        parts = ask(rows, batch_size=size) if make is None else ask(rows.split(size))
        assert parts.n_draws == whole.n_draws > 32
        for name in ("mean", "std", "mean_error", "covariance"):
            assert_close([getattr(parts, name)], [getattr(whole, name)], 1e-4, name)


@pytest.mark.parametrize("analytic", [True, False])
def test_errors_do_not_depend_on_how_rows_are_cut(analytic):
    mc = MCDropout(deep(), seed=SEED, analytic=analytic)
    asks = {
        "regress": partial(mc.regress, precision=1.0, n_draws=100),
        "classify": partial(mc.classify, n_draws=100),
    }
    for kind, ask in asks.items():
        whole = ask(X)
        for keep in (True, False):
            parts = [
                ask(X, keep_draws=keep),
                ask(X, keep_draws=keep, batch_size=3),
                ask(iter(X.split(4)), keep_draws=keep),
            ]
            for part in parts:
                found, expected = part.mean_error, whole.mean_error
                assert_close([found], [expected], 1e-4, kind)


def test_a_tolerance_for_classes_does_not_depend_on_the_batch_size():
    mc = MCDropout(deep(), seed=SEED)
    whole = mc.classify(X, tolerance=0.004)
    for keep in (True, False):
        parts = mc.classify(X, tolerance=0.004, batch_size=3, keep_draws=keep)
        assert parts.n_draws == whole.n_draws > 32
        assert_close([parts.mean_error], [whole.mean_error], 1e-4)


@pytest.mark.parametrize("make", [iter, lambda x: DataLoader(x, batch_size=None)])
def test_streams_stop_batch_by_batch(make):
    rows = torch.cat([X[:5] * 1e-3, X[5:]]).split(5)
    mc = sampler(3)
    found = mc.classify(make(rows), tolerance=0.03, keep_draws=False)
    alone = [mc.classify(x, tolerance=0.03, keep_draws=False) for x in rows]
    assert found.n_draws == min(part.n_draws for part in alone)
    for name in ("probs", "mean_error", "entropy", "variation_ratio"):
        expected = torch.cat([getattr(part, name) for part in alone])
        assert_close([getattr(found, name)], [expected], 1e-5, name)
    kept = mc.classify(make(rows), tolerance=0.03)
    whole = mc.classify(torch.cat(rows), tolerance=0.03)
    assert kept.draws.shape == whole.draws.shape
    assert_close([kept.draws], [whole.draws], 1e-5)


def test_precision_of_each_row():
    tau = torch.linspace(1, 2, 10)[:, None]
    whole, parts = (
        sampler(1).regress(X, n_draws=5, precision=tau, batch_size=size)
        for size in (None, 4)
    )
    assert_close([parts.std], [whole.std], 1e-5)


def test_tolerance_draws_are_the_first_draws():
    found = sampler().regress(X, precision=1000.0, tolerance=0.1, max_draws=5000)
    again = sampler().regress(X, precision=1000.0, n_draws=found.n_draws)
    assert_close([found.mean], [again.mean], 1e-5)


def test_progress_can_be_switched_off_and_is_silent(capfd):
    for progress in (False, None):
        sampler().draws(X, n_draws=5, batch_size=2, progress=progress)
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


def test_progress_can_be_forced(expected):
    found = sampler().draws(X, n_draws=6, batch_size=2, progress=True)
    assert_close([found], [expected], 1e-6)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_dtype_follows_the_model(dtype):
    mc = MCDropout(net().to(dtype), seed=SEED)
    draws = mc.draws(X.to(dtype), n_draws=3)
    assert draws.dtype == dtype
    assert draws.std(0).max() > 0
    assert mc.regress(X.to(dtype), n_draws=3, precision=1.0).mean.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_masks_do_not_depend_on_the_dtype(dtype):
    expected = sampler().draws(X, n_draws=4)
    mc = MCDropout(net().to(dtype), seed=SEED)
    found = mc.draws(X.to(dtype), n_draws=4)
    assert_close([found.float()], [expected], 2e-2)


def test_numpy_doubles_follow_the_model(expected):
    """numpy is float64 unless told otherwise; the model's dtype decides."""
    found = sampler().draws(X.double().numpy(), n_draws=6)
    assert_close([found], [expected], 1e-6)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_device_follows_the_model():
    expected = sampler().draws(X, n_draws=3)
    mc = MCDropout(net().cuda(), seed=SEED)
    draws = mc.draws(X.cuda(), n_draws=3)
    assert draws.is_cuda
    assert_close([draws.cpu()], [expected], 1e-4)


def test_generators_are_seeds():
    first, second = (
        MCDropout(net(), seed=torch.Generator().manual_seed(5)).draws(X, n_draws=2)
        for _ in range(2)
    )
    assert torch.equal(first, second)


def test_no_seed_means_fresh_draws_that_stay_with_the_sampler():
    mc = MCDropout(net())
    assert torch.equal(mc.draws(X, n_draws=3), mc.draws(X, n_draws=3))
    assert not torch.equal(mc.draws(X, n_draws=3), MCDropout(net()).draws(X, n_draws=3))


def test_draws_carry_no_gradient():
    x = X.clone().requires_grad_()
    assert not sampler().draws(x, n_draws=2).requires_grad


def test_changed_weights_are_seen():
    """A sampler holds the model, not a copy of its numbers."""
    model = net()
    mc = MCDropout(model, seed=SEED)
    before = mc.draws(X, n_draws=2)
    with torch.no_grad():
        model[3].weight.mul_(2.0)
        model[3].bias.mul_(2.0)
    assert_close([mc.draws(X, n_draws=2)], [2.0 * before], 1e-5)


def test_replaced_layers_are_seen():
    model = net()
    mc = MCDropout(model, seed=SEED)
    mc.draws(X, n_draws=2)
    model[2] = nn.Dropout(0.1)
    expected = MCDropout(model, seed=SEED).draws(X, n_draws=2)
    assert_close([mc.draws(X, n_draws=2)], [expected], 1e-6)


def test_batch_axis_can_be_another():
    class SequenceFirst(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net()

        def forward(self, x):
            return self.net(x)

    x = normal(3, 4, 5)  # (time, batch, features)
    mc = MCDropout(SequenceFirst().eval(), seed=SEED, batch_dim=1)
    draws = mc.draws(x, n_draws=3)
    assert draws.shape == (3, 3, 4, 2)
    assert_close([mc.draws(x[:, [2, 0]], n_draws=3)], [draws[:, :, [2, 0]]], 1e-6)


def test_rows_longer_than_before_begin_with_the_same_mask():
    """Masks by position: a longer sequence starts with the shorter one's draws."""
    specimen = BY_NAME["gpt2_sdpa"]
    mc = caveat.MCDropout(specimen.build(), seed=SEED)
    ids = specimen.rows()[1]["input_ids"]
    whole = mc.draws(input_ids=ids, n_draws=3).logits
    shorter = mc.draws(input_ids=ids[:, :3], n_draws=3).logits
    assert_close([shorter], [whole[:, :, :3]], 1e-5)
