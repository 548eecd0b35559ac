"""Small models on which tools for MC dropout go wrong, most of them in silence."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _NormBase

from benchmarks.models import bert, frozen

WIDTH = 16
RATE = 0.5


@dataclass(frozen=True)
class Awkward:
    """A model that takes one tensor and returns one."""

    name: str
    build: Callable[[], nn.Module]
    event: tuple[int, ...] = (WIDTH,)

    def make(self) -> tuple[nn.Module, Tensor]:
        """Return the model in eval mode, always the same, and an input of 8 rows."""
        generator = torch.Generator().manual_seed(1)
        return frozen(self.build), torch.randn(8, *self.event, generator=generator)


def everything_but_norms_on(model: nn.Module) -> None:
    """Put all in train mode but BatchNorm: every site on, for these models."""
    for module in model.modules():
        module.training = not isinstance(module, _NormBase)


class FunctionalDropout(nn.Module):
    """Dropout by function, as many a forward has it."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """Drop, then multiply."""
        found: Tensor = self.linear(F.dropout(x, RATE, self.training))
        return found


class Recurrent(nn.Module):
    """Dropout between the layers of an LSTM, and maybe a dropout module behind it."""

    def __init__(self, *head: nn.Module) -> None:
        super().__init__()
        self.lstm = nn.LSTM(WIDTH, WIDTH, 2, dropout=RATE, batch_first=True)
        self.head = nn.Sequential(*head)

    def forward(self, x: Tensor) -> Tensor:
        """Return the states of the upper layer."""
        states, _ = self.lstm(x)
        found: Tensor = self.head(states)
        return found


class Attention(nn.Module):
    """Dropout inside nn.MultiheadAttention."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, 2, dropout=RATE, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        """Attend to itself."""
        found: Tensor = self.attention(x, x, x)[0]
        return found


class ScaledDotProduct(nn.Module):
    """A caller that sets the rate to 0 by itself outside training."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """Attend to itself."""
        query, key, value = self.project(x).chunk(3, dim=-1)
        rate = RATE if self.training else 0.0
        return F.scaled_dot_product_attention(query, key, value, dropout_p=rate)


class AttentionOnlyBert(nn.Module):
    """Hugging Face BERT whose only dropout is that of the attention."""

    def __init__(self) -> None:
        super().__init__()
        self.bert = bert(
            num_hidden_layers=2,
            hidden_size=WIDTH,
            num_attention_heads=2,
            intermediate_size=2 * WIDTH,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=RATE,
        )

    def forward(self, x: Tensor) -> Tensor:
        """Read embeddings, so that the input is a tensor of floats as elsewhere."""
        found: Tensor = self.bert(inputs_embeds=x).last_hidden_state
        return found


def _norm() -> nn.Module:
    return nn.Sequential(
        nn.Linear(WIDTH, WIDTH),
        nn.BatchNorm1d(WIDTH),
        nn.Dropout(RATE),
        nn.Linear(WIDTH, WIDTH),
    )


def _encoder() -> nn.Module:
    layer = nn.TransformerEncoderLayer(WIDTH, 2, 32, dropout=RATE, batch_first=True)
    return nn.TransformerEncoder(layer, 2)


def _channels() -> nn.Module:
    return nn.Sequential(nn.Conv1d(4, 8, 3), nn.Dropout1d(RATE), nn.Conv1d(8, 4, 3))


def _alpha() -> nn.Module:
    return nn.Sequential(
        nn.Linear(WIDTH, WIDTH),
        nn.SELU(),
        nn.AlphaDropout(RATE),
        nn.Linear(WIDTH, WIDTH),
    )


_SEQUENCE = (6, WIDTH)

AWKWARD: tuple[Awkward, ...] = (
    Awkward("nn.Dropout beside BatchNorm", _norm),
    Awkward("F.dropout(training=self.training)", FunctionalDropout),
    Awkward("nn.LSTM(dropout=)", Recurrent, _SEQUENCE),
    Awkward("nn.MultiheadAttention(dropout=)", Attention, _SEQUENCE),
    Awkward("nn.TransformerEncoder", _encoder, _SEQUENCE),
    Awkward("SDPA, p if self.training else 0", ScaledDotProduct, _SEQUENCE),
    Awkward("nn.Dropout1d", _channels, (4, WIDTH)),
    Awkward("nn.AlphaDropout", _alpha),
    Awkward("HF BERT, attention dropout", AttentionOnlyBert, _SEQUENCE),
    Awkward("nn.LSTM + nn.Dropout(0.1)", lambda: Recurrent(nn.Dropout(0.1)), _SEQUENCE),
)
