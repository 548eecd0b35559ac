"""LSTM and GRU with one mask for a whole sequence.

A fresh mask at each step drowns the signal over many steps (paper 000, section 4.2). As
noise on weights, which are the same at all steps, dropout has one mask a sequence
[Gal2016]_: on the inputs of each layer and on the state that is fed back.

.. [Gal2016] Y. Gal, Z. Ghahramani. A theoretically grounded application of dropout in
   recurrent neural networks. NeurIPS 2016.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import (
    PackedSequence,
    pack_padded_sequence,
    pad_packed_sequence,
)

from caveat import _validation as validation
from caveat.errors import InputTypeError, UnsupportedModelError
from caveat.noise.base import NoisyModule, checked_lengthscale, dropped_kl
from caveat.theory.divergence import Lengthscale

State: TypeAlias = tuple[Tensor, ...]  # h; h and c of an LSTM; each (batch, hidden)

_OPTIONS = "input_size hidden_size num_layers bias batch_first bidirectional".split()

_OWN_DROPOUT = """{name} takes no dropout={value}: that is a new mask at each step. Give
the rates of its masks for a whole sequence: input_drop_rate, recurrent_drop_rate."""

_PROJECTED = (
    """{name} does not know proj_size. Got {value}; put a linear layer behind."""
)


class _OneMaskPerSequence(NoisyModule, nn.RNNBase):
    """What LSTM and GRU share: masks, layers, directions and steps."""

    _plain: ClassVar[type[nn.RNNBase]]
    _n_states: ClassVar[int]

    def __init__(
        self,
        *args: Any,
        input_drop_rate: float = 0.1,
        recurrent_drop_rate: float = 0.1,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        name = type(self).__name__
        _refuse(_OWN_DROPOUT, name, self.dropout)
        _refuse(_PROJECTED, name, self.proj_size)
        self.input_drop_rate = validation.drop_rate(
            input_drop_rate, where=f"inputs of {name}"
        )
        self.recurrent_drop_rate = validation.drop_rate(
            recurrent_drop_rate, where=f"the state of {name}"
        )

    @classmethod
    def like(
        cls,
        module: nn.RNNBase,
        *,
        input_drop_rate: float = 0.1,
        recurrent_drop_rate: float = 0.1,
    ) -> Self:
        """A copy of torch's own module, with masks at these rates.

        Parameters
        ----------
        module : nn.LSTM or nn.GRU
            Its weights are copied, with their type, device and mode.
        input_drop_rate, recurrent_drop_rate : float
            As of the class.
        """
        if not isinstance(module, cls._plain):
            raise InputTypeError(
                f"{cls.__name__}.like takes a torch.nn.{cls.__name__}. "
                f"Got {type(module).__name__}."
            )
        _refuse(_OWN_DROPOUT, cls.__name__, module.dropout)
        _refuse(_PROJECTED, cls.__name__, module.proj_size)
        weight = next(module.parameters())
        copy = cls(
            **{option: getattr(module, option) for option in _OPTIONS},
            input_drop_rate=input_drop_rate,
            recurrent_drop_rate=recurrent_drop_rate,
            device="meta",  # nothing is drawn to be overwritten
            dtype=weight.dtype,
        ).to_empty(device=weight.device)
        copy.load_state_dict(module.state_dict())
        return copy.train(module.training)

    def forward(self, input: Any, hx: Any = None) -> Any:
        """As torch's own; with masks for whole sequences in training mode."""
        if not self.training:
            return super().forward(input, hx)
        if isinstance(input, PackedSequence):
            return self._packed(input, hx)
        if input.dim() == 2:
            return self._single(input, hx)
        time_first = input.transpose(0, 1) if self.batch_first else input
        y, state = self._layers(time_first, self._start(hx, time_first))
        return y.transpose(0, 1) if self.batch_first else y, state

    def kl(self, lengthscale: Lengthscale) -> Tensor:
        """(l²/2) (|W_input|²/p + |W_recurrent|²/p' + |b|²) (ledger E30).

        p and p' are the keep probabilities of inputs and state. Constants are left out.
        """
        length = checked_lengthscale(lengthscale)
        terms = [
            dropped_kl(parameter, self._keep_prob(name), length)
            for name, parameter in self.named_parameters()
        ]
        return torch.stack(terms).sum()

    def keep_probs(self) -> dict[Tensor, float]:
        """Keep probability of each parameter."""
        return {w: self._keep_prob(name) for name, w in self.named_parameters()}

    def extra_repr(self) -> str:
        """Settings as they are printed."""
        return (
            f"{super().extra_repr()}, input_drop_rate={self.input_drop_rate:g}, "
            f"recurrent_drop_rate={self.recurrent_drop_rate:g}"
        )

    # What the two cells differ in

    @abstractmethod
    def _step(self, gates: Tensor, fed_back: Tensor, state: State) -> State:
        """The next state, from what inputs and state send to the gates."""

    @abstractmethod
    def _state_parts(self, hx: Any) -> Sequence[Tensor]:
        """Torch's form of a state as a sequence of (layers, batch, hidden)."""

    @abstractmethod
    def _torch_state(self, parts: Sequence[Tensor]) -> Any:
        """The opposite of :meth:`_state_parts`."""

    # Layers, directions and steps

    def _layers(
        self, x: Tensor, start: Sequence[Tensor], active: Tensor | None = None
    ) -> tuple[Tensor, Any]:
        """All layers on ``x`` (time, batch, features)."""
        states: list[State] = []
        for layer in range(self.num_layers):
            outputs = []
            for side in ("", "_reverse")[: 1 + self.bidirectional]:
                state = tuple(part[len(states)] for part in start)
                y, state = self._direction(x, state, f"l{layer}{side}", active)
                outputs.append(y)
                states.append(state)
            x = torch.cat(outputs, -1)
        parts = [torch.stack(part) for part in zip(*states, strict=True)]
        return x, self._torch_state(parts)

    def _direction(
        self, x: Tensor, state: State, suffix: str, active: Tensor | None
    ) -> tuple[Tensor, State]:
        """One layer in one direction; rows that are not ``active`` keep their state."""
        wx, wh = (getattr(self, f"weight_{kind}_{suffix}") for kind in ("ih", "hh"))
        bx, bh = (getattr(self, f"bias_{k}_{suffix}", None) for k in ("ih", "hh"))
        x_mask = F.dropout(torch.ones_like(x[0]), self.input_drop_rate)
        h_mask = F.dropout(torch.ones_like(state[0]), self.recurrent_drop_rate)
        # E39: h_t = cell(x_t * z_x, h_(t-1) * z_h), the same masks at all t
        gates = F.linear(x * x_mask, wx, bx)
        times = range(len(x))
        outputs: dict[int, Tensor] = {}
        for t in reversed(times) if suffix.endswith("_reverse") else times:
            new = self._step(gates[t], F.linear(state[0] * h_mask, wh, bh), state)
            state = new if active is None else _where(active[t], new, state)
            outputs[t] = state[0]
        return torch.stack([outputs[t] for t in times]), state

    # Forms of input

    def _start(self, hx: Any, x: Tensor) -> Sequence[Tensor]:
        """The given state or zeros: h, and c of an LSTM, (layers, batch, hidden)."""
        if hx is not None:
            return self._state_parts(hx)
        layers = self.num_layers * (1 + self.bidirectional)
        zeros = x.new_zeros(layers, x.shape[1], self.hidden_size)
        return (zeros,) * self._n_states

    def _single(self, x: Tensor, hx: Any) -> tuple[Tensor, Any]:
        """A single sequence (time, features), without batch."""
        if hx is not None:
            hx = self._torch_state([p.unsqueeze(1) for p in self._state_parts(hx)])
        x = x.unsqueeze(1)
        y, state = self._layers(x, self._start(hx, x))
        parts = [part.squeeze(1) for part in self._state_parts(state)]
        return y.squeeze(1), self._torch_state(parts)

    def _packed(self, packed: PackedSequence, hx: Any) -> tuple[PackedSequence, Any]:
        """Sequences of several lengths: padded, and held still beyond their ends."""
        x, lengths = pad_packed_sequence(packed)
        active = torch.arange(len(x)).unsqueeze(1) < lengths
        active = active.unsqueeze(-1).to(x.device)
        y, state = self._layers(x, self._start(hx, x), active)
        if packed.sorted_indices is not None:
            y = y.index_select(1, packed.sorted_indices)
            lengths = lengths[packed.sorted_indices.to(lengths.device)]
        data = pack_padded_sequence(y, lengths).data
        return PackedSequence(data, *packed[1:]), state

    def _keep_prob(self, name: str) -> float:
        if name.startswith("weight_ih"):
            return 1.0 - self.input_drop_rate
        return 1.0 - self.recurrent_drop_rate if name.startswith("weight_hh") else 1.0


class LSTM(_OneMaskPerSequence, nn.LSTM):
    """``nn.LSTM`` with variational dropout: one mask a sequence, at all its steps.

    Signature, parameters and outputs are those of ``nn.LSTM`` (without its ``dropout``
    and ``proj_size``), and in evaluation mode so is the computation. In training mode
    the inputs of every layer and direction, and the state on its way to the gates, are
    multiplied by masks that are drawn once for each sequence of a call (ledger E39) and
    shared by the gates. Packed sequences, too. ``kl`` is a weight decay (ledger E30).

    Parameters
    ----------
    *args, **kwargs
        As of ``nn.LSTM``: input_size, hidden_size, num_layers, bias, batch_first,
        bidirectional, device, dtype.
    input_drop_rate : float
        Drop rate of the inputs of each layer.
    recurrent_drop_rate : float
        Drop rate of the state that is fed back.

    Examples
    --------
    >>> lstm = LSTM(3, 5, batch_first=True, input_drop_rate=0.2)
    >>> y, (h, c) = lstm(torch.zeros(2, 7, 3))
    >>> y.shape, h.shape
    (torch.Size([2, 7, 5]), torch.Size([1, 2, 5]))
    >>> copied = LSTM.like(nn.LSTM(3, 5), recurrent_drop_rate=0.3)
    """

    _plain = nn.LSTM
    _n_states = 2

    def _step(self, gates: Tensor, fed_back: Tensor, state: State) -> State:
        i, f, g, o = (gates + fed_back).chunk(4, -1)
        cell = torch.sigmoid(f) * state[1] + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(cell), cell

    def _state_parts(self, hx: Any) -> Sequence[Tensor]:
        return tuple(hx)

    def _torch_state(self, parts: Sequence[Tensor]) -> Any:
        return tuple(parts)


class GRU(_OneMaskPerSequence, nn.GRU):
    """``nn.GRU`` with variational dropout: one mask a sequence, at all its steps.

    As :class:`LSTM`, for ``nn.GRU``.

    Parameters
    ----------
    *args, **kwargs
        As of ``nn.GRU``.
    input_drop_rate : float
        Drop rate of the inputs of each layer.
    recurrent_drop_rate : float
        Drop rate of the state that is fed back.

    Examples
    --------
    >>> gru = GRU(3, 5, num_layers=2, input_drop_rate=0.2)
    >>> y, h = gru(torch.zeros(7, 2, 3))
    >>> y.shape, h.shape
    (torch.Size([7, 2, 5]), torch.Size([2, 2, 5]))
    """

    _plain = nn.GRU
    _n_states = 1

    def _step(self, gates: Tensor, fed_back: Tensor, state: State) -> State:
        ri, zi, ni = gates.chunk(3, -1)
        rh, zh, nh = fed_back.chunk(3, -1)
        update = torch.sigmoid(zi + zh)
        new = torch.tanh(ni + torch.sigmoid(ri + rh) * nh)
        return ((1 - update) * new + update * state[0],)

    def _state_parts(self, hx: Any) -> Sequence[Tensor]:
        return (hx,)

    def _torch_state(self, parts: Sequence[Tensor]) -> Any:
        return parts[0]


def _where(active: Tensor, new: State, old: State) -> State:
    return tuple(torch.where(active, n, o) for n, o in zip(new, old, strict=True))


def _refuse(message: str, name: str, value: float) -> None:
    if value:
        raise UnsupportedModelError(message.format(name=name, value=value))
