"""Flags, hooks, odd containers, structured outputs, odd inputs."""

import functools
import threading
import warnings
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrizations

from tests.zoo.feedforward import Between, mlp
from tests.zoo.specimen import POOL, Specimen, features, normal, tokens

D, H = 5, 8


class Body(Between):
    """Offers a dropout module and a drawn activation."""

    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.4)
        self.other = nn.Linear(H, 3)

    def hidden(self, x: Tensor) -> Tensor:
        return self.drop(self.first(x).relu())


# Outputs ------------------------------------------------------------------------


class Pair(NamedTuple):
    mean: Tensor
    scale: Tensor


class ReturnsDict(Body):
    def forward(self, x):
        h = self.hidden(x)
        return {"logits": self.last(h), "hidden": h}


class ReturnsTuple(Body):
    def forward(self, x):
        h = self.hidden(x)
        return self.last(h), self.other(h)


class ReturnsNested(Body):
    """Tuples in dicts in lists, an integer tensor, None, and an undrawn tensor."""

    def forward(self, x):
        h = self.hidden(x)
        pair = Pair(self.last(h), self.other(h).exp())
        return {
            "pair": pair,
            "more": [h, {"label": self.other(h).argmax(-1)}, None],
            "clean": self.first(x),
        }


class AuxWhenTraining(Body):
    """(y, aux) in training, y alone otherwise."""

    def forward(self, x):
        h = self.hidden(x)
        y = self.last(h)
        return (y, self.other(h)) if self.training else y


class AuxHead(Body):
    """GoogLeNet: a head with its own dropout that exists in training only."""

    def __init__(self):
        super().__init__()
        self.aux = nn.Sequential(nn.Linear(H, H), nn.Dropout(0.5), nn.Linear(H, 2))

    def forward(self, x):
        h = self.first(x).relu()
        aux = self.aux(h) if self.training else None
        y = self.last(self.drop(h))
        return Pair(y, aux) if self.training else y


# Flags --------------------------------------------------------------------------


class GatedByParent(Body):
    def forward(self, x):
        x = self.first(x).relu()
        if self.training:
            x = self.drop(x)
        return self.last(x)


class GatedBlockInAuxNet(Body):
    """The block must believe it trains, the net around it must not."""

    def __init__(self):
        super().__init__()
        self.block = GatedByParent()

    def forward(self, x):
        y = self.block(x)
        return (y, y * 2) if self.training else y


class ReadsParentFlag(nn.Module):
    """A child that holds its parent, and goes by the parent's flag."""

    class Child(nn.Module):
        def __init__(self, parent):
            super().__init__()
            self.parent = [parent]  # in a list, so that it is no submodule

        def forward(self, x):
            return F.dropout(x, 0.4, self.parent[0].training)

    def __init__(self):
        super().__init__()
        self.child = self.Child(self)
        self.last = nn.Linear(D, 2)

    def forward(self, x):
        return self.last(self.child(x))


class OwnCall(GatedByParent):
    """Goes past torch's call, and so past hooks, as some libraries do."""

    def __call__(self, x):
        return self.forward(x)


class OwnCallAround(GatedByParent):
    """Does something before torch's call: here, random and in training mode only."""

    def __call__(self, x):
        x = F.dropout(x, 0.2) if self.training else x
        return super().__call__(x)


class Wraps(nn.Module):
    """A net around one that is called in some way."""

    def __init__(self, inner: nn.Module, call=lambda inner, x: inner(x)):
        super().__init__()
        self.outer, self.inner, self.call = nn.Linear(D, D), inner, call

    def forward(self, x):
        return self.call(self.inner, self.outer(x))


class Detector(Body):
    """Wants targets in training mode; what it holds is gated by that mode, too."""

    def __init__(self):
        super().__init__()
        self.block = Wraps(GatedByParent())

    def forward(self, x, targets=None):
        if self.training:
            return (self.block(x) - targets).square().mean()
        return self.block(x)


class DetectorWithin(nn.Module):
    """One of the parts wants targets, deep inside; another is gated beside it."""

    def __init__(self):
        super().__init__()
        self.beside, self.heads = GatedByParent(), nn.ModuleList([Detector()])

    def forward(self, x):
        return self.beside(x) + self.heads[0](x)


# Containers and attributes ------------------------------------------------------


class PlainContainers(nn.Module):
    """Modules in a list and a dict: torch does not know them."""

    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(D, H).requires_grad_(False), nn.Dropout(0.4).eval()]
        self.heads = {"y": nn.Linear(H, 2).requires_grad_(False)}
        self.marker = nn.Parameter(torch.zeros(1))

    def train(self, mode: bool = True):
        for module in self.layers:
            module.train(mode)
        return super().train(mode)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.heads["y"](x) + self.marker


class Tied(nn.Module):
    """Embedding and output share their weights; one block has two names."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(31, H)
        self.block = nn.Sequential(nn.Linear(H, H), nn.Dropout(0.3), nn.Tanh())
        self.again = self.block
        self.out = nn.Linear(H, 31, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, index):
        return self.out(self.again(self.block(self.embed(index))))[..., :5]


class BoundMethods(Body):
    """Callables in attributes that hold ``self``: method, partial, partial of F."""

    def __init__(self):
        super().__init__()
        self.act = self._act
        self.scaled = functools.partial(self._scaled, scale=2.0)
        self.always = functools.partial(F.dropout, p=0.2)
        self.steps = [self._act, self.drop.forward]

    def _act(self, h):
        return F.dropout(h, 0.3, self.training)

    def _scaled(self, h, scale):
        return scale * F.dropout(h, 0.3, self.training)

    def forward(self, x):
        h = self.always(self.scaled(self.act(self.first(x))))
        for step in self.steps:
            h = step(h)
        return self.last(h)


class Closure(Body):
    """A lambda that holds ``self``; another site hides it if it is missed."""

    def __init__(self):
        super().__init__()
        self.noisy = lambda h: 3.0 * F.dropout(h, 0.5, self.training)

    def forward(self, x):
        return self.last(self.noisy(self.drop(self.first(x))))


class HoldsLock(Body):
    """Has attributes that cannot be copied, pickled or compared."""

    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()
        self.stream = (i for i in range(3))

    def forward(self, x):
        with self.lock:
            return self.last(self.hidden(x))


class OwnGetattr(Body):
    """Falls back to its configuration for unknown attributes, as Lightning did."""

    def __init__(self):
        super().__init__()
        self.config = {"scale": 3.0}

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            config = self.__dict__.get("config", {})
            if name in config:
                return config[name]
            raise

    def forward(self, x):
        return self.last(self.hidden(x)) * self.scale


# Hooks and parametrisations -----------------------------------------------------


class Hooked(Body):
    """Hooks that change inputs and outputs, one of them a method of the model."""

    def __init__(self):
        super().__init__()
        self.seen = []
        self.first.register_forward_hook(self.remember)
        self.first.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
        self.drop.register_forward_hook(lambda module, args, out: out + 0.5)
        self.last.register_forward_hook(
            lambda module, args, kwargs, out: out * 1.5, with_kwargs=True
        )

    def remember(self, module, args, out):
        self.seen.append(out)
        return F.dropout(out, 0.2, self.training)

    def forward(self, x):
        return self.last(self.hidden(x))


class ForwardReplaced(Body):
    """An instance with its own ``forward``, as wrapping libraries leave it."""

    def __init__(self):
        super().__init__()
        inner = self.drop.forward
        self.drop.forward = lambda h: inner(h) * 2.0

    def forward(self, x):
        return self.last(self.hidden(x))


def fx_graph() -> nn.Module:
    """A graph of torch.fx, whose class has a call of its own."""
    return torch.fx.symbolic_trace(GatedByParent().train())


def spectral_old() -> nn.Module:
    model = nn.Sequential(
        nn.utils.spectral_norm(nn.Linear(D, H)),
        nn.ReLU(),
        nn.Dropout(0.4),
        nn.utils.spectral_norm(nn.Linear(H, 2)),
    )
    model(normal(4, D))  # one step of power iteration, so far from converged
    return model


def spectral_parametrized() -> nn.Module:
    first = parametrizations.spectral_norm(nn.Linear(D, H), n_power_iterations=1)
    return nn.Sequential(first, nn.ReLU(), nn.Dropout(0.4), nn.Linear(H, 2))


def weight_norm() -> nn.Module:
    first = parametrizations.weight_norm(nn.Linear(D, H))
    return nn.Sequential(first, nn.ReLU(), nn.Dropout(0.4), nn.Linear(H, 2))


def weight_norm_old() -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # deprecated, still in use
        first = nn.utils.weight_norm(nn.Linear(D, H))
    return nn.Sequential(first, nn.ReLU(), nn.Dropout(0.4), nn.Linear(H, 2))


def frozen_norms() -> nn.Module:
    """Group, instance and layer norm; the instance norm keeps running statistics."""
    model = nn.Sequential(
        nn.Conv1d(2, 4, 3),
        nn.GroupNorm(2, 4),
        nn.InstanceNorm1d(4, track_running_stats=True),
        nn.Dropout(0.3),
        nn.Flatten(),
        nn.LayerNorm(16),
        nn.Linear(16, 2),
    )
    model[2].running_mean.uniform_(-1, 1)
    return model


# Inputs -------------------------------------------------------------------------


class KeywordsOnly(Body):
    def forward(self, *, left, right=None, scale: float = 1.0):
        return self.last(self.hidden(left + right)) * scale


class WithConstants(Body):
    """Tensors beside the batch that have no rows: a table and a temperature."""

    def forward(self, x, table, temperature, flag=True):
        h = self.hidden(x + table.mean(0)) / temperature
        return self.last(h) if flag else h


class NestedInputs(Body):
    def forward(self, batch):
        (left, right), extra = batch["pair"], batch["extra"]
        return self.last(self.hidden(left - right)) + extra


def keywords(n: int):
    left, right = (normal(POOL, D, seed=s)[:n] for s in (0, 1))
    return (), {"left": left, "right": right, "scale": 2.0}


def constants(n: int):
    table = normal(7, D, seed=3)
    return (normal(POOL, D)[:n], table, torch.tensor(0.7)), {"flag": True}


def nested(n: int):
    pair = [normal(POOL, D, seed=s)[:n] for s in (0, 1)]
    return ({"pair": pair, "extra": normal(POOL, 1, seed=2)[:n]},), {}


def lightning_module() -> nn.Module:
    from lightning import LightningModule

    class Regressor(LightningModule):
        def __init__(self):
            super().__init__()
            self.save_hyperparameters()
            self.net = mlp()

        def forward(self, x):
            return self.net(x)

    return Regressor()


X = features(D)
GRID = features(2, 6)


def as_called(*paths: str):
    """The oracle for what cannot train as it is called: these parts in evaluation."""

    def call(model: nn.Module):
        for path in paths:
            model.get_submodule(path).training = False
        return model

    return call


def first(model: nn.Module):
    """The oracle for (y, aux): what eval mode would return, drawn in train mode."""
    return lambda *args, **kwargs: model(*args, **kwargs)[0]


SPECIMENS = [
    Specimen("returns_dict", ReturnsDict, X, sites=1),
    Specimen("returns_tuple", ReturnsTuple, X, sites=1),
    Specimen("returns_nested", ReturnsNested, X, sites=1),
    Specimen("aux_when_training", AuxWhenTraining, X, sites=1, reference=first),
    Specimen(
        "aux_head",
        AuxHead,
        X,
        sites=1,
        reference=first,
        filter_warnings=("AuxHead has dropout that only fires in training mode",),
    ),
    Specimen("gated_by_parent", GatedByParent, X, sites=1),
    Specimen("gated_block_in_aux_net", GatedBlockInAuxNet, X, sites=1, reference=first),
    Specimen("reads_parent_flag", ReadsParentFlag, X, sites=1),
    Specimen("own_call", lambda: Wraps(OwnCall()), X, sites=1),
    Specimen("own_call_around", lambda: Wraps(OwnCallAround()), X, sites=2),
    Specimen(
        "forward_called",
        lambda: Wraps(GatedByParent(), lambda inner, x: inner.forward(x)),
        X,
        sites=1,
    ),
    Specimen(
        "detector",
        Detector,
        X,
        sites=1,
        reference=as_called(""),
        filter_warnings=("Detector cannot be called like this",),
    ),
    Specimen(
        "detector_within",
        DetectorWithin,
        X,
        sites=2,
        reference=as_called("heads.0"),
        filter_warnings=("DetectorWithin cannot be called like this",),
    ),
    Specimen("plain_containers", PlainContainers, X, sites=1),
    Specimen("tied", Tied, lambda n: ((tokens(n, length=3),), {}), sites=2),
    Specimen("bound_methods", BoundMethods, X, sites=5, fires_in_eval=True),
    Specimen("closure", Closure, X, may_refuse=True),
    Specimen("holds_lock", HoldsLock, X, sites=1),
    Specimen("own_getattr", OwnGetattr, X, sites=1),
    Specimen("hooked", Hooked, X, sites=2),
    Specimen("forward_replaced", ForwardReplaced, X, sites=1, may_refuse=True),
    Specimen("fx_graph", fx_graph, X, sites=1),
    Specimen("spectral_old", spectral_old, X, sites=1),
    Specimen("spectral_parametrized", spectral_parametrized, X, sites=1),
    Specimen("weight_norm", weight_norm, X, sites=1),
    Specimen("weight_norm_old", weight_norm_old, X, sites=1),
    Specimen("frozen_norms", frozen_norms, GRID, sites=1),
    Specimen("keywords_only", KeywordsOnly, keywords, sites=1),
    Specimen("with_constants", WithConstants, constants, sites=1),
    Specimen("nested_inputs", NestedInputs, nested, sites=1),
    Specimen("lightning", lightning_module, X, sites=2, needs="lightning"),
]
