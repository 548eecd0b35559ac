"""Noise that is not dropout's own: stochastic depth, Gaussian, rand, samplers."""

import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.zoo.feedforward import Between, ResidualBlock
from tests.zoo.specimen import Specimen, features

D, H = 5, 8


class DropPath(nn.Module):
    """Stochastic depth as in timm: a whole residual branch, row by row."""

    def __init__(self, rate: float = 0.3):
        super().__init__()
        self.rate = rate

    def forward(self, x):
        if self.rate == 0.0 or not self.training:
            return x
        keep = 1 - self.rate
        shape = (x.shape[0],) + (1,) * (x.ndim - 1)
        return x * x.new_empty(shape).bernoulli_(keep).div_(keep)


class StochasticDepth(nn.Module):
    def __init__(self, path: type = DropPath):
        super().__init__()
        self.first, self.last = nn.Linear(D, H), nn.Linear(H, 2)
        self.blocks = nn.ModuleList(nn.Linear(H, H) for _ in range(3))
        self.paths = nn.ModuleList(path() for _ in range(3))

    def forward(self, x):
        x = self.first(x)
        for block, path in zip(self.blocks, self.paths, strict=True):
            x = x + path(block(x).relu())
        return self.last(x)


class WholeBatchPath(DropPath):
    """One coin for the whole batch."""

    def forward(self, x):
        keep = 1 - self.rate
        if not self.training:
            return x
        return x * torch.empty(1).bernoulli_(keep).div_(keep)


class RandLike(Between):
    def noise(self, h):
        if not self.training:
            return h
        return h * (torch.rand_like(h) > self.rate) / (1 - self.rate)


class RandOfShape(Between):
    def noise(self, h):
        keep = torch.floor(torch.rand(h.shape, dtype=h.dtype) + 1 - self.rate)
        return h * keep if self.training else h


class GaussianNoise(Between):
    def noise(self, h):
        return h + 0.5 * torch.randn_like(h) if self.training else h


class GaussianDropout(Between):
    def noise(self, h):
        if not self.training:
            return h
        alpha = self.rate / (1 - self.rate)
        return h * torch.normal(1.0, alpha**0.5, h.shape)


class UniformInPlace(Between):
    def noise(self, h):
        return h + torch.empty_like(h).uniform_(-1, 1) if self.training else h


class BernoulliTensor(Between):
    """torch.bernoulli of a tensor of probabilities that depends on the input."""

    def noise(self, h):
        keep = 0.5 + 0.4 * torch.sigmoid(h)
        return h * torch.bernoulli(keep) / keep if self.training else h


class ConcreteDropout(Between):
    def noise(self, h):
        if not self.training:
            return h
        u = torch.rand_like(h).clamp(1e-6, 1 - 1e-6)
        drop = torch.sigmoid((torch.logit(u) - 0.4) / 0.1)
        return h * (1 - drop) / 0.6


class GumbelGate(Between):
    def noise(self, h):
        return h * F.gumbel_softmax(h, tau=0.7) if self.training else h


class Reparameterised(Between):
    """A variational layer: torch.distributions inside the forward, in eval too."""

    def noise(self, h):
        return torch.distributions.Normal(h, 0.3 + h.abs()).rsample()


class BayesianWeights(Between):
    """Weights drawn by randn: one set for all rows of a pass."""

    def forward(self, x):
        weight = self.first.weight
        if self.training:
            weight = weight + 0.4 * torch.randn_like(weight)
        return self.last(F.linear(x, weight, self.first.bias).relu())


class LeakyAtRandom(Between):
    def noise(self, h):
        return F.rrelu(h - 0.5, 0.0, 0.9, training=self.training)


class LeakyInPlace(Between):
    def noise(self, h):
        return F.rrelu(h - 0.5, 0.0, 0.9, self.training, inplace=True)


class CopiesInBatch(Between):
    """Every row several times, for samples of its own: (copies x rows, units)."""

    def forward(self, x):
        h = self.first(x.repeat(3, 1)).relu()
        y = self.last(F.dropout(h, self.rate, self.training))
        return y.unflatten(0, (3, -1)).tanh().mean(0)


class LayerDrop(nn.Module):
    """Skips whole layers by Python's own coin, as some Hugging Face models do."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(D, H), nn.Linear(H, 2)
        self.layers = nn.ModuleList(ResidualBlock(H) for _ in range(3))

    def skip(self) -> bool:
        return random.random() < 0.4

    def forward(self, x):
        x = self.first(x)
        for layer in self.layers:
            if self.training and self.skip():
                continue
            x = layer(x)
        return self.last(x)


class NumpyLayerDrop(LayerDrop):
    def skip(self):
        return bool(np.random.rand() < 0.4)  # noqa: NPY002 - the trap itself


class TorchLayerDrop(LayerDrop):
    """The coin is a torch number that reaches Python."""

    def skip(self):
        return torch.rand([]).item() < 0.4


class TensorLayerDrop(LayerDrop):
    """The coin stays a tensor until Python asks for its truth."""

    rate = 0.4

    def skip(self):
        return torch.rand([]) < self.rate


class NeverDropsLayers(TensorLayerDrop):
    """A number is drawn for a rate of 0: nothing is skipped, in any draw."""

    rate = 0.0


class NeverDropsLayersInPlace(LayerDrop):
    def skip(self):
        return torch.empty(1).uniform_(0, 1) < 0.0


class NeverDropsLayersPython(LayerDrop):
    """The same with Python's generator, of which nothing can be seen."""

    def skip(self):
        return random.random() < 0.0


class NeverDropsLayersNumpy(LayerDrop):
    def skip(self):
        return np.random.uniform(0, 1) < 0.0  # noqa: NPY002 - the trap itself


class FullDepth(StochasticDepth):
    """Stochastic depth of probability 0, and dropout."""

    def __init__(self, path: type):
        super().__init__(path)
        self.drop = nn.Dropout(0.4)

    def forward(self, x):
        return super().forward(self.drop(x))


class KeepsPath(WholeBatchPath):
    """Bernoulli numbers of probability 1."""

    def __init__(self):
        super().__init__(rate=0.0)


class KeepsPathByRand(DropPath):
    def __init__(self):
        super().__init__(rate=0.0)

    def forward(self, x):
        shape = (x.shape[0],) + (1,) * (x.ndim - 1)
        return x * (torch.rand(shape) < 1 - self.rate)


X = features(D)

SPECIMENS = [
    Specimen("drop_path", StochasticDepth, X, sites=3),
    Specimen(
        "drop_path_whole_batch",
        lambda: StochasticDepth(WholeBatchPath),
        X,
        sites=3,
        noise_has_rows=False,
    ),
    Specimen("rand_like", RandLike, X, sites=1),
    Specimen("rand_of_shape", RandOfShape, X),
    Specimen("gaussian_noise", GaussianNoise, X, sites=1),
    Specimen("gaussian_dropout", GaussianDropout, X, sites=1),
    Specimen("uniform_inplace", UniformInPlace, X, sites=1),
    Specimen("bernoulli_tensor", BernoulliTensor, X, sites=1),
    Specimen("concrete", ConcreteDropout, X, sites=1),
    Specimen("gumbel", GumbelGate, X, sites=1),
    Specimen("reparameterised", Reparameterised, X, sites=1, fires_in_eval=True),
    Specimen("bayesian_weights", BayesianWeights, X, sites=1, noise_has_rows=False),
    Specimen("random_leaky_relu", LeakyAtRandom, X, may_refuse=True),
    Specimen("random_leaky_relu_in_place", LeakyInPlace, X, sites=1),
    Specimen("copies_in_batch", CopiesInBatch, X, sites=1),
    Specimen(
        "layer_drop_python",
        LayerDrop,
        X,
        noise_has_rows=False,
        may_refuse=True,
        n_draws=200,
    ),
    Specimen(
        "layer_drop_numpy",
        NumpyLayerDrop,
        X,
        noise_has_rows=False,
        may_refuse=True,
        n_draws=200,
    ),
    Specimen("full_depth", lambda: FullDepth(KeepsPath), X, sites=1),
    Specimen("full_depth_by_rand", lambda: FullDepth(KeepsPathByRand), X, sites=1),
    Specimen("layer_drop_of_rate_0", NeverDropsLayers, X, sites=3),
    Specimen("layer_drop_of_rate_0_in_place", NeverDropsLayersInPlace, X, sites=3),
    Specimen(
        "layer_drop_of_rate_0_python", NeverDropsLayersPython, X, sites=3, n_draws=100
    ),
    Specimen(
        "layer_drop_of_rate_0_numpy", NeverDropsLayersNumpy, X, sites=3, n_draws=100
    ),
    Specimen(
        "layer_drop_tensor",
        TensorLayerDrop,
        X,
        noise_has_rows=False,
        reaches_python=True,
        n_draws=200,
    ),
    Specimen(
        "layer_drop_torch",
        TorchLayerDrop,
        X,
        noise_has_rows=False,
        reaches_python=True,
        n_draws=200,
    ),
]
