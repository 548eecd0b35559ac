"""Lists, loaders and data sets: what is a batch, and what is said if it is unclear."""

import gc
import weakref

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset

from caveat import MCDropout
from caveat.errors import InputTypeError, ShapeError
from tests.sampling.comparing import assert_close
from tests.zoo.specimen import normal

X, LABELS = normal(10, 5), torch.arange(10.0)


def net(inputs: int = 5) -> nn.Sequential:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layers = [nn.Linear(inputs, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2)]
        return nn.Sequential(*layers).eval()


MC = MCDropout(net(), seed=1)


class Rows(Dataset):
    def __init__(self, wrap=lambda x: x):
        self.wrap = wrap

    def __len__(self):
        return len(X)

    def __getitem__(self, index):
        return self.wrap(X[index])


class Stream(IterableDataset):
    def __iter__(self):
        return iter(X)


class Indexed:
    """No kin of torch's, but it can be asked for its rows."""

    def __len__(self):
        return len(X)

    def __getitem__(self, index):
        return X[range(len(X))[index]].numpy()


DATA = {
    "map": Rows(),
    "of dicts": Rows(lambda x: {"input": x}),
    "of tuples": Rows(lambda x: (x,)),
    "iterable": Stream(),
    "tensors": TensorDataset(X),
    "subset": Subset(Rows(), range(10)),
    "indexed": Indexed(),
}


@pytest.mark.parametrize("batch_size", [None, 4])
@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_a_data_set_is_taken_like_a_loader(data, batch_size):
    expected = MC.draws(X, n_draws=3)
    found = MC.draws(data, n_draws=3, batch_size=batch_size)
    assert_close([found], [expected], 1e-6)


def test_reading_a_data_set_moves_no_generator():
    before = torch.get_rng_state()
    MC.draws(Rows(), n_draws=2)
    assert torch.equal(torch.get_rng_state(), before)


def test_an_empty_data_set():
    with pytest.raises(ShapeError, match="empty"):
        MC.draws(TensorDataset(X[:0]), n_draws=2)


# ------------------------------------------------------------ labels


class Optional(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = net()

    def forward(self, x, scale=None, *, shift=0.0):
        return self.net(x) * (1.0 if scale is None else scale[:, None]) + shift


class Both(Optional):
    def forward(self, x, scale):
        return super().forward(x, scale)


class Any(Optional):
    def forward(self, *args):
        return super().forward(*args)


def loader() -> DataLoader:
    return DataLoader(TensorDataset(X, LABELS), batch_size=4)


@pytest.mark.parametrize(
    "make", [loader, lambda: list(loader()), lambda: TensorDataset(X, LABELS)]
)
def test_labels_are_not_taken_for_options(make):
    mc = MCDropout(Optional(), seed=1)
    with pytest.raises(InputTypeError, match=r"passed as 'scale'(.|\n)*'x': x, 'scale"):
        mc.draws(make(), n_draws=2)


def test_ways_to_say_what_a_batch_holds():
    mc = MCDropout(Optional(), seed=1)
    inputs = mc.draws((x for x, _ in loader()), n_draws=3)
    assert_close([inputs], [mc.draws(X, n_draws=3)], 1e-6)
    named = mc.draws(({"x": x, "scale": s} for x, s in loader()), n_draws=3)
    both = mc.draws(X, LABELS, n_draws=3)
    assert_close([named], [both], 1e-6)
    for model in (Both(), Any()):
        found = MCDropout(model, seed=1).draws(loader(), n_draws=3)
        assert_close(
            [found], [MCDropout(model, seed=1).draws(X, LABELS, n_draws=3)], 1e-6
        )


def test_too_many_things():
    with pytest.raises(InputTypeError, match="pass only the inputs"):
        MC.draws(loader(), n_draws=2)


# ------------------------------------------------------------ lists


class Joined(nn.Module):
    """Takes a list of tensors with the same rows."""

    def __init__(self):
        super().__init__()
        self.net = net()

    def forward(self, parts):
        return self.net(torch.cat(parts, 1))


class Each(Joined):
    """Takes a list of batches, and a batch as a list of rows."""

    def forward(self, parts):
        return [self.net(part) for part in parts]


class SaysList(Each):
    def forward(self, parts: list[Tensor]):
        return super().forward(parts)


class SaysTensor(Each):
    def forward(self, parts: Tensor):
        return self.net(torch.cat(list(parts)).view(-1, 5))


class Images(nn.Module):
    """Pictures of different sizes, as detectors take them."""

    def __init__(self):
        super().__init__()
        self.body = nn.Conv2d(3, 4, 3)
        self.drop, self.head = nn.Dropout(0.5), nn.Linear(4, 2)

    def forward(self, images):
        found = [self.body(image[None]).mean((2, 3)) for image in images]
        return self.head(self.drop(torch.cat(found)))


@pytest.mark.parametrize("kind", [list, tuple])
def test_a_list_that_only_the_model_can_read_is_its_argument(kind):
    mc, parts = MCDropout(Joined(), seed=1), kind([X[:, :2], X[:, 2:]])
    found = mc.draws(parts, n_draws=3)
    assert_close([found[2]], [mc.function(2)(parts)], 1e-6)
    assert_close([mc.draws(parts, n_draws=3, batch_size=4)], [found], 1e-6)
    assert_close([mc.draws(parts=parts, n_draws=3)], [found], 1e-6)


def test_a_list_that_may_be_either_is_not_guessed_at():
    mc, parts = MCDropout(Each(), seed=1), [X[:3], X[3:]]
    with pytest.raises(InputTypeError, match=r"iter\(batches\)(.|\n)*parts=\[...\]"):
        mc.draws(parts, n_draws=2)
    named = mc.draws(parts=parts, n_draws=2)
    assert [tuple(t.shape) for t in named] == [(2, 3, 2), (2, 7, 2)]


def test_annotations_decide():
    parts = [X[:5], X[5:]]
    named = MCDropout(SaysList(), seed=1).draws(parts, n_draws=2)
    assert [tuple(t.shape) for t in named] == [(2, 5, 2), (2, 5, 2)]
    batches = MCDropout(SaysTensor(), seed=1).draws(parts, n_draws=2)
    assert batches.shape == (2, 10, 2)


@pytest.mark.filterwarnings("ignore:Images cannot be run on two or three rows")
def test_pictures_of_different_sizes():
    pictures = [normal(3, 8, 9), normal(3, 6, 7), normal(3, 5, 5)]
    draws = MCDropout(Images().eval(), seed=1).draws(pictures, n_draws=30)
    assert draws.shape == (30, 3, 2)
    assert bool((draws.std(0) > 0).all())


# ------------------------------------------------------------ memory


@pytest.mark.parametrize("method", ["draws", "classify"])
def test_a_stream_is_read_as_it_is_used(method):
    """At most the batch at work and the one that a loader has ready are there."""
    alive: list[weakref.ref] = []
    gc.freeze()  # what other tests have left need not be looked through

    def stream():
        for start in range(40):
            gc.collect()
            assert sum(ref() is not None for ref in alive) <= 1, start
            batch = X[start % 5 :].clone()
            alive.append(weakref.ref(batch))
            yield batch
            del batch

    try:
        getattr(MC, method)(stream(), n_draws=2)
    finally:
        gc.unfreeze()


def test_arrays_of_a_list_are_read_again_for_a_tolerance():
    parts = [x.numpy() for x in X.split(3)]
    mc = MCDropout(net(), seed=1, analytic=False)
    options = {"precision": 1e3, "tolerance": 0.05, "keep_draws": False}
    found, whole = mc.regress(parts, **options), mc.regress(X, **options)
    assert found.n_draws == whole.n_draws
    assert_close([found.mean], [whole.mean], 1e-5)
    assert isinstance(parts[0], np.ndarray)
