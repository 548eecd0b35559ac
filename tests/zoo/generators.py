"""Generators of the model's own: seeded in the forward, held, or not torch's at all."""

import random
from types import SimpleNamespace

import numpy as np
import torch
from torch import Tensor, nn

from tests.zoo.feedforward import Between
from tests.zoo.handmade import LayerDrop
from tests.zoo.specimen import Specimen, features

D, H = 5, 8
OUTSIDE = torch.Generator().manual_seed(4)  # used by HeldOutside


class Seeded(Between):
    """Numbers that are the same in every pass, beside dropout that is not."""

    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.4)

    def fixed(self, shape: torch.Size) -> Tensor:
        raise NotImplementedError

    def noise(self, h):
        return self.drop(h) * (1 + self.fixed(h.shape[1:]))


class FreshGenerator(Seeded):
    def fixed(self, shape):
        generator = torch.Generator().manual_seed(0)
        return torch.randn(shape, generator=generator)


class FreshGeneratorMask(Seeded):
    """A fixed mask, drawn in place; the second number follows on the first."""

    def fixed(self, shape):
        generator = torch.Generator().manual_seed(3)
        mask = torch.empty(shape).bernoulli_(0.5, generator=generator)
        return mask + torch.rand(shape, generator=generator)


class FreshPermutation(Seeded):
    def fixed(self, shape):
        generator = torch.Generator().manual_seed(5)
        return torch.randperm(shape.numel(), generator=generator).float()


class HeldReseeded(Seeded):
    def __init__(self):
        super().__init__()
        self.generator = torch.Generator()

    def fixed(self, shape):
        self.generator.manual_seed(2)
        return torch.randn(shape, generator=self.generator)


class Forked(Seeded):
    def fixed(self, shape):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return torch.randn(shape)


class PutBack(Seeded):
    def fixed(self, shape):
        state = torch.get_rng_state()
        torch.manual_seed(0)
        fixed = torch.randn(shape)
        torch.set_rng_state(state)
        return fixed


class ForkedDropout(Seeded):
    """Dropout that is seeded is a fixed mask, also on a drawn tensor."""

    def noise(self, h):
        h = self.drop(h)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1)
            return torch.nn.functional.dropout(h, 0.3, self.training)


class Held(Seeded):
    """A source of noise that is an attribute."""

    def __init__(self):
        super().__init__()
        self.generator = torch.Generator().manual_seed(6)

    def noise(self, h):
        if not self.training:
            return h
        return h + torch.randn(h.shape, generator=self.generator)


class HeldInObject(Held):
    def __init__(self):
        super().__init__()
        self.config = SimpleNamespace(generator=self.__dict__.pop("generator"))

    def noise(self, h):
        if not self.training:
            return h
        return h + torch.randn(h.shape, generator=self.config.generator)


class HeldOutside(Seeded):
    def __init__(self):
        super().__init__()
        OUTSIDE.manual_seed(4)

    def noise(self, h):
        if not self.training:
            return h
        return h + torch.randn(h.shape, generator=OUTSIDE)


class SeededByDraw(Seeded):
    """A generator that is seeded anew by a number that is drawn."""

    def noise(self, h):
        if not self.training:
            return h
        seed = int(torch.randint(1000, ()))
        generator = torch.Generator().manual_seed(seed)
        return h + torch.randn(h.shape[1:], generator=generator)


class OwnPython(LayerDrop):
    def __init__(self):
        super().__init__()
        self.coin = random.Random(0)

    def skip(self):
        return self.coin.random() < 0.4


class OwnNumpy(LayerDrop):
    def __init__(self):
        super().__init__()
        self.coins = {"skip": np.random.default_rng(0)}

    def skip(self):
        return bool(self.coins["skip"].random() < 0.4)


class OwnNumpyOld(LayerDrop):
    def __init__(self):
        super().__init__()
        self.config = SimpleNamespace(coin=np.random.RandomState(0))

    def skip(self):
        return bool(self.config.coin.rand() < 0.4)


X = features(D)


def host(name: str, make: type) -> Specimen:
    return Specimen(name, make, X, noise_has_rows=False, n_draws=200)


SPECIMENS = [
    Specimen("seeded_fresh", FreshGenerator, X, sites=1),
    Specimen("seeded_fresh_mask", FreshGeneratorMask, X, sites=1),
    Specimen("seeded_permutation", FreshPermutation, X, sites=1),
    Specimen("seeded_held", HeldReseeded, X, sites=1),
    Specimen("seeded_forked", Forked, X, sites=1),
    Specimen("seeded_put_back", PutBack, X, sites=1),
    Specimen(
        "seeded_dropout",
        ForkedDropout,
        X,
        sites=1,
        row_wise=False,
        n_rows=3,
        fixed_sites=False,  # each place of the batch has a fixed mask of its own
        filter_warnings=("The rows of",),
    ),
    Specimen("generator_held", Held, X, sites=1),
    Specimen("generator_in_object", HeldInObject, X, sites=1),
    Specimen("generator_outside", HeldOutside, X, sites=1),
    Specimen(
        "generator_seeded_by_draw",
        SeededByDraw,
        X,
        noise_has_rows=False,
        reaches_python=True,
        n_draws=200,
    ),
    host("layer_drop_own_python", OwnPython),
    host("layer_drop_own_numpy", OwnNumpy),
    host("layer_drop_own_numpy_old", OwnNumpyOld),
]
