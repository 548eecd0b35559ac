"""Operations with an inside: branches, transforms, operators, tensor subclasses."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.ao.quantization import quantize_dynamic
from torch.utils.checkpoint import checkpoint

from tests.zoo.control import D, Drawn
from tests.zoo.control import X as VECTORS
from tests.zoo.specimen import Specimen, features, lengths, normal

# ------------------------------------------------------------ attention


class AttentionWithoutDropout(nn.Module):
    """Dropout elsewhere: under gradients torch takes a fused kernel that could drop."""

    def __init__(self, *, heads: int | None = 2, rate: float = 0.0):
        super().__init__()
        self.heads, self.rate = heads, rate
        self.qkv, self.last = nn.Linear(8, 24), nn.Linear(8, 2)
        self.drop = nn.Dropout(0.4)

    def forward(self, x):
        q, k, v = self.qkv(self.drop(x)).chunk(3, -1)
        rate = self.rate if self.training else 0.0
        if self.heads is None:  # row by row, as 2-D tensors
            triples = zip(q, k, v, strict=True)
            mixed = [F.scaled_dot_product_attention(*t, None, rate) for t in triples]
            return self.last(torch.stack(mixed)).mean(1)
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=rate, is_causal=True)
        return self.last(y.transpose(1, 2).flatten(2)).mean(1)


class FlexAttention(AttentionWithoutDropout):
    def forward(self, x):
        from torch.nn.attention.flex_attention import flex_attention

        def further_is_less(score, batch, head, q, k):
            return score - (q - k).abs()

        q, k, v = self.qkv(self.drop(x)).chunk(3, -1)
        q, k, v = (t.unsqueeze(1) for t in (q, k, v))
        y = flex_attention(q, k, v, score_mod=further_is_less).squeeze(1)
        return self.last(y).mean(1)


# ------------------------------------------------------------ branches and transforms


class Branch(Drawn):
    """torch.cond: the branch is chosen by the input, and draws."""

    def forward(self, x):
        h = self.first(x)
        shifted = x.abs().sum() > -1.0
        return self.last(torch.cond(shifted, self.drop, torch.relu, (h,)))


class DrawnBranch(Drawn):
    def forward(self, x):
        h = self.hidden(x)
        return self.last(torch.cond(h.sum() > 0, torch.tanh, torch.relu, (h,)))


class Loop(Drawn):
    def forward(self, x):
        from torch._higher_order_ops.while_loop import while_loop

        start = (torch.tensor(0), self.hidden(x))
        _, h = while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, h.tanh()), start)
        return self.last(h)


class Jacobian(Drawn):
    def forward(self, x):
        slopes = torch.func.jacrev(lambda row: self.first(row).tanh())
        return self.last(torch.func.vmap(slopes)(F.dropout(x, 0.3)).sum(-1))


class Tangent(Drawn):
    def forward(self, x):
        h = self.hidden(x)
        value, slope = torch.func.jvp(torch.sin, (h,), (torch.ones_like(h),))
        return self.last(value + slope)


class RelyingOnGradients(Drawn):
    """Differentiates, and leaves it to the caller to have gradients on."""

    def forward(self, x):
        x = x.detach().requires_grad_()
        energy = self.last(self.hidden(x).tanh()).sum()
        return torch.autograd.grad(energy, x, create_graph=True)[0]


class RunsBackward(Drawn):
    def forward(self, x):
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            self.last(self.hidden(x).tanh()).sum().backward(inputs=[x])
        return x.grad


class ReentrantCheckpoint(Drawn):
    def forward(self, x):
        return self.last(checkpoint(self.hidden, x, use_reentrant=True))


# ------------------------------------------------------------ operators


@torch.library.custom_op("caveat_zoo::doubled", mutates_args=())
def doubled(x: Tensor) -> Tensor:
    return 2.0 * x


@torch.library.custom_op("caveat_zoo::shift_", mutates_args={"x"})
def shift_(x: Tensor) -> None:
    x.add_(1.0)


doubled.register_autograd(lambda ctx, grad: 2.0 * grad)


class CustomOperator(Drawn):
    def forward(self, x):
        return self.last(doubled(self.hidden(x)))


class WritingOperator(Drawn):
    """It writes to its argument and returns nothing."""

    def forward(self, x):
        h, x = self.hidden(x).detach(), x.clone()
        shift_(h)
        shift_(x)
        return self.last(h) + x[:, :1]


# ------------------------------------------------------------ tensors of other kinds


class Eighth(Tensor):
    """A weight in eighths: a tensor that takes operations apart itself."""

    @staticmethod
    def __new__(cls, eighths: Tensor):
        kind = {"dtype": torch.float32}
        return Tensor._make_wrapper_subclass(cls, eighths.shape, **kind)

    def __init__(self, eighths: Tensor):
        self.eighths = eighths

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func is torch.ops.aten.detach.default:
            return cls(args[0].eighths)
        plain = [x.eighths / 8.0 if isinstance(x, cls) else x for x in args]
        return func(*plain, **(kwargs or {}))


class WeightOfAnotherKind(Drawn):
    def __init__(self):
        super().__init__()
        eighths = (8.0 * self.last.weight.detach()).round().to(torch.int8)
        self.last.weight = nn.Parameter(Eighth(eighths), requires_grad=False)

    def forward(self, x):
        return self.last(self.hidden(x))


class Jagged(Drawn):
    """Rows of different lengths as one jagged tensor."""

    def forward(self, x, sizes):
        rows = [row[:size] for row, size in zip(x, sizes.tolist(), strict=True)]
        ragged = torch.nested.as_nested_tensor(rows, layout=torch.jagged)
        h = self.last(self.drop(self.first(ragged).relu()))
        return h.to_padded_tensor(0.0).sum(1)


class Ragged(Jagged):
    """As nested tensors were at first."""

    def forward(self, x, sizes):
        rows = [row[:size] for row, size in zip(x, sizes.tolist(), strict=True)]
        h = self.last(self.drop(self.first(torch.nested.as_nested_tensor(rows))))
        return h.to_padded_tensor(0.0).sum(1)


def ragged(n: int):
    return (normal(16, 4, D)[:n], lengths(n, longest=4)), {}


class Spectrum(Drawn):
    """Complex numbers that are drawn."""

    def forward(self, x):
        waves = torch.fft.rfft(self.hidden(x))
        turned = waves * torch.polar(torch.ones(5), torch.arange(5.0))
        return self.last(torch.fft.irfft(turned, 8)) + turned.abs()[:, :1]


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.reader = nn.LSTM(D, 6, 2, dropout=0.4, batch_first=True)
        self.drop, self.last = nn.Dropout(0.3), nn.Linear(6, 2)

    def forward(self, x):
        return self.last(self.drop(self.reader(x)[0][:, -1]))


def quantised() -> nn.Module:
    return quantize_dynamic(Reader(), {nn.LSTM, nn.Linear}, dtype=torch.qint8)


NESTED = "The PyTorch API of nested tensors is in prototype stage"
OLD = "torch.ao.quantization is deprecated"
SEQUENCE = features(3, 8)

SPECIMENS = [
    Specimen("sdpa_without_dropout", AttentionWithoutDropout, SEQUENCE, sites=1),
    Specimen(
        "sdpa_two_dimensional",
        lambda: AttentionWithoutDropout(heads=None, rate=0.3),
        SEQUENCE,
        fixed_sites=False,
        filter_warnings=("AttentionWithoutDropout draws noise",),
    ),
    Specimen(
        "flex_attention",
        FlexAttention,
        SEQUENCE,
        reaches_python=True,
        filter_warnings=("(?s).*flex_attention called without torch.compile",),
    ),
    Specimen("cond", Branch, VECTORS, sites=1),
    Specimen("cond_drawn", DrawnBranch, VECTORS, row_wise=False, reaches_python=True),
    Specimen("while_loop", Loop, VECTORS, sites=1),
    Specimen("jacobian", Jacobian, VECTORS, sites=1, fires_in_eval=True),
    Specimen(
        "tangent",
        Tangent,
        VECTORS,
        sites=1,
        reaches_python=True,
        filter_warnings=(".*torch.jit.script",),
    ),
    Specimen(
        "relying_on_gradients",
        RelyingOnGradients,
        VECTORS,
        sites=1,
        reaches_python=True,
        reference=lambda model: torch.enable_grad()(lambda x: model(x).detach()),
        needs_gradients=True,
    ),
    Specimen("runs_backward", RunsBackward, VECTORS, sites=1, reaches_python=True),
    Specimen(
        "checkpointed_reentrant",
        ReentrantCheckpoint,
        VECTORS,
        sites=1,
        filter_warnings=("None of the inputs have requires_grad=True",),
    ),
    Specimen("custom_operator", CustomOperator, VECTORS, sites=1),
    Specimen("writing_operator", WritingOperator, VECTORS, sites=1),
    Specimen("weight_of_another_kind", WeightOfAnotherKind, VECTORS, sites=1),
    Specimen(
        "jagged",
        Jagged,
        ragged,
        sites=1,
        row_wise=False,
        fixed_sites=False,
        filter_warnings=(NESTED, ".* are not independent of each other"),
    ),
    Specimen("ragged", Ragged, ragged, may_refuse=True, filter_warnings=(NESTED,)),
    Specimen("spectrum", Spectrum, VECTORS, sites=1),
    Specimen(
        "quantised",
        quantised,
        features(4, D),
        rounding=2e-2,
        sites=2,
        row_wise=False,
        filter_warnings=(OLD, ".*"),
    ),
]
