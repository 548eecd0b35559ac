"""Networks on disk."""

from dataclasses import dataclass, replace

import torch
from torch import nn

from caveat.papers.lenet import NetJob, NetStore, as_input


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
