"""The networks of the workloads: random but fixed weights, eval mode."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from caveat._optional import require


def frozen(build: Callable[[], nn.Module], *, seed: int = 0) -> nn.Module:
    """Build a network with the weights that ``seed`` gives, in eval mode."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build().eval()


def lenet(*, dropout_everywhere: bool) -> nn.Sequential:
    """Build LeNet for 28x28 images, dropout 0.5 before its last layer, or before all.

    "All" means every weight layer but the first, as in paper 001.
    """

    def early_dropout() -> list[nn.Module]:
        return [nn.Dropout(0.5)] if dropout_everywhere else []

    return nn.Sequential(
        nn.Conv2d(1, 20, 5),
        nn.MaxPool2d(2),
        *early_dropout(),
        nn.Conv2d(20, 50, 5),
        nn.MaxPool2d(2),
        nn.Flatten(),
        *early_dropout(),
        nn.Linear(800, 500),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(500, 10),
    )


def deep_mlp(*, drop_rate: float, hidden: int = 1024, depth: int = 5) -> nn.Sequential:
    """Build 1 -> ``depth`` x ``hidden`` ReLU -> 1, dropout before all but the first."""
    layers: list[nn.Module] = [nn.Linear(1, hidden), nn.ReLU()]
    for _ in range(depth - 1):
        layers += [nn.Dropout(drop_rate), nn.Linear(hidden, hidden), nn.ReLU()]
    return nn.Sequential(*layers, nn.Dropout(drop_rate), nn.Linear(hidden, 1))


def uci_net(*, drop_rate: float = 0.05) -> nn.Sequential:
    """Build the 13-50-1 net of the UCI experiments, dropout on the input as well."""
    return nn.Sequential(
        nn.Dropout(drop_rate),
        nn.Linear(13, 50),
        nn.ReLU(),
        nn.Dropout(drop_rate),
        nn.Linear(50, 1),
    )


def small_bert() -> nn.Module:
    """Build a 4-layer BERT encoder of width 256, dropout 0.1 at every site."""
    return bert(
        num_hidden_layers=4,
        hidden_size=256,
        num_attention_heads=4,
        intermediate_size=1024,
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1,
    )


def bert(**config: float) -> nn.Module:
    """Build a Hugging Face BERT with random weights."""
    transformers = require("transformers", extra="hf")  # slow to import: only if asked
    model: nn.Module = transformers.BertModel(transformers.BertConfig(**config))
    return model


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut, the basic block of ResNet-18."""

    def __init__(self, inputs: int, outputs: int, *, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False),
                nn.BatchNorm2d(outputs),
            )

    def forward(self, x: Tensor) -> Tensor:
        """Add the shortcut to the body, then ReLU."""
        return torch.relu(self.body(x) + self.shortcut(x))


def resnet18(*, drop_rate: float = 0.5, classes: int = 10) -> nn.Sequential:
    """Build a ResNet-18 with dropout before its last layer only."""
    widths = [64, 64, 64, 128, 128, 256, 256, 512, 512]
    strides = [1, 1, 2, 1, 2, 1, 2, 1]
    blocks = [
        ResidualBlock(inputs, outputs, stride=stride)
        for inputs, outputs, stride in zip(widths, widths[1:], strides, strict=False)
    ]
    return nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, padding=3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, padding=1),
        *blocks,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Dropout(drop_rate),
        nn.Linear(512, classes),
    )
