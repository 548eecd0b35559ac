"""Drawn values that reach Python, and things that run inside a forward."""

import warnings

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tests.zoo.feedforward import Between, mlp
from tests.zoo.specimen import Specimen, features

D, H = 5, 8


class Drawn(Between):
    """Offers ``hidden``, a drawn activation."""

    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.4)

    def hidden(self, x: Tensor) -> Tensor:
        return self.drop(self.first(x))


class Branches(Drawn):
    def forward(self, x):
        h = self.hidden(x)
        if h.mean() > 0:
            h = -2.0 * self.drop(h.relu())
        return self.last(h)


class ReadsItem(Drawn):
    def forward(self, x):
        h = self.hidden(x)
        return self.last(h) * (1.0 + abs(h[0, 0].item()))


class ReadsList(Drawn):
    def forward(self, x):
        scale = [1.0 + abs(v) for v in self.hidden(x).sum(1).tolist()]
        return self.last(self.first(x)) * torch.tensor(scale)[:, None]


class RoundTripNumpy(Drawn):
    def forward(self, x):
        h = self.hidden(x).numpy()
        return self.last(torch.from_numpy(h * 2.0).tanh())


class SelectsPositive(Drawn):
    """A boolean index on a drawn tensor: its size differs from draw to draw."""

    def forward(self, x):
        h = self.hidden(x)
        return torch.stack([row[row > 0].sum() for row in h])[:, None]


class CountsNonzero(Drawn):
    def forward(self, x):
        h = self.hidden(x)
        kept = torch.stack([len(row.nonzero()) + row.sum() for row in h])
        return self.last(h) + kept[:, None]


class PondersUntil(Drawn):
    """A while loop whose number of rounds, and of sites, is drawn."""

    def forward(self, x):
        h = self.hidden(x)
        rounds = 0
        while h.abs().sum() > 1.0 and rounds < 5:
            h = 0.6 * self.drop(h)
            rounds += 1
        return self.last(h) + rounds


class ExitsEarly(Drawn):
    """A head after every block; the first one that is sure enough answers."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(H, H) for _ in range(3))
        self.heads = nn.ModuleList(nn.Linear(H, 3) for _ in range(3))

    def forward(self, x):
        h = self.hidden(x)
        for block, head in zip(self.blocks, self.heads, strict=True):
            h = self.drop(block(h).relu())
            logits = head(h)
            if logits.softmax(-1).max() > 0.5:
                break
        return logits


class EnergyAndForces(Drawn):
    """Two outputs, one of them a derivative, with a graph to train through."""

    def forward(self, x):
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            energy = self.last(self.hidden(x).tanh())
            (force,) = torch.autograd.grad(energy.sum(), x, create_graph=True)
        return {"energy": energy.detach(), "forces": -force.detach()}


class AssertsFinite(Drawn):
    """The usual sanity check: a drawn truth value that is always the same."""

    def forward(self, x):
        h = self.hidden(x)
        assert torch.isfinite(h).all()
        return self.last(h)


class SpoiltByEquality(Drawn):
    def forward(self, x):
        h = self.hidden(x)
        return self.last(h) + float(torch.equal(h[0, :2], torch.zeros(2)))


class BranchesOnInput(Drawn):
    """Python depends on the data, not on the draw: fine, but other rows differ."""

    def forward(self, x):
        rows = []
        for row in x:
            h = self.hidden(row[None])[0] if row[0] > 0 else self.first(row)
            rows.append(self.last(h))
        return torch.stack(rows) + 0.5 * self.last(self.hidden(x))


class GradientInside(Drawn):
    """Force fields and energy models: a derivative with respect to the input."""

    def forward(self, x):
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            energy = self.last(self.hidden(x).tanh()).sum()
            (force,) = torch.autograd.grad(energy, x)
        return force.detach()


class Autocast(Drawn):
    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            h = self.drop(self.first(x).relu())
            return self.last(h).float()


class Checkpointed(Drawn):
    def forward(self, x):
        return self.last(checkpoint(self.hidden, x, use_reentrant=False))


class CustomFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clamp(min=-0.2)

    @staticmethod
    def backward(ctx, grad):
        return grad


class OwnFunction(Drawn):
    def forward(self, x):
        return self.last(CustomFunction.apply(self.hidden(x)))


def gelu(x: Tensor) -> Tensor:
    return x * torch.sigmoid(1.702 * x)


def noisy(x: Tensor, rate: float, training: bool) -> Tensor:
    return F.dropout(x, rate, training) + 0.1


with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # old, but all over the place
    scripted_gelu, scripted_noisy = torch.jit.script(gelu), torch.jit.script(noisy)


class ScriptedInside(Drawn):
    def forward(self, x):
        return self.last(scripted_gelu(self.hidden(x)))


class ScriptedNoise(Between):
    def noise(self, h):
        return scripted_noisy(h, self.rate, self.training)


class FunctionalCall(Drawn):
    def forward(self, x):
        halved = {k: v / 2 for k, v in self.last.named_parameters()}
        return torch.func.functional_call(self.last, halved, (self.hidden(x),))


class VmapInside(Drawn):
    def forward(self, x):
        rows = torch.vmap(self.hidden, randomness="different")
        return self.last(rows(x))


class EinsumAndFriends(Drawn):
    """Complex numbers, sort, topk, cumsum, einsum and where downstream of a draw."""

    def forward(self, x):
        h = self.hidden(x)
        spectrum = torch.fft.rfft(h).abs()
        best, place = h.topk(3, dim=-1)
        mixed = torch.einsum("bi,ij->bj", h, self.first.weight)
        ranked = torch.where(h > 0, h.sort(-1).values, h.cumsum(-1))
        picked = spectrum.gather(1, place.clamp(max=4))
        return torch.cat([spectrum, best, mixed, ranked, picked], dim=-1)


class CompiledFunction(Between):
    def __init__(self):
        super().__init__()
        self.activation = torch.compile(gelu, backend="eager")

    def noise(self, h):
        return self.activation(F.dropout(h, self.rate, self.training))


def compiled_inside() -> nn.Module:
    return nn.Sequential(
        nn.Linear(D, D), torch.compile(mlp(), backend="eager"), nn.Tanh()
    )


def compiled_in_place() -> nn.Module:
    model = mlp()
    model.compile(backend="eager")
    return model


X = features(D)


def python(name: str, make: type, **kwargs) -> Specimen:
    return Specimen(name, make, X, reaches_python=True, n_draws=200, **kwargs)


SPECIMENS = [
    python("branches", Branches, row_wise=False),
    python("reads_item", ReadsItem, sites=1, row_wise=False),
    python("reads_list", ReadsList, sites=1),
    python("round_trip_numpy", RoundTripNumpy, sites=1),
    python("selects_positive", SelectsPositive, sites=1),
    python("counts_nonzero", CountsNonzero, sites=1),
    python("ponders_until", PondersUntil, row_wise=False),
    python("exits_early", ExitsEarly, row_wise=False),
    python("asserts_finite", AssertsFinite, sites=1),
    python("spoilt_by_equality", SpoiltByEquality, sites=1, row_wise=False),
    Specimen(
        "branches_on_input",
        BranchesOnInput,
        X,
        fixed_sites=False,
        filter_warnings=("BranchesOnInput draws noise for this batch",),
    ),
    Specimen("gradient_inside", GradientInside, X, sites=1),
    Specimen("energy_and_forces", EnergyAndForces, X, sites=1),
    Specimen("autocast", Autocast, X, sites=1, rounding=3e-2),
    Specimen("checkpointed", Checkpointed, X, sites=1),
    Specimen("own_function", OwnFunction, X, sites=1),
    Specimen("scripted_inside", ScriptedInside, X, sites=1),
    Specimen("scripted_noise", ScriptedNoise, X, sites=1),
    Specimen("functional_call", FunctionalCall, X, sites=1),
    Specimen("vmap_inside", VmapInside, X, may_refuse=True),
    Specimen("einsum_and_friends", EinsumAndFriends, X, sites=1),
    Specimen("compiled_function", CompiledFunction, X, sites=1),
    Specimen("compiled_inside", compiled_inside, X, sites=2),
    Specimen(
        "compiled",
        lambda: torch.compile(mlp(), backend="eager"),
        X,
        sites=2,
        reference=lambda model: model._orig_mod,
    ),
    Specimen("compiled_in_place", compiled_in_place, X, sites=2),
]
