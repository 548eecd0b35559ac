"""The networks of the latency cases: small ones, asked for a row or a few at a time."""

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from benchmarks import models
from caveat._optional import require

WIDTH = 64


def mlp(*, drop_rate: float = 0.1) -> nn.Sequential:
    """Build 10-100-100-1 with dropout before every layer but the first."""
    return nn.Sequential(
        nn.Linear(10, 100),
        nn.ReLU(),
        nn.Dropout(drop_rate),
        nn.Linear(100, 100),
        nn.ReLU(),
        nn.Dropout(drop_rate),
        nn.Linear(100, 1),
    )


class LSTMClassifier(nn.Module):
    """Two layers, dropout between them and before the head."""

    def __init__(self, inputs: int = 16, classes: int = 5) -> None:
        super().__init__()
        self.net = nn.LSTM(inputs, WIDTH, 2, batch_first=True, dropout=0.3)
        self.drop, self.head = nn.Dropout(0.3), nn.Linear(WIDTH, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Read the last step."""
        y, _ = self.net(x)
        return self.head(self.drop(y[:, -1]))


class DropThenPack(nn.Module):
    """Dropout on a padded sequence, which is then packed for an LSTM."""

    def __init__(self, inputs: int = 16, classes: int = 5) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.3)
        self.net = nn.LSTM(inputs, WIDTH, batch_first=True)
        self.head = nn.Linear(WIDTH, classes)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Read the last state of each row."""
        packed = pack_padded_sequence(
            self.drop(x), lengths, batch_first=True, enforce_sorted=False
        )
        _, (h, _) = self.net(packed)
        return self.head(h[-1])


class EarlyExit(nn.Module):
    """A head after every block; the first that is sure of all rows answers."""

    def __init__(self, inputs: int = 16, classes: int = 5, blocks: int = 4) -> None:
        super().__init__()
        self.first = nn.Linear(inputs, WIDTH)
        self.blocks = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(blocks))
        self.heads = nn.ModuleList(nn.Linear(WIDTH, classes) for _ in range(blocks))
        self.drop = nn.Dropout(0.3)

    def forward(self, x: Tensor) -> Tensor:
        """Leave as soon as the least sure row has a class that is likely."""
        h = self.first(x)
        for block, head in zip(self.blocks, self.heads, strict=True):
            h = self.drop(torch.relu(block(h)))
            logits: Tensor = head(h)
            if logits.softmax(-1).amax(-1).min() > 0.25:
                break
        return logits


class EnergyAndForces(nn.Module):
    """An energy and its derivative, by autograd in the forward."""

    def __init__(self, inputs: int = 12) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(inputs, WIDTH),
            nn.Tanh(),
            nn.Dropout(0.1),
            nn.Linear(WIDTH, WIDTH),
            nn.Tanh(),
            nn.Dropout(0.1),
            nn.Linear(WIDTH, 1),
        )

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """Energies of the rows and the forces on their coordinates."""
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            energy = self.net(x)
            (slope,) = torch.autograd.grad(energy.sum(), x)
        return {"energy": energy.detach(), "forces": -slope}


def bert() -> nn.Module:
    """Build a 2-layer BERT of width 64, dropout 0.1 at every site."""
    return models.bert(
        vocab_size=1000,
        num_hidden_layers=2,
        hidden_size=WIDTH,
        num_attention_heads=4,
        intermediate_size=4 * WIDTH,
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1,
    )


def bart() -> nn.Module:
    """Build a BART of 2 + 2 layers of width 64."""
    transformers = require("transformers", extra="hf")
    config = transformers.BartConfig(
        vocab_size=1000, max_position_embeddings=64, **_encoder_decoder()
    )
    model: nn.Module = transformers.BartModel(config)
    return model


def whisper() -> nn.Module:
    """Build a Whisper of 2 + 2 layers of width 64, for 60 frames of 16 bands."""
    transformers = require("transformers", extra="hf")
    config = transformers.WhisperConfig(
        vocab_size=1000,
        num_mel_bins=16,
        max_source_positions=30,
        max_target_positions=32,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        **_encoder_decoder(),
    )
    model: nn.Module = transformers.WhisperModel(config)
    return model


def _encoder_decoder() -> dict[str, float]:
    return {
        "d_model": WIDTH,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 2 * WIDTH,
        "decoder_ffn_dim": 2 * WIDTH,
        "dropout": 0.1,
        "attention_dropout": 0.1,
        "activation_dropout": 0.1,
        "encoder_layerdrop": 0.0,
        "decoder_layerdrop": 0.0,
        "use_cache": False,
    }


def wav2vec2() -> nn.Module:
    """Build a Wav2Vec2 of 2 layers of width 64; no layers dropped, no input masked."""
    transformers = require("transformers", extra="hf")
    config = transformers.Wav2Vec2Config(
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=2 * WIDTH,
        conv_dim=(32, 32),
        conv_stride=(5, 2),
        conv_kernel=(10, 3),
        num_feat_extract_layers=2,
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=2,
        hidden_dropout=0.1,
        attention_dropout=0.1,
        activation_dropout=0.1,
        feat_proj_dropout=0.1,
        layerdrop=0.0,
        apply_spec_augment=False,
    )
    model: nn.Module = transformers.Wav2Vec2Model(config)
    return model
