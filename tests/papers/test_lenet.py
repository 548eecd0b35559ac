"""The shared LeNet: its layers, Caffe's updates restated, files, and scores."""

import copy
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from caveat.errors import DataError
from caveat.papers.lenet import (
    DROPOUT,
    SOLVER,
    Images,
    Labelled,
    LabelScore,
    NetJob,
    NetStore,
    as_input,
    drawn_logits,
    grouped,
    images_of,
    load_images,
    make_lenet,
    standard_log_probs,
)
from caveat.papers.lenet.images import small_digits
from caveat.papers.lenet.training import noisy_pass
from tests.statistics import assert_mean_is


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def few():
    digits = small_digits()
    return Images("digits", digits.train.first(200), digits.test.first(60))


@pytest.mark.parametrize(
    ("dropout", "places"), [("none", []), ("end", [7]), ("everywhere", [1, 4, 9])]
)
def test_layers_are_those_of_the_released_files(dropout, places):
    net = make_lenet(dropout, generator())
    assert [k for k, m in enumerate(net) if isinstance(m, nn.Dropout)] == places
    assert all(net[k].p == 0.5 for k in places)
    assert sum(isinstance(m, nn.ReLU) for m in net) == 1
    assert sum(p.numel() for p in net.parameters()) == 431_080  # as Caffe's LeNet
    assert net(torch.zeros(3, 1, 28, 28)).shape == (3, 10)
    for place in places[:-1]:  # dropped before the pooling, not after
        assert isinstance(net[place + 1], nn.MaxPool2d)


def test_first_weights_are_caffes_and_the_same_wherever_dropout_is():
    nets = [make_lenet(dropout, generator(3)) for dropout in DROPOUT]
    first, *others = [list(net.parameters()) for net in nets]
    for other in others:
        assert all(torch.equal(a, b) for a, b in zip(first, other, strict=True))
    for weight, fan_in in ((first[2], 500), (first[4], 800)):
        assert weight.abs().max() <= (3 / fan_in) ** 0.5
        variances = weight.detach().flatten().square()
        assert_mean_is(variances, torch.tensor(1 / fan_in))
    assert all(not p.any() for p in first[1::2])


def test_noisy_pass_drops_half_and_doubles_the_rest():
    net = nn.Sequential(nn.Dropout(0.5))
    x = torch.rand(8, 5, 12, 12).to(memory_format=torch.channels_last) + 0.5
    found = torch.stack([noisy_pass(net, x, generator(s)) for s in range(400)]) / x
    assert set(found.unique().tolist()) == {0.0, 2.0}
    assert_mean_is(found.flatten(1), torch.tensor(1.0))
    pairs = (found[:, 0, 0, 0, 0] - 1) * (found[:, 0, 1, 0, 0] - 1)
    assert_mean_is(pairs, torch.tensor(0.0))  # neighbours are independent


def test_noisy_pass_has_masks_of_its_own():
    net, x = make_lenet("everywhere", generator()), torch.rand(4, 1, 28, 28)
    first = noisy_pass(net, x, generator(1))
    torch.manual_seed(9)
    state = torch.random.get_rng_state()
    assert torch.equal(noisy_pass(net, x, generator(1)), first)
    assert not torch.equal(noisy_pass(net, x, generator(2)), first)
    assert torch.equal(torch.random.get_rng_state(), state)
    plain = make_lenet("none", generator())
    torch.testing.assert_close(noisy_pass(plain, x, generator(1)), plain(x))


def test_training_is_caffes_update_restated(few):
    job = NetJob("none", n_steps=6, seed=4)  # 200 images: the 4th batch has 8
    found = list(job.train(few).parameters())
    net, order = job.build(), generator(3 * 4 + 1)
    weights = list(net.parameters())
    speed = [torch.zeros_like(w) for w in weights]
    rows = [r for _ in range(2) for r in torch.randperm(200, generator=order).split(64)]
    for step in range(6):
        x = few.train.image[rows[step]][:, None] / 256
        loss = F.cross_entropy(net(x), few.train.label[rows[step]])
        gradients = torch.autograd.grad(loss, weights)
        rate = 0.01 * (1 + 1e-4 * step) ** -0.75
        with torch.no_grad():
            for k, (w, g) in enumerate(zip(weights, gradients, strict=True)):
                speed[k] = 0.9 * speed[k] + g + 5e-4 * w
                w -= rate * (2.0 if k % 2 else 1.0) * speed[k]
    for mine, expected in zip(found, weights, strict=True):
        torch.testing.assert_close(mine, expected, rtol=1e-4, atol=1e-6)


def test_the_solver_is_the_released_one():
    assert (SOLVER.base_rate, SOLVER.gamma, SOLVER.power) == (0.01, 1e-4, 0.75)
    assert (SOLVER.momentum, SOLVER.weight_decay, SOLVER.batch_size) == (0.9, 5e-4, 64)


def test_digits_stand_in_for_mnist(no_data):
    images = load_images()
    assert images.name == "digits"
    assert len(images.train) + len(images.test) == 1797
    assert images.train.image.shape[1:] == (28, 28)
    assert images.train.image.dtype == torch.uint8
    x = as_input(images.test.image[:2])
    assert x.shape == (2, 1, 28, 28) and 0.9 < x.max() < 1.0
    assert not x[:, :, :4].any() and not x[:, :, :, -4:].any()


def test_numbers_of_other_images_are_not_mixed(no_data):
    assert images_of({"digits"}).name == "digits"
    for names in ({"MNIST"}, {"MNIST", "digits"}):
        with pytest.raises(DataError, match="found now are digits"):
            images_of(names)


def test_mnist_is_taken_where_it_is(real_data):
    images = load_images()
    assert images.name == "MNIST"
    assert (len(images.train), len(images.test)) == (60_000, 10_000)


@dataclass(frozen=True)
class Counted:
    """A job that trains in no time."""

    seed: int

    name = property(lambda self: f"counted_{self.seed}")
    settings = property(lambda self: {"seed": self.seed})

    def build(self):
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 10))

    def train(self, images):
        net = self.build()
        nn.init.constant_(net[1].weight, float(self.seed))
        return net


def test_a_store_trains_what_it_lacks(tmp_path, no_data):
    store = NetStore(tmp_path / "nets", "digits")
    for seed in (1, 2, 3):
        store.get(Counted(seed))
    assert store.load(Counted(2))[1].weight.unique().tolist() == [2.0]
    store.path(Counted(1)).write_bytes(b"broken off")
    store.path(Counted(2)).write_bytes(store.path(Counted(3)).read_bytes())
    assert [seed for seed in range(1, 5) if store.has(Counted(seed))] == [3]
    assert replace(store, data="MNIST").path(Counted(3)) != store.path(Counted(3))
    assert store.get(Counted(2))[1].weight.unique().tolist() == [2.0]


def test_a_store_trains_once_what_it_is_asked_for(tmp_path, no_data, monkeypatch):
    store = NetStore(tmp_path / "nets", "digits")
    assert store.get(Counted(2))[1].weight.unique().tolist() == [2.0]
    monkeypatch.setattr(Counted, "train", None)
    assert store.get(Counted(2))[1].weight.unique().tolist() == [2.0]


def test_a_stored_lenet_is_the_one_that_was_trained(tmp_path, few):
    job, store = NetJob("everywhere", 2, 0), NetStore(tmp_path, "digits")
    net = job.train(few)
    store.save(job, net)
    assert store.has(job) and not store.has(replace(job, seed=1))
    x = as_input(few.test.image)
    torch.testing.assert_close(store.load(job)(x), net(x))
    assert not store.load(job).training


def test_groups_and_scores_are_averages():
    log_probs = torch.randn(7, 20, 4, generator=generator()).double().log_softmax(-1)
    label = torch.randint(4, (20,), generator=generator(1))
    found = list(grouped(log_probs, 3))
    assert len(found) == 2
    expected = log_probs[3:6].exp().mean(0)
    torch.testing.assert_close(found[1].exp(), expected)
    score = LabelScore.of(found[1], label)
    own = np.log(expected.numpy()[np.arange(20), label.numpy()])
    assert score.log_likelihood == pytest.approx(own.mean())
    assert score.log_likelihood_se == pytest.approx(own.std(ddof=1) / np.sqrt(20))
    assert score.error == (expected.argmax(-1) != label).double().mean()


def test_draws_of_the_last_layer_average_to_the_standard_logits(few):
    """Masks before a linear layer: averaged weights give the mean logits exactly."""
    net = NetJob("end", 10, 0).train(few)
    before = copy.deepcopy(net.state_dict())
    image = few.test.image[:5]
    with torch.no_grad():
        expected = net(as_input(image)).double()
    draws = drawn_logits(net, image, n_draws=2_000).double()
    assert_mean_is(draws.flatten(1), expected.flatten())
    torch.testing.assert_close(standard_log_probs(net, image), expected.log_softmax(-1))
    assert all(torch.equal(before[k], v) for k, v in net.state_dict().items())


def test_labelled_images_from_both_ends():
    data = Labelled(torch.arange(5)[:, None, None].expand(5, 2, 2), torch.arange(5))
    assert data.first(2).label.tolist() == [0, 1]
    assert data.last(2).label.tolist() == [3, 4]
    assert len(data.first(None)) == 5
