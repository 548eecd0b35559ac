"""Small models of many kinds, each with an example and what is asked of it."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from caveat import noise

MODELS: dict[str, Callable[[], "Case"]] = {}


@dataclass
class Case:
    """A model, an example, and arguments of ``export``."""

    model: nn.Module
    example: Any
    asked: dict[str, Any] = field(default_factory=dict)
    batch_dim: int = 0


def case(make: Callable[[], Case]) -> Callable[[], Case]:
    """Known by its name; weights and example are the same each time."""

    def made() -> Case:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            found = make()
        found.model.eval()
        return found

    MODELS[make.__name__] = made
    return made


def chain(outputs: int = 2) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(4, 12),
        nn.ReLU(),
        nn.Dropout(0.1),
        nn.Linear(12, 9),
        nn.Tanh(),
        nn.Dropout(0.3),
        nn.Linear(9, outputs),
    )


@case
def perceptron() -> Case:
    asked = {"outputs": ("mean", "std", "draws"), "precision": 4.0}
    return Case(chain(), torch.randn(5, 4), asked)


@case
def lenet() -> Case:
    net = nn.Sequential(
        nn.Conv2d(1, 4, 5),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 6, 3),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(6 * 2 * 2, 12),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(12, 3),
    )
    asked = {"outputs": ("probs", "entropy", "mutual_information", "label")}
    return Case(net, torch.randn(4, 1, 16, 16), asked)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(6, 6, 3, padding=1, bias=False)
        self.second = nn.Conv2d(6, 6, 3, padding=1)
        self.norms = nn.ModuleList(nn.BatchNorm2d(6) for _ in range(2))
        self.drop = nn.Dropout2d(0.2)

    def forward(self, x: Tensor) -> Tensor:
        inner = F.relu(self.norms[0](self.first(x)), inplace=True)
        return F.relu(x + self.norms[1](self.second(self.drop(inner))))


@case
def resnet() -> Case:
    pool = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(6, 4)
    net = nn.Sequential(nn.Conv2d(3, 6, 3, stride=2), Block(), Block(), *pool)
    return Case(net, torch.randn(3, 3, 12, 12), {"outputs": ("probs", "draws")})


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(1, 4, 3, padding=1)
        self.inner = nn.Conv2d(4, 8, 3, padding=1)
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.out = nn.Conv2d(8, 2, 1)
        self.drop = nn.Dropout2d(0.3)

    def forward(self, x: Tensor) -> Tensor:
        wide = F.relu(self.down(x))
        deep = self.drop(F.relu(self.inner(F.max_pool2d(wide, 2))))
        return self.out(self.drop(torch.cat([wide, self.up(deep)], 1)))


@case
def unet() -> Case:
    asked = {"outputs": ("probs", "mutual_information"), "class_dim": 1}
    return Case(UNet(), torch.randn(3, 1, 8, 8), asked)


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.RNNBase], **options: Any) -> None:
        super().__init__()
        self.layers = kind(3, 5, 2, dropout=0.3, **options)
        self.last = nn.Linear(10 if options.get("bidirectional") else 5, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.layers(x)[0])


@case
def lstm() -> Case:
    return Case(Recurrent(nn.LSTM, batch_first=True), torch.randn(4, 3, 3))


@case
def gru() -> Case:
    """Sequences first, both directions."""
    net = Recurrent(nn.GRU, bidirectional=True)
    return Case(net, torch.randn(3, 4, 3), batch_dim=1)


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.2, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.last = nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.encoder(x).mean(1))


@case
def transformer_encoder() -> Case:
    return Case(Encoder(), torch.randn(4, 5, 8))


@case
def bert() -> Case:
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=16,
        num_labels=3,
    )
    mask = (torch.arange(7) < torch.tensor([[7], [5], [7], [3]])).long()
    example = {"input_ids": torch.randint(50, (4, 7)), "attention_mask": mask}
    asked = {"outputs": ("probs", "mutual_information")}
    return Case(BertForSequenceClassification(config), example, asked)


@case
def gpt2() -> Case:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=40, n_positions=16, n_embd=16, n_layer=1, n_head=2, use_cache=False
    )
    example = {"input_ids": torch.randint(40, (3, 6))}
    return Case(GPT2LMHeadModel(config), example, {"outputs": ("probs", "entropy")})


@case
def vit() -> Case:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        image_size=8,
        patch_size=4,
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1,
        num_labels=3,
    )
    asked = {"outputs": ("probs", "expected_entropy")}
    return Case(ViTForImageClassification(config), torch.randn(3, 3, 8, 8), asked)


@case
def gaussian_noise() -> Case:
    inside = noise.GaussianNoise(0.3)
    net = nn.Sequential(nn.Linear(4, 12), nn.ReLU(), inside, nn.Linear(12, 2))
    return Case(net, torch.randn(5, 4))


@case
def dropconnect() -> Case:
    net = nn.Sequential(nn.Linear(4, 12), nn.ReLU(), nn.Linear(12, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it was not trained with this noise
        net = noise.insert(net, noise.DropConnect(drop_rate=0.2))
    return Case(net, torch.randn(5, 4))


class NoiseHeadNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 12), nn.ReLU(), nn.Dropout(0.2))
        self.mean, self.log_precision = nn.Linear(12, 1), nn.Linear(12, 1)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        inner = self.body(x)
        return {"mean": self.mean(inner), "precision": self.log_precision(inner).exp()}


@case
def noise_head() -> Case:
    asked = {"output": lambda out: torch.cat([out["mean"], out["precision"]], -1)}
    return Case(NoiseHeadNet(), torch.randn(5, 4), asked)


class Together(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.members = nn.ModuleList(chain() for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([net(x) for net in self.members], 1)


@case
def ensemble() -> Case:
    return Case(Together(), torch.randn(5, 4))


class ManyInputs(nn.Module):
    """Tensors of several kinds, one for all rows; functional dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(3, 8), nn.Linear(2, 8)
        self.kinds, self.last = nn.Embedding(5, 8), nn.Linear(8, 1)

    def forward(self, x: Tensor, side: Tensor, kind: Tensor, scale: Tensor) -> Tensor:
        inner = self.left(x) + self.right(side) + self.kinds(kind)
        return self.last(F.dropout(torch.relu(inner), 0.3, self.training)) * scale


@case
def many_inputs() -> Case:
    tensors = torch.randn(4, 3), torch.randn(4, 2), torch.randint(5, (4,))
    return Case(ManyInputs(), (*tensors, torch.tensor([2.0])))


class OtherNoise(nn.Module):
    """Stochastic depth, alpha dropout, normal, uniform and exponential numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        inner = torch.relu(self.first(x))
        inner = inner * torch.bernoulli(torch.full((inner.shape[0], 1), 0.7)) / 0.7
        inner = F.alpha_dropout(inner, 0.2, training=True)
        inner = inner + 0.1 * torch.randn_like(inner) + 0.1 * torch.rand_like(inner)
        return self.last(inner + 0.1 * torch.empty_like(inner).exponential_())


@case
def other_noise() -> Case:
    return Case(OtherNoise(), torch.randn(5, 4))


@case
def double_precision() -> Case:
    asked = {"outputs": ("mean", "epistemic_variance", "variance")}
    return Case(chain().double(), torch.randn(5, 4, dtype=torch.float64), asked)
