"""The dropout family in feed-forward and convolutional nets."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.zoo.specimen import Specimen, features, tokens

D, H = 5, 8


class Between(nn.Module):
    """Linear, relu, something random, linear: ``noise`` is the only difference."""

    def __init__(self, rate: float = 0.4):
        super().__init__()
        self.rate = rate
        self.first = nn.Linear(D, H)
        self.last = nn.Linear(H, 2)

    def noise(self, h: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.noise(self.first(x).relu()))


class FunctionalDropout(Between):
    def noise(self, h):
        return F.dropout(h, self.rate, training=self.training)


class AlwaysOnDropout(Between):
    def noise(self, h):
        return F.dropout(h, self.rate)


class TorchDropout(Between):
    def noise(self, h):
        return torch.dropout(h, self.rate, self.training)


class TorchDropoutInPlace(Between):
    def noise(self, h):
        return torch.dropout_(h, self.rate, self.training)


class FunctionalInPlace(Between):
    def noise(self, h):
        F.dropout(h, self.rate, self.training, inplace=True)
        return h


class NativeDropout(Between):
    def noise(self, h):
        return torch.native_dropout(h, self.rate, self.training)[0]


class FunctionalAlpha(Between):
    def noise(self, h):
        return F.alpha_dropout(h, self.rate, self.training)


class OneModuleThreeTimes(nn.Module):
    """The same nn.Dropout object at three places: three sites, three masks."""

    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.3)
        self.layers = nn.ModuleList(nn.Linear(H, H) for _ in range(3))
        self.first, self.last = nn.Linear(D, H), nn.Linear(H, 2)

    def forward(self, x):
        h = self.first(x)
        for layer in self.layers:
            h = layer(self.drop(h)).relu()
        return self.last(h)


class DropConnect(Between):
    """Dropout on the weights: one mask for all rows of a pass."""

    def forward(self, x):
        weight = F.dropout(self.first.weight, self.rate, self.training)
        return self.last(F.linear(x, weight, self.first.bias).relu())


class DroppedPositions(nn.Module):
    """Dropout on a positional table that has no batch dimension."""

    def __init__(self):
        super().__init__()
        self.positions = nn.Parameter(torch.randn(4, D))
        self.drop = nn.Dropout(0.4)
        self.last = nn.Linear(D, 2)

    def forward(self, x):
        return self.last((x + self.drop(self.positions)).tanh()).mean(1)


class Spatial(nn.Module):
    """A convolution, dropout of whole channels, a mean: any number of dims."""

    def __init__(self, dims: int, drop: nn.Module):
        super().__init__()
        self.conv = [nn.Conv1d, nn.Conv2d, nn.Conv3d][dims - 1](2, 4, 3, padding=1)
        self.drop = drop
        self.last = nn.Linear(4, 2)

    def forward(self, x):
        return self.last(self.drop(self.conv(x).relu()).flatten(2).mean(-1))


class FunctionalSpatial(Spatial):
    def __init__(self, dims: int, function, rate: float = 0.4):
        super().__init__(dims, nn.Identity())
        self.function, self.rate = function, rate

    def forward(self, x):
        h = self.function(self.conv(x).relu(), self.rate, self.training)
        return self.last(h.flatten(2).mean(-1))


class SpatialThenFlatten(nn.Module):
    """Dropout2d, pooling, and a flattening ``view`` that needs contiguous memory."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.more = nn.Conv2d(4, 4, 3, padding=1)
        self.drop = nn.Dropout2d(0.3)
        self.last = nn.Linear(4 * 3 * 3, 3)

    def forward(self, x):
        h = F.max_pool2d(self.drop(self.conv(x)).relu(), 2)
        h = self.drop(self.more(h)).contiguous()
        return self.last(h.view(h.size(0), -1))


class ResidualBlock(nn.Module):
    def __init__(self, width: int = H, rate: float = 0.2):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, width)
        self.drop = nn.Dropout(rate)

    def forward(self, x):
        return x + self.drop(F.gelu(self.inner(self.norm(x))))


def with_used_norms(model: nn.Module) -> nn.Module:
    """Running statistics as after training, far from the batch's own."""
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.running_mean.uniform_(-1, 1)
            module.running_var.uniform_(0.5, 3)
    return model


def mlp(rate: float = 0.4, **kwargs: bool) -> nn.Module:
    return nn.Sequential(
        nn.Linear(D, H),
        nn.ReLU(),
        nn.Dropout(rate, **kwargs),
        nn.Linear(H, H),
        nn.ReLU(),
        nn.Dropout(rate, **kwargs),
        nn.Linear(H, 2),
    )


def mlp_batchnorm() -> nn.Module:
    return with_used_norms(
        nn.Sequential(
            nn.Linear(D, H),
            nn.BatchNorm1d(H),
            nn.ReLU(),
            nn.Dropout(0.4),
            nn.Linear(H, H),
            nn.BatchNorm1d(H),
            nn.Dropout(0.2),
            nn.Linear(H, 2),
        )
    )


def input_dropout() -> nn.Module:
    return nn.Sequential(nn.Dropout(0.3), nn.Linear(D, H), nn.Tanh(), nn.Linear(H, 2))


def last_dropout() -> nn.Module:
    return nn.Sequential(nn.Linear(D, H), nn.Tanh(), nn.Linear(H, 3), nn.Dropout(0.3))


def one_rate_zero() -> nn.Module:
    return nn.Sequential(
        nn.Dropout(0.0), nn.Linear(D, H), nn.ReLU(), nn.Dropout(0.4), nn.Linear(H, 2)
    )


def alpha(drop: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(D, H), nn.SELU(), drop, nn.Linear(H, 2))


def head_dropout() -> nn.Module:
    return with_used_norms(
        nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1, bias=False),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(36, H),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.Linear(H, 3),
        )
    )


def deep_residual() -> nn.Module:
    blocks = [ResidualBlock() for _ in range(6)]
    return nn.Sequential(nn.Linear(D, H), *blocks, nn.Linear(H, 2))


def embedding_bag() -> nn.Module:
    bag = nn.EmbeddingBag(31, H, mode="mean")
    return nn.Sequential(bag, nn.Dropout(0.4), nn.Linear(H, 2))


def spatial(dims: int, drop: nn.Module) -> nn.Module:
    return Spatial(dims, drop)


X = features(D)
IMAGE = features(1, 6, 6)
GRIDS = {1: features(2, 5), 2: features(2, 4, 4), 3: features(2, 3, 3, 3)}

SPECIMENS = [
    Specimen("mlp", mlp, X, sites=2),
    Specimen("mlp_batchnorm", mlp_batchnorm, X, sites=2),
    Specimen("mlp_inplace", lambda: mlp(inplace=True), X, sites=2),
    Specimen("input_dropout", input_dropout, X, sites=1),
    Specimen("last_dropout", last_dropout, X, sites=1),
    Specimen("one_rate_zero", one_rate_zero, X),
    Specimen("functional", FunctionalDropout, X, sites=1),
    Specimen("functional_always", AlwaysOnDropout, X, sites=1, fires_in_eval=True),
    Specimen("functional_inplace", FunctionalInPlace, X, sites=1),
    Specimen("torch_dropout", TorchDropout, X, sites=1),
    Specimen("torch_dropout_", TorchDropoutInPlace, X, sites=1),
    Specimen("native_dropout", NativeDropout, X, sites=1),
    Specimen("alpha", lambda: alpha(nn.AlphaDropout(0.3)), X, sites=1),
    Specimen("alpha_inplace", lambda: alpha(nn.AlphaDropout(0.3, True)), X, sites=1),
    Specimen("functional_alpha", FunctionalAlpha, X, sites=1),
    Specimen(
        "feature_alpha",
        lambda: Spatial(2, nn.FeatureAlphaDropout(0.3)),
        GRIDS[2],
        sites=1,
    ),
    Specimen(
        "functional_feature_alpha",
        lambda: FunctionalSpatial(2, F.feature_alpha_dropout),
        GRIDS[2],
        sites=1,
    ),
    Specimen(
        "feature_dropout",
        lambda: FunctionalSpatial(1, torch.feature_dropout),
        GRIDS[1],
        sites=1,
    ),
    Specimen("dropout1d", lambda: Spatial(1, nn.Dropout1d(0.4)), GRIDS[1], sites=1),
    Specimen("dropout2d", lambda: Spatial(2, nn.Dropout2d(0.4)), GRIDS[2], sites=1),
    Specimen("dropout3d", lambda: Spatial(3, nn.Dropout3d(0.4)), GRIDS[3], sites=1),
    Specimen(
        "functional1d", lambda: FunctionalSpatial(1, F.dropout1d), GRIDS[1], sites=1
    ),
    Specimen(
        "functional2d", lambda: FunctionalSpatial(2, F.dropout2d), GRIDS[2], sites=1
    ),
    Specimen(
        "functional3d", lambda: FunctionalSpatial(3, F.dropout3d), GRIDS[3], sites=1
    ),
    Specimen("one_module_three_times", OneModuleThreeTimes, X, sites=3),
    Specimen("dropconnect", DropConnect, X, sites=1, noise_has_rows=False),
    Specimen(
        "dropped_positions",
        DroppedPositions,
        features(4, D),
        sites=1,
        noise_has_rows=False,
    ),
    Specimen("spatial_then_flatten", SpatialThenFlatten, IMAGE, sites=2),
    Specimen("head_dropout", head_dropout, IMAGE, sites=1),
    Specimen("deep_residual", deep_residual, X, sites=6),
    Specimen(
        "embedding_bag", embedding_bag, lambda n: ((tokens(n, length=4),), {}), sites=1
    ),
    Specimen(
        "float64", lambda: mlp().double(), features(D, dtype=torch.float64), sites=2
    ),
    Specimen(
        "bfloat16",
        lambda: mlp().bfloat16(),
        features(D, dtype=torch.bfloat16),
        sites=2,
        rounding=3e-2,
    ),
]
