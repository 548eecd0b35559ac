"""Dropout between recurrent layers: one call each, rate and flag inside."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tests.zoo.specimen import POOL, Specimen, features, lengths, normal

D, H, LENGTH = 3, 4, 5


class LastState(nn.Module):
    """A recurrent net read at its last step."""

    def __init__(self, net: nn.RNNBase):
        super().__init__()
        self.net = net
        width = (net.proj_size or net.hidden_size) * (1 + net.bidirectional)
        self.last = nn.Linear(width, 2)

    def forward(self, x):
        return self.last(self.net(x)[0][:, -1])


class SequenceFirst(LastState):
    """The net itself wants (time, batch, units)."""

    def forward(self, x):
        return self.last(self.net(x.transpose(0, 1))[0][-1])


class WithStates(LastState):
    """Returns outputs and final states, the states with their batch moved first."""

    def forward(self, x, h, c):
        start = (h.transpose(0, 1).contiguous(), c.transpose(0, 1).contiguous())
        y, (h, c) = self.net(x, start)
        return self.last(y[:, -1]), (h.transpose(0, 1), c.transpose(0, 1))


class Packed(LastState):
    """Packs inside, from a tensor of lengths in any order."""

    def forward(self, x, length):
        packed = pack_padded_sequence(x, length, True, enforce_sorted=False)
        y, _ = pad_packed_sequence(self.net(packed)[0], True, total_length=x.size(1))
        return self.last(y.sum(1) / length[:, None])


class DropsThenPacks(Packed):
    """Dropout on the embedding: batch sizes hang on lengths, not on what is drawn."""

    def __init__(self, net: nn.RNNBase):
        super().__init__(net)
        self.drop = nn.Dropout(0.3)

    def forward(self, x, length):
        return super().forward(self.drop(x), length)


class PacksForStates(DropsThenPacks):
    """Reads the final state; sorts rows itself and goes by the lengths it gets."""

    def forward(self, x, length):
        order = length.argsort(descending=True)
        packed = pack_padded_sequence(self.drop(x)[order], length[order], True)
        y, (h, _) = self.net(packed)
        y, again = pad_packed_sequence(y, True)
        longest = int(again.max())
        y = y[:, :longest].sum(1) / again[:, None]
        return self.last(y + h[-1])[order.argsort()]


class SentencesFolded(nn.Module):
    """Sentences of a text go through as rows; ``outer_first``: in which order."""

    def __init__(self, kind: type, outer_first: bool):
        super().__init__()
        self.words, self.outer_first = net(kind), outer_first
        self.last = nn.Linear(H, 2)

    def forward(self, x):
        if not self.outer_first:
            x = x.transpose(0, 1)
        outer, inner = x.shape[:2]
        states = self.words(x.flatten(0, 1))[0][:, -1].view(outer, inner, -1)
        return self.last(states).sum(1 if self.outer_first else 0)


class HandWritten(nn.Module):
    """A cell in a Python loop, dropout at every step: one site per step."""

    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(D, H)
        self.drop = nn.Dropout(0.3)
        self.last = nn.Linear(H, 2)

    def forward(self, x):
        h = c = x.new_zeros(len(x), H)
        for step in x.unbind(1):
            h, c = self.cell(step, (self.drop(h), c))
        return self.last(h)


def net(kind: type, layers: int = 2, **kwargs) -> nn.RNNBase:
    kwargs = {"batch_first": True, "dropout": 0.4} | kwargs
    model = kind(D, H, num_layers=layers, **kwargs)
    for weight in model.parameters():
        weight.data.mul_(3.0)  # so that what is dropped makes a difference
    return model


def ragged(n: int):
    return (normal(POOL, LENGTH, D)[:n], lengths(n, longest=LENGTH)), {}


def with_states(n: int):
    states = (normal(POOL, 2, H, seed=s)[:n] for s in (1, 2))
    return (normal(POOL, LENGTH, D)[:n], *states), {}


X = features(LENGTH, D)
TEXTS = features(3, LENGTH, D)

SPECIMENS = [
    Specimen("lstm_folded", lambda: SentencesFolded(nn.LSTM, True), TEXTS, sites=1),
    Specimen("gru_folded_slow", lambda: SentencesFolded(nn.GRU, False), TEXTS, sites=1),
    Specimen("lstm", lambda: LastState(net(nn.LSTM)), X, sites=1),
    Specimen("lstm_three_layers", lambda: LastState(net(nn.LSTM, 3)), X, sites=2),
    Specimen("gru", lambda: LastState(net(nn.GRU, 3)), X, sites=2),
    Specimen("rnn_tanh", lambda: LastState(net(nn.RNN)), X, sites=1),
    Specimen(
        "rnn_relu", lambda: LastState(net(nn.RNN, nonlinearity="relu")), X, sites=1
    ),
    Specimen(
        "lstm_bidirectional",
        lambda: LastState(net(nn.LSTM, bidirectional=True)),
        X,
        sites=1,
    ),
    Specimen(
        "gru_bidirectional",
        lambda: LastState(net(nn.GRU, bidirectional=True, bias=False)),
        X,
        sites=1,
    ),
    Specimen(
        "lstm_projected",
        lambda: LastState(net(nn.LSTM, 3, proj_size=2)),
        X,
        sites=2,
        filter_warnings=("LSTM with projections is not supported with oneDNN",),
    ),
    Specimen(
        "lstm_sequence_first",
        lambda: SequenceFirst(net(nn.LSTM, batch_first=False)),
        X,
        sites=1,
    ),
    Specimen(
        "gru_sequence_first_square",
        lambda: SequenceFirst(net(nn.GRU, batch_first=False)),
        features(4, D),
        sites=1,
    ),
    Specimen("lstm_states", lambda: WithStates(net(nn.LSTM)), with_states, sites=1),
    Specimen("lstm_packed", lambda: Packed(net(nn.LSTM)), ragged, sites=1),
    Specimen(
        "gru_packed_bidirectional",
        lambda: Packed(net(nn.GRU, bidirectional=True)),
        ragged,
        sites=1,
    ),
    Specimen(
        "rnn_packed_three_layers", lambda: Packed(net(nn.RNN, 3)), ragged, sites=2
    ),
    Specimen(
        "dropout_before_packing",
        lambda: DropsThenPacks(net(nn.LSTM, 1, dropout=0.0)),
        ragged,
        sites=1,
    ),
    Specimen(
        "dropout_before_packing_and_between_layers",
        lambda: DropsThenPacks(net(nn.GRU, bidirectional=True)),
        ragged,
        sites=2,
    ),
    Specimen(
        "dropout_before_packing_sorted",
        lambda: PacksForStates(net(nn.LSTM)),
        ragged,
        sites=2,
    ),
    Specimen("lstm_cell_loop", HandWritten, X, sites=LENGTH),
    Specimen(
        "lstm_float64",
        lambda: LastState(net(nn.LSTM)).double(),
        features(LENGTH, D, dtype=torch.float64),
        sites=1,
    ),
]
