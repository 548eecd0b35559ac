"""Attention dropout: fused paths, flags inside, heads folded into the batch."""

import torch
import torch.nn.functional as F
from torch import nn

from tests.zoo.specimen import POOL, Specimen, features, normal, padding

E, HEADS = 8, 2


class SelfAttention(nn.Module):
    def __init__(self, need_weights: bool, rate: float = 0.4):
        super().__init__()
        self.attention = nn.MultiheadAttention(E, HEADS, rate, batch_first=True)
        self.need_weights = need_weights
        self.last = nn.Linear(E, 2)

    def forward(self, x):
        y, weights = self.attention(x, x, x, need_weights=self.need_weights)
        y = self.last(y).mean(1)
        return (y, weights) if self.need_weights else y


class Encoder(nn.Module):
    """nn.TransformerEncoder, whose fused eval path contains no dropout at all."""

    def __init__(self, layers: int = 2, **kwargs):
        super().__init__()
        kwargs = {"dropout": 0.3, "batch_first": True} | kwargs
        layer = nn.TransformerEncoderLayer(E, HEADS, 12, **kwargs)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.last = nn.Linear(E, 2)

    def forward(self, x):
        return self.last(self.encoder(x)).mean(1)


class PaddedEncoder(Encoder):
    def forward(self, x, *, real):
        h = self.encoder(x, src_key_padding_mask=~real)
        h = (h * real[:, :, None]).sum(1) / real.sum(1, keepdim=True)
        return self.last(h)


class NestedEncoder(PaddedEncoder):
    """As torch builds it: padding makes the fused path use nested tensors."""

    def __init__(self):
        super().__init__()
        self.encoder.enable_nested_tensor = True
        self.encoder.use_nested_tensor = True


class SequenceFirstEncoder(Encoder):
    """Transposes inside: the batch is the second dimension, whatever its size."""

    def __init__(self):
        super().__init__(layers=1, batch_first=False)

    def forward(self, x):
        return self.last(self.encoder(x.transpose(0, 1))).mean(0)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerDecoderLayer(E, HEADS, 12, 0.3, batch_first=True)
        self.decoder = nn.TransformerDecoder(layer, 1)
        self.last = nn.Linear(E, 2)

    def forward(self, x, memory):
        mask = nn.Transformer.generate_square_subsequent_mask(x.size(1))
        return self.last(self.decoder(x, memory, tgt_mask=mask)).mean(1)


class WholeTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Transformer(E, HEADS, 1, 1, 12, 0.2, batch_first=True)
        self.last = nn.Linear(E, 2)

    def forward(self, x, memory):
        return self.last(self.net(memory, x)).mean(1)


class Fused(nn.Module):
    """scaled_dot_product_attention as timm and Hugging Face call it."""

    def __init__(self, rate: float = 0.4, causal: bool = False):
        super().__init__()
        self.rate, self.causal = rate, causal
        self.qkv = nn.Linear(E, 3 * E)
        self.last = nn.Linear(E, 2)

    def rate_now(self) -> float:
        return self.rate if self.training else 0.0

    def split(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        return (t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in (q, k, v))

    def forward(self, x):
        q, k, v = self.split(x)
        y = F.scaled_dot_product_attention(
            q, k, v, dropout_p=self.rate_now(), is_causal=self.causal
        )
        return self.last(y.transpose(1, 2).flatten(2)).mean(1)


class FusedAlwaysOn(Fused):
    def rate_now(self):
        return self.rate


class FoldedSlow(Fused):
    """Heads folded as (batch·heads): all heads of row 0, then of row 1, …"""

    def forward(self, x):
        q, k, v = (t.flatten(0, 1) for t in self.split(x))
        weights = (q @ k.mT / 2).softmax(-1)
        y = F.dropout(weights, self.rate, self.training) @ v
        y = y.unflatten(0, (-1, HEADS)).transpose(1, 2).flatten(2)
        return self.last(y).mean(1)


class FoldedFast(Fused):
    """Heads folded as (heads·batch), by cat of chunks: all rows of head 0, then …"""

    def forward(self, x):
        q, k, v = (
            torch.cat(t.chunk(HEADS, dim=-1), dim=0) for t in self.qkv(x).chunk(3, -1)
        )
        weights = (q @ k.mT / 2).softmax(-1)
        y = F.dropout(weights, self.rate, self.training) @ v
        return self.last(torch.cat(y.chunk(HEADS, dim=0), dim=-1)).mean(1)


class FoldedFastMask(Fused):
    """As FoldedFast, by a mask made of ones: nothing in it tells rows from heads."""

    def forward(self, x):
        q, k, v = (
            torch.cat(t.chunk(HEADS, dim=-1), dim=0) for t in self.qkv(x).chunk(3, -1)
        )
        weights = (q @ k.mT / 2).softmax(-1)
        mask = F.dropout(torch.ones_like(weights), self.rate, self.training)
        y = (weights * mask) @ v
        return self.last(torch.cat(y.chunk(HEADS, dim=0), dim=-1)).mean(1)


class PatchesInBatch(nn.Module):
    """Windows folded into the batch: (batch·windows, places, units), as in Swin."""

    def __init__(self):
        super().__init__()
        self.inner, self.drop = nn.Linear(E, E), nn.Dropout(0.4)
        self.last = nn.Linear(E, 2)

    def forward(self, x):
        windows = x.unflatten(1, (2, -1)).flatten(0, 1)
        windows = self.drop(self.inner(windows).relu())
        return self.last(windows.unflatten(0, (-1, 2)).flatten(1, 2)).mean(1)


def pair(n: int):
    return (normal(POOL, 3, E)[:n], normal(POOL, 5, E, seed=1)[:n]), {}


def padded(n: int):
    return (normal(POOL, 6, E)[:n],), {"real": padding(n, length=6)}


X = features(3, E)
NESTED = "The PyTorch API of nested tensors is in prototype stage"

SPECIMENS = [
    Specimen("mha_weights", lambda: SelfAttention(True), X, sites=1),
    Specimen("mha", lambda: SelfAttention(False), X, sites=1),
    Specimen("encoder_layer", lambda: Encoder(layers=1), X, sites=4),
    Specimen("encoder", Encoder, X, sites=8, n_draws=200),
    Specimen("encoder_norm_first", lambda: Encoder(1, norm_first=True), X, sites=4),
    Specimen("encoder_gelu", lambda: Encoder(1, activation="gelu"), X, sites=4),
    Specimen("encoder_padded", PaddedEncoder, padded, sites=8, n_draws=200),
    Specimen(
        "encoder_nested",
        NestedEncoder,
        padded,
        sites=8,
        n_draws=200,
        filter_warnings=(NESTED,),
    ),
    Specimen("encoder_square", SequenceFirstEncoder, features(4, E), sites=4),
    Specimen("encoder_twice_as_long", SequenceFirstEncoder, features(8, E), sites=4),
    Specimen("decoder", Decoder, pair, sites=6, n_draws=200),
    Specimen("whole_transformer", WholeTransformer, pair, sites=10, n_draws=200),
    Specimen("sdpa", Fused, X, sites=1),
    Specimen("sdpa_causal", lambda: Fused(causal=True), X, sites=1),
    Specimen("sdpa_always", FusedAlwaysOn, X, sites=1, fires_in_eval=True),
    Specimen("heads_folded_slow", FoldedSlow, X, sites=1),
    Specimen("heads_folded_fast", FoldedFast, X, sites=1),
    Specimen("heads_folded_fast_square", FoldedFast, features(8, E), sites=1),
    Specimen(
        "heads_folded_fast_mask",
        FoldedFastMask,
        X,
        sites=1,
        fixed_sites=False,
        filter_warnings=("FoldedFastMask draws noise at",),
    ),
    Specimen("windows_in_batch", PatchesInBatch, features(4, E), sites=1),
]
