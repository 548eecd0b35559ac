"""What a few looks at a model show: rows that mix, and randomness that hides."""

import itertools
import random
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import caveat
from caveat import MCDropout
from caveat.errors import CaveatWarning, UnsupportedModelError
from caveat.sampling.inputs import Batch
from caveat.sampling.probing import find_rows
from caveat.sampling.running import Switches
from tests.sampling.comparing import assert_same_distribution
from tests.zoo import mixing
from tests.zoo.feedforward import mlp
from tests.zoo.mixing import NoStatistics, Pools, PoolsMean
from tests.zoo.plain_loop import own_randomness, train_mode
from tests.zoo.specimen import normal

X = normal(4, 5)
MIXED = [s for s in mixing.SPECIMENS if not s.row_wise]
ASTRAY = [s for s in mixing.SPECIMENS if s.row_wise]


def build(make) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return make().eval()


def plain(model: nn.Module, x: Tensor, n_draws: int) -> Tensor:
    train_mode(model)
    with own_randomness(1), torch.no_grad():
        return torch.stack([model(x) for _ in range(n_draws)])


# Rows ---------------------------------------------------------------------------


@pytest.mark.parametrize("specimen", MIXED, ids=repr)
def test_mixed_rows_are_told(specimen):
    args, kwargs = specimen.rows()
    with pytest.warns(CaveatWarning, match="not independent of each other"):
        MCDropout(specimen.build()).draws(*args, n_draws=2, **kwargs)


@pytest.mark.parametrize("specimen", ASTRAY, ids=repr)
def test_rows_without_a_place_are_told(specimen):
    args, kwargs = specimen.rows()
    with pytest.warns(CaveatWarning, match="which numbers belong to which row"):
        MCDropout(specimen.build()).draws(*args, n_draws=2, **kwargs)


@pytest.mark.parametrize("n_rows", [5, 50])
@pytest.mark.filterwarnings("ignore:The rows of")
def test_bags_of_many_sizes(n_rows):
    model, x = build(PoolsMean), normal(n_rows, 5)
    draws = MCDropout(model, seed=0).draws(x, n_draws=300)
    assert_same_distribution([draws], [plain(model, x, 300)])


@pytest.mark.parametrize("make", [PoolsMean, NoStatistics], ids=["mean", "batch norm"])
def test_equal_rows_do_not_hide_that_they_mix(make):
    """Among equal rows a mean is that of each, and a batch norm has no variance."""
    model, x = build(make), normal(1, 5).expand(6, -1)
    with pytest.warns(CaveatWarning, match="not independent"):
        draws = MCDropout(model, seed=0).draws(x, n_draws=400)
    assert_same_distribution([draws], [plain(model, x, 400)])


def test_equal_rows_of_words():
    class Words(Pools):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(9, 5)

        def forward(self, x):
            return super().forward(self.table(x).cumsum(1)[:, 0]).mean(0, keepdim=True)

        def pool(self, h):
            return h

    words = torch.tensor([[1, 4, 2]]).expand(6, -1)
    with pytest.warns(CaveatWarning, match="not independent"):
        MCDropout(build(Words)).draws(words, n_draws=2)


def test_one_row_has_nothing_to_mix_with():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MCDropout(build(PoolsMean)).draws(X[:1], n_draws=2)


class WithConstant(Pools):
    """A part of the answer that no row has a say in."""

    def forward(self, x):
        return self.last(self.hidden(x)), self.last.weight * 2


def test_what_does_not_depend_on_rows_does_not_mix_them():
    rows = find_rows(build(WithConstant), Batch.of((X,), {}, axis=0), Switches())
    assert rows.apart
    assert len(rows.layouts) == 1
    assert not rows.astray


# Randomness that cannot be seen -------------------------------------------------


class Hides(nn.Module):
    """Ordinary dropout, which could be mistaken for all there is; and more."""

    def __init__(self):
        super().__init__()
        self.net = mlp()

    def hidden(self, y: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, x):
        return self.hidden(self.net(x))


class System(Hides):
    """No seed decides what the system's generator gives."""

    def hidden(self, y):
        return y + random.SystemRandom().random()


class Counts(Hides):
    """The same object in every copy."""

    def __init__(self):
        super().__init__()
        self.calls = itertools.count()

    def hidden(self, y):
        return y + next(self.calls)


@torch.library.custom_op("zoo::jitter", mutates_args=())
def jitter(x: Tensor) -> Tensor:
    return x + torch.randn_like(x)


class CustomOperator(Hides):
    def hidden(self, y):
        return jitter(y)


class CustomInTraining(Hides):
    def hidden(self, y):
        return jitter(y) if self.training else y


class InThread(Hides):
    """A pool of threads runs a part: no mode of torch reaches there."""

    def __init__(self):
        super().__init__()
        self.part = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))

    def hidden(self, y):
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(self.part, y).result()


class InBareThread(InThread):
    """Whose errors nobody hears of."""

    def hidden(self, y):
        found = [y]

        def work():
            with torch.no_grad():
                found.append(self.part(y))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return found[-1]


class FunctionInThread(Hides):
    def hidden(self, y):
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(F.dropout, y, 0.5, self.training).result()


HIDING = [System, Counts, CustomOperator, CustomInTraining, InThread, FunctionInThread]


@pytest.mark.parametrize("make", HIDING)
def test_hidden_randomness_is_refused(make):
    model = build(make)
    state = torch.get_rng_state()
    with pytest.raises(UnsupportedModelError):
        MCDropout(model, seed=0).draws(X, n_draws=3)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_whose_errors_are_lost():
    with pytest.raises(UnsupportedModelError, match="another thread"):
        MCDropout(build(InBareThread)).draws(X, n_draws=2)


def test_another_thread_that_draws_is_not_the_model():
    """Torch's generator moves all the time, and the model repeats itself."""
    model, stop = build(mlp), threading.Event()

    def draw():
        while not stop.is_set():
            torch.rand(1)

    thread = threading.Thread(target=draw)
    thread.start()
    try:
        caveat.audit(model, X)
    finally:
        stop.set()
        thread.join()
