"""Rows that are pooled, compared, gathered or packed: no masks to be shared there."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from tests.zoo.feedforward import Between
from tests.zoo.specimen import POOL, Inputs, Specimen, features, normal

D, H = 5, 8
MIXED = ("The rows of",)
ASTRAY = (".* draws noise at",)


class Pools(Between):
    """Dropout on instances, then one answer for the bag."""

    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.4)

    def hidden(self, x: Tensor) -> Tensor:
        return self.drop(self.first(x).relu())

    def pool(self, h: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, x):
        return self.last(self.pool(self.hidden(x)))


class PoolsMean(Pools):
    def pool(self, h):
        return h.mean(0, keepdim=True)


class PoolsMax(Pools):
    def pool(self, h):
        return h.amax(0, keepdim=True)


class PoolsSum(Pools):
    """No axis is left for the bag."""

    def pool(self, h):
        return h.sum(0)


class PoolsAttention(Pools):
    """Attention-based multiple-instance learning: weights over instances."""

    def pool(self, h):
        weights = h[:, :1].softmax(0)
        return weights.t() @ h


class PoolsTop(Pools):
    """The instance that scores highest speaks for the bag."""

    def pool(self, h):
        return h[h[:, 0].topk(1).indices]


class Broadcasts(Pools):
    """What was pooled goes back to every row, as in deep sets."""

    def pool(self, h):
        return h - h.mean(0)


class BroadcastsMax(Pools):
    def pool(self, h):
        return h + h.amax(0)


class ScaledByRange(Pools):
    """Min-max scaling by the batch."""

    def pool(self, h):
        low, high = h.amin(0), h.amax(0)
        return (h - low) / (high - low + 1)


class Sorts(Pools):
    def pool(self, h):
        return h.sort(0).values


class AttendsOverRows(Pools):
    """A set transformer: rows are the tokens, in two axes, dropout on the weights."""

    def pool(self, h):
        rate = self.rate if self.training else 0.0
        return F.scaled_dot_product_attention(h, h, h, dropout_p=rate)


class InRandomOrder(Pools):
    """Mixup: each row meets another one, in an order that is drawn."""

    def __init__(self, order):
        super().__init__()
        self.order = order

    def pool(self, h):
        return 0.7 * h + 0.3 * h[self.order(len(h))]


class OneScoreForAll(Pools):
    """The largest of a single number: the first row has it half of the time."""

    def forward(self, x):
        h = self.hidden(x)
        return self.last(h) + h.sum(1).amax()


class SegmentBags(Pools):
    """Bags given by an index, as graph networks pool."""

    def forward(self, x, bag):
        h, n_bags = self.hidden(x), int(bag.max()) + 1
        total = torch.zeros(n_bags, H).index_add(0, bag, h)
        count = torch.zeros(n_bags).index_add(0, bag, torch.ones(len(bag)))
        return self.last(total / count[:, None])


class BesideScores(Pools):
    """A loss beside the answers: a mean over rows."""

    def forward(self, x):
        y = self.last(self.hidden(x))
        return y, y.square().mean()[None]


class NoStatistics(Pools):
    """Batch norm that never learned statistics: in evaluation it uses the batch's."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(H, track_running_stats=False)

    def pool(self, h):
        return self.norm(h)


class Experts(Pools):
    """A mixture of experts: each gathers its rows, and drops among them."""

    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(H, H), nn.ReLU(), nn.Dropout(0.4)) for _ in "ab"
        )

    def forward(self, x):
        h = self.first(x)
        out, chosen = torch.zeros_like(h), (x[:, 0] > 0).long()
        for number, expert in enumerate(self.experts):
            rows = (chosen == number).nonzero()[:, 0]
            out[rows] = expert(h[rows])
        return self.last(out)


class DropsInPacked(Pools):
    """Dropout on the data of a packed sequence, whose rows lie in no axis."""

    def forward(self, x, length):
        packed = pack_padded_sequence(x, length, True, enforce_sorted=False)
        packed = PackedSequence(self.hidden(packed.data), *packed[1:])
        y, _ = pad_packed_sequence(packed, True, total_length=x.shape[1])
        return self.last(y.sum(1))


class DropsInUnpadded(Pools):
    """Tokens without padding in one long list, as flash attention wants them."""

    def forward(self, x, length):
        real = torch.arange(x.shape[1]) < length[:, None]
        y = torch.zeros(*real.shape, H)
        y[real] = self.hidden(x[real])
        return self.last(y.sum(1))


class DropsInJoined(Pools):
    """The same from Python's lists of lengths."""

    def forward(self, x, length):
        sizes = length.tolist()
        rows = [row[:size] for row, size in zip(x, sizes, strict=True)]
        parts = self.hidden(torch.cat(rows)).split(sizes)
        return self.last(torch.stack([part.sum(0) for part in parts]))


class DropsInRepeated(Pools):
    """Rows that are there as often as a number says, in all as often as there are."""

    def forward(self, x, length):
        owner = torch.repeat_interleave(torch.arange(len(x)), length - 2)
        y = self.hidden(x[owner, 0])
        return self.last(torch.zeros(len(x), y.shape[1]).index_add(0, owner, y))


class DropsUnpaddedTokens(DropsInUnpadded):
    """Whole tokens of such a list are dropped, by numbers of a size read off it."""

    def hidden(self, x):
        kept = torch.rand(x.shape[0], 1) < 0.6 if self.training else 0.6
        return self.first(x).tanh() * kept


class RowByRow(Pools):
    """A Python loop over rows, each with a call of its own."""

    def forward(self, x):
        return torch.cat([self.last(self.hidden(row[None])) for row in x])


def bags(n: int) -> Inputs:
    return (normal(POOL, D)[:n], torch.arange(POOL)[:n] // 3), {}


def ragged(n: int) -> Inputs:
    length = torch.tensor([3, 2, 4, 3] * (POOL // 4))
    return (normal(POOL, 4, D)[:n], length[:n]), {}


def of_a_mean_length(n: int) -> Inputs:
    """Rows whose lengths are three on average, and those of the first two."""
    length = torch.tensor([3, 3, 2, 4] * (POOL // 4))
    return (normal(POOL, 4, D)[:n], length[:n]), {}


def drawn_order(n: int) -> Tensor:
    return torch.rand(n).argsort()


X = features(D)
PICKED = {
    "inputs": of_a_mean_length,
    "fixed_sites": False,
    "filter_warnings": ASTRAY,
    "n_draws": 1000,
}
PERMUTED = {"sites": 2, "fires_in_eval": True}


def mixed(name: str, make: type, inputs=X, n_rows: int = 7, **options) -> Specimen:
    options = {"sites": 1, "filter_warnings": MIXED, **options}
    return Specimen(name, make, inputs, row_wise=False, n_rows=n_rows, **options)


SPECIMENS = [
    mixed("bag_mean", PoolsMean),
    mixed("bag_max", PoolsMax),
    mixed("bag_sum", PoolsSum),
    mixed("bag_attention", PoolsAttention),
    mixed("bag_top", PoolsTop),
    mixed("bag_segments", SegmentBags, bags),
    mixed("set_mean", Broadcasts),
    mixed("set_max", BroadcastsMax),
    mixed("set_range", ScaledByRange),
    mixed("set_sorted", Sorts),
    mixed("set_attention", AttendsOverRows, sites=2),
    mixed("set_one_score", OneScoreForAll),
    mixed("set_permuted", lambda: InRandomOrder(torch.randperm), **PERMUTED),
    mixed("set_argsort", lambda: InRandomOrder(drawn_order), **PERMUTED),
    mixed("beside_scores", BesideScores),
    mixed("batch_norm_without_statistics", NoStatistics),
    Specimen("experts", Experts, X, sites=2, fixed_sites=False, filter_warnings=ASTRAY),
    Specimen(
        "drops_in_packed",
        DropsInPacked,
        ragged,
        sites=1,
        fixed_sites=False,
        filter_warnings=ASTRAY,
    ),
    Specimen("drops_in_packed_of_a_mean_length", DropsInPacked, **PICKED),
    Specimen("drops_in_unpadded", DropsInUnpadded, **PICKED),
    Specimen("drops_in_joined", DropsInJoined, **PICKED),
    Specimen("drops_in_repeated", DropsInRepeated, **PICKED),
    Specimen("drops_unpadded_tokens", DropsUnpaddedTokens, **PICKED),
    Specimen("row_by_row", RowByRow, X, fixed_sites=False, filter_warnings=ASTRAY),
]
