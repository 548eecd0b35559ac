"""Memory traps: in-place writes, views, buffers, caches, mutated inputs.

A sampler that reuses what does not depend on a draw must notice that each of these
changes a tensor after it was read, or before it is read again.
"""

import torch
import torch.nn.functional as F
from torch import nn

from tests.zoo.feedforward import Between
from tests.zoo.specimen import Specimen, features

D, H = 5, 8


class TwoHeads(Between):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.4)
        self.other = nn.Linear(H, 2)


class LateRelu(TwoHeads):
    """Dropout reads ``h``, then ``h`` is rectified in place."""

    def forward(self, x):
        h = self.first(x)
        dropped = self.drop(h)
        h.relu_()
        return self.last(dropped) + self.other(h)


class LateReluBefore(TwoHeads):
    """As LateRelu, but the drawn product is taken only after the write."""

    def forward(self, x):
        h = self.first(x)
        keep = self.drop(torch.ones_like(h))
        late = h * keep
        h.relu_()
        return self.last(late) + self.other(h * keep)


class AddsToItself(TwoHeads):
    def forward(self, x):
        h = self.first(x)
        h += self.drop(h)
        return self.last(h)


class WritesThroughView(TwoHeads):
    def forward(self, x):
        h = self.first(x)
        left = h[:, : H // 2]
        left.mul_(self.drop(torch.ones_like(left)))
        return self.last(h)


class WritesThroughTwoViews(TwoHeads):
    """A view taken before the write sees it; a clone taken before does not."""

    def forward(self, x):
        h = self.first(x)
        earlier, copy = h.view(len(h), 2, -1), h.clone()
        h.t()[0].copy_(self.drop(h)[:, 1])
        return self.last(earlier.flatten(1)) + self.other(copy)


class SetsItems(TwoHeads):
    def forward(self, x):
        h = self.first(x)
        h[:, ::2] = self.drop(h)[:, 1::2]
        h[:, -1] = 0.5
        return self.last(h)


class FillsZeros(TwoHeads):
    """A clean tensor made inside, filled piece by piece with drawn values."""

    def forward(self, x):
        h = self.first(x)
        out = torch.zeros(len(x), 3, H)
        for i in range(3):
            out[:, i] = self.drop(h) * (i + 1)
        return self.last(out.sum(1))


class PutsByIndex(TwoHeads):
    def forward(self, x):
        h = self.first(x)
        place = torch.tensor([0, 3, 3, 5])
        h.index_add_(1, place, self.drop(h)[:, :4])
        h.masked_fill_(x[:, :1] > 1, 0.1)
        return self.last(h)


class WritesOut(TwoHeads):
    def forward(self, x):
        h = self.first(x)
        result = torch.empty_like(h)
        torch.add(h, self.drop(h), out=result)
        torch.mul(result, 0.5, out=h)
        return self.last(result) + self.other(h)


class ScratchBuffer(TwoHeads):
    """A registered buffer that every pass overwrites with drawn values."""

    def __init__(self):
        super().__init__()
        self.register_buffer("scratch", torch.zeros(H))

    def forward(self, x):
        h = self.drop(self.first(x))
        rows = []
        for row in h:
            torch.mul(row, 2.0, out=self.scratch)
            rows.append(self.scratch.clone())
        return self.last(torch.stack(rows))


class CountsSteps(TwoHeads):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.register_buffer("average", torch.zeros(H))
        self.calls = 0

    def forward(self, x):
        self.steps += 1
        self.calls += 1
        h = self.drop(self.first(x))
        self.average.mul_(0.9).add_(h.detach().mean(0), alpha=0.1)
        return self.last(h)


class MutatesInput(TwoHeads):
    def forward(self, x):
        x.mul_(2.0)
        x[:, 0] = 1.0
        x += self.drop(x)
        return self.last(self.first(x))


class ClampsParameter(TwoHeads):
    """Rewrites its own weights at every pass (as projected methods do)."""

    def forward(self, x):
        self.first.weight.data.clamp_(-0.1, 0.1)
        return self.last(self.drop(self.first(x)))


class CachesOnSelf(TwoHeads):
    """Keeps the drawn activation, and reads it back within the pass."""

    def __init__(self):
        super().__init__()
        self.seen = None
        self.history = []

    def forward(self, x):
        self.seen = self.drop(self.first(x))
        self.history.append(self.seen)
        self.new_name = self.seen.sum()
        return self.last(self.seen)


class DetachesAndRewrites(TwoHeads):
    def forward(self, x):
        h = self.first(x)
        dropped = self.drop(h)
        h.detach().zero_()
        return self.last(dropped) + self.other(h)


class ReadsBetweenWrites(TwoHeads):
    """Clean write, drawn read, clean write, drawn read: two versions of one tensor."""

    def forward(self, x):
        h = self.first(x)
        once = F.dropout(h, 0.4, self.training)
        h.add_(1.0)
        twice = F.dropout(h, 0.4, self.training)
        h.zero_()
        return self.last(once) + self.other(twice) + h[:, :2]


class SplitsAndSwaps(TwoHeads):
    def forward(self, x):
        h = self.first(x)
        a, b = h.chunk(2, dim=-1)
        a.copy_(self.drop(b))
        b.neg_()
        return self.last(h)


class ReturnsTheInput(TwoHeads):
    """An output that aliases the input, beside a drawn one."""

    def forward(self, x):
        return self.last(self.drop(self.first(x))), x[:, :2]


X = features(D)

SPECIMENS = [
    Specimen("late_relu", LateRelu, X, sites=1),
    Specimen("late_relu_mask_first", LateReluBefore, X, sites=1),
    Specimen("adds_to_itself", AddsToItself, X, sites=1),
    Specimen("writes_through_view", WritesThroughView, X, sites=1),
    Specimen("writes_through_two_views", WritesThroughTwoViews, X, sites=1),
    Specimen("sets_items", SetsItems, X, sites=1),
    Specimen("fills_zeros", FillsZeros, X, sites=3),
    Specimen("puts_by_index", PutsByIndex, X, sites=1),
    Specimen("writes_out", WritesOut, X, sites=1),
    Specimen("scratch_buffer", ScratchBuffer, X, sites=1),
    Specimen("counts_steps", CountsSteps, X, sites=1),
    Specimen("mutates_input", MutatesInput, X, sites=1),
    Specimen("clamps_parameter", ClampsParameter, X, sites=1),
    Specimen("caches_on_self", CachesOnSelf, X, sites=1),
    Specimen("detaches_and_rewrites", DetachesAndRewrites, X, sites=1),
    Specimen("reads_between_writes", ReadsBetweenWrites, X, sites=2),
    Specimen("splits_and_swaps", SplitsAndSwaps, X, sites=1),
    Specimen("returns_the_input", ReturnsTheInput, X, sites=1),
]
