"""What a watch sees of a model that changes, and what it does not mind."""

import functools
import gc
import types
import weakref

import pytest
import torch
from torch import nn

import caveat
from caveat.sampling.fingerprint import survey
from caveat.sampling.watch import Unchanged

SCALE = 1.0


class Config:
    __slots__ = ("extra", "rate")

    def __init__(self):
        self.rate, self.extra = 0.5, [1]


class Settings:
    def __init__(self):
        self.depth = 2


def shifted(x, by=0.0, *, times=1.0):
    return times * x + by


class Net(nn.Module):
    level = 3

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Dropout(0.5))
        self.head = nn.Linear(4, 1)
        self.config, self.settings = Config(), Settings()
        self.options = {"a": [1, 2], "b": {1.5}}
        self.long = list(range(3000))
        self.call = functools.partial(shifted, by=1.0)
        held = 2.0
        self.closure = lambda x: x * held * SCALE

        def set_held(value):
            nonlocal held
            held = value

        self.set_held = set_held

    def forward(self, x):
        return self.head(self.body(self.closure(self.call(x)))) * self.level


class Other(nn.Linear):
    pass


CHANGES = {
    "a rate": lambda net: setattr(net.body[2], "p", 0.25),
    "a layer": lambda net: net.body.__setitem__(1, nn.Tanh()),
    "a layer more": lambda net: net.body.append(nn.Tanh()),
    "a weight tensor": lambda net: setattr(
        net.head, "weight", nn.Parameter(torch.zeros(1, 4))
    ),
    "a bias gone": lambda net: net.head.register_parameter("bias", None),
    "a buffer": lambda net: net.register_buffer("count", torch.zeros(1)),
    "a hook": lambda net: net.head.register_forward_hook(lambda *_: None),
    "a first hook": lambda net: net.body.register_forward_pre_hook(lambda *_: None),
    "a class": lambda net: setattr(net.head, "__class__", Other),
    "a slot": lambda net: setattr(net.config, "rate", 0.1),
    "a list in a slot": lambda net: net.config.extra.append(2),
    "an attribute of an object": lambda net: setattr(net.settings, "depth", 3),
    "an item deep inside": lambda net: net.options["a"].__setitem__(0, 7),
    "a set": lambda net: net.options["b"].add(2.5),
    "a key": lambda net: net.options.__setitem__("c", net.options.pop("b")),
    "a long list": lambda net: net.long.append(0),
    "a default": lambda net: setattr(shifted, "__defaults__", (0.25,)),
    "a keyword default": lambda net: setattr(shifted, "__kwdefaults__", {"times": 2.0}),
    "the code of a function": lambda net: setattr(
        shifted, "__code__", (lambda x, by=0.0, *, times=1.0: x).__code__
    ),
    "a cell": lambda net: net.set_held(3.0),
    "a global": lambda net: globals().__setitem__("SCALE", 2.5),
    "an attribute of the class": lambda net: setattr(Net, "level", 4),
    "the forward of the class": lambda net: setattr(
        Net, "forward", lambda self, x: self.head(self.body(x))
    ),
    "a forward of its own": lambda net: setattr(
        net.head, "forward", types.MethodType(lambda self, x: x[:, :1], net.head)
    ),
    "a keyword of a partial": lambda net: net.call.keywords.__setitem__("by", 2.5),
}


@pytest.fixture
def unchanged():
    """Put back what changes reach outside of a model."""
    forward, level, scale = Net.forward, Net.level, SCALE
    code, plain, words = shifted.__code__, shifted.__defaults__, shifted.__kwdefaults__
    yield
    Net.forward, Net.level = forward, level
    globals()["SCALE"] = scale
    shifted.__code__, shifted.__defaults__, shifted.__kwdefaults__ = code, plain, words


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.usefixtures("unchanged")
def test_every_change_is_seen(name):
    net = Net()
    before = survey(net)
    assert before.holds()
    assert survey(net) is before
    CHANGES[name](net)
    assert not before.holds()
    after = survey(net)
    assert after is not before
    same = list(map(id, after.tensors)) == list(map(id, before.tensors))
    assert after.fingerprint != before.fingerprint or not same


def test_values_of_weights_and_calls_do_not_matter():
    net = Net().eval()
    mc = caveat.MCDropout(net, seed=0)
    mc.draws(torch.ones(2, 3), n_draws=3)
    before = survey(net)
    mc.draws(torch.zeros(2, 3), n_draws=3)
    with torch.no_grad():
        net.head.weight.mul_(2.0)
    assert survey(net) is before


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("name", ["a rate", "a cell", "a layer", "a slot"])
def test_draws_are_those_of_a_new_sampler_after_a_change(name):
    net = Net().eval()
    mc = caveat.MCDropout(net, seed=0)
    x = torch.randn(4, 3)
    for _ in range(3):
        mc.draws(x, n_draws=5)
    CHANGES[name](net)
    torch.testing.assert_close(
        mc.draws(x, n_draws=5), caveat.MCDropout(net, seed=0).draws(x, n_draws=5)
    )


def test_a_model_is_let_go_although_it_holds_itself():
    net = Net()
    net.settings.owner = net
    mc = caveat.MCDropout(net, seed=0)
    mc.draws(torch.ones(2, 3), n_draws=2)
    gone = weakref.ref(net)
    del net, mc
    gc.collect()
    assert gone() is None


def test_a_container_that_changes_while_it_is_read_counts_as_changed():
    class Restless(dict):
        def values(self):
            raise RuntimeError("dictionary changed size during iteration")

    watch = Unchanged()
    held = {"a": 1}
    watch.mapping(held)
    assert watch.holds()
    watch = Unchanged()
    restless = Restless(a=1)
    watch._mappings.append(restless)
    watch._sizes.append(1)
    assert not watch.holds()
