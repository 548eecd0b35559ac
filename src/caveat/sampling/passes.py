"""One pass y(x, ω): which noise each random operation gets.

A :class:`Pass` names the sites as the model reaches them (module path and how often
that module has drawn before, so a branch elsewhere does not shift the names), asks its
:class:`Omega` for their noise, and has the rules by which random operations use it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor
from torch._ops import OpOverload

from caveat import _validation as check
from caveat._random import stream_key
from caveat.errors import UnsupportedModelError
from caveat.sampling.attention import attention
from caveat.sampling.copying import ModuleStack
from caveat.sampling.noise import (
    Exponential,
    Integers,
    Law,
    Layout,
    Mask,
    NoiseSpec,
    Normal,
    Uniform,
)
from caveat.sampling.recorder import Recorder, Rule
from caveat.sampling.recurrent import is_recurrent, layer_by_layer

_aten = torch.ops.aten


@dataclass(frozen=True)
class SiteCall:
    """One random operation of one pass."""

    path: str
    occurrence: int
    kind: str
    rate: float
    shape: tuple[int, ...]
    fires: bool  # whether the operation would have drawn as the model called it
    is_mask: bool = True  # False for random operations other than dropout

    @property
    def name(self) -> str:
        """What the noise of this site is addressed by."""
        return f"{self.path}#{self.occurrence}"


class Drawn(NamedTuple):
    """Noise in hand, and the layout of the tensor that it is for."""

    noise: Tensor
    layout: Layout | None


class Omega(Protocol):
    """Decides the noise of every site of a pass."""

    def visit(self, site: SiteCall, tensor: Tensor | None, *, has_values: bool) -> None:
        """The pass has reached ``site``, which acts on ``tensor``.

        Without values only the shape of ``tensor`` means something.
        """

    def spec(
        self, site: SiteCall, law: Law, shape: Sequence[int], like: Tensor
    ) -> tuple[NoiseSpec, Layout | None] | None:
        """The noise of ``site``, or None to leave everything as it is."""

    seed: int
    draw: int
    shared: bool


@dataclass
class DrawOmega:
    """Draw number ``draw`` of ω."""

    seed: int
    draw: int
    layouts: Mapping[str, Layout | None]
    rows: int
    first_row: int = 0
    shared: bool = True

    def visit(self, site: SiteCall, tensor: Tensor | None, *, has_values: bool) -> None:
        pass

    def spec(
        self, site: SiteCall, law: Law, shape: Sequence[int], like: Tensor
    ) -> tuple[NoiseSpec, Layout | None]:
        layout = self.layouts.get(site.name)
        if layout is None or shape[layout.axis] != self.rows * layout.factor:
            # Rows are not told apart: every element has noise of its own.
            return NoiseSpec(
                site.name, law, tuple(shape), like.dtype, like.device
            ), None
        split = list(layout.split(shape, self.rows))
        first_row = 0 if self.shared else self.first_row
        if self.shared:
            split[layout.row_axis] = 1
        spec = NoiseSpec(
            site.name,
            law,
            tuple(split),
            like.dtype,
            like.device,
            first_row,
            layout.row_axis,
        )
        return spec, layout


class Pass:
    """The rules by which random operations use the noise of ``omega``.

    ``record`` keeps the tape of what depends on noise.
    """

    def __init__(self, stack: ModuleStack, omega: Omega, *, record: bool) -> None:
        self.stack = stack
        self.omega = omega
        self.sites: list[SiteCall] = []
        self._seen: Counter[tuple[str, bool]] = Counter()
        self.recorder = Recorder(self._rules(), record=record)

    def _rules(self) -> dict[OpOverload, Rule]:
        rules: dict[OpOverload, Rule] = {
            _aten.dropout.default: self._dropout,
            _aten.dropout_.default: self._dropout,
            _aten.feature_dropout.default: self._feature_dropout,
            _aten.feature_dropout_.default: self._feature_dropout,
            _aten.alpha_dropout.default: self._alpha_dropout,
            _aten.alpha_dropout_.default: self._alpha_dropout,
            _aten.feature_alpha_dropout.default: self._feature_alpha_dropout,
            _aten.feature_alpha_dropout_.default: self._feature_alpha_dropout,
            _aten.native_dropout.default: self._native_dropout,
            _aten.scaled_dot_product_attention.default: self._attention,
            _aten.bernoulli_.float: self._bernoulli_,
            _aten.bernoulli_.Tensor: self._bernoulli_tensor_,
            _aten.bernoulli.default: self._bernoulli,
            _aten.bernoulli.p: self._bernoulli_p,
            _aten.uniform_.default: self._uniform_,
            _aten.normal_.default: self._normal_,
            _aten.exponential_.default: self._exponential_,
            _aten.normal.float_float: self._normal_of_size,
            _aten.normal.Tensor_float: self._normal,
            _aten.normal.float_Tensor: self._normal,
            _aten.normal.Tensor_Tensor: self._normal,
            _aten.rrelu.default: self._rrelu,
            _aten.rrelu_.default: self._rrelu,
            _aten.rrelu_with_noise.default: self._rrelu_with_noise,
            _aten.rand_like.default: self._rand_like,
            _aten.randn_like.default: self._randn_like,
            _aten.randint_like.default: self._randint_like,
            _aten.randint_like.low_dtype: self._randint_like,
        }
        for name, rule in (
            ("rand", self._rand),
            ("randn", self._randn),
            ("randint", self._randint),
        ):
            packet = getattr(_aten, name)
            for overload in ("default", "generator", "low", "low_generator"):
                if overload in packet.overloads():
                    rules[getattr(packet, overload)] = rule
        for name in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
            rules[getattr(_aten, name).input] = self._recurrent
            rules[getattr(_aten, name).data] = self._recurrent
        return _WithSeeded(rules, self._seeded)

    # ------------------------------------------------------------ sites

    def mask(
        self,
        kind: str,
        rate: float,
        tensor: Tensor,
        *,
        fires: bool,
        shape: Sequence[int] | None = None,
        scale: float | None = None,
        has_rows: bool = True,
    ) -> Drawn | None:
        """The dropout mask of the site reached now; None if nothing is dropped."""
        rate = check.drop_rate(rate, where=f"{kind} in {self._where()}")
        batch = tensor if has_rows else None
        site = self._site(kind, rate, batch, shape or tensor.shape, fires)
        if rate == 0.0 or tensor.numel() == 0:
            return None
        keep_prob = 1.0 - rate
        law = Mask(keep_prob, 1.0 / keep_prob if scale is None else scale)
        return self._draw(site, law, shape or tensor.shape, tensor)

    def values(
        self,
        kind: str,
        law: Law,
        like: Tensor,
        *,
        rate: float = 0.0,
        fires: bool = True,
    ) -> Tensor:
        """Noise values of the shape of ``like``, not broadcast."""
        site = self._site(kind, rate, like, like.shape, fires=fires, draws_anyway=True)
        drawn = self._draw(site, law, like.shape, like)
        if drawn is None:
            return torch.full_like(like, law.centre)
        run, layout = self.recorder.run, drawn.layout
        noise = drawn.noise
        if layout is not None and layout.factor > 1:
            split = layout.split(like.shape, like.shape[layout.axis] // layout.factor)
            noise = run(_aten.expand.default, noise, split)
            return run(_aten.reshape.default, noise, like.shape)  # type: ignore[no-any-return]
        expanded = run(_aten.expand.default, noise, like.shape)
        return run(_aten.clone.default, expanded, memory_format=torch.contiguous_format)  # type: ignore[no-any-return]

    def _site(
        self,
        kind: str,
        rate: float,
        tensor: Tensor | None,
        shape: Sequence[int],
        fires: bool,
        draws_anyway: bool = False,
    ) -> SiteCall:
        path = self.stack.path
        active = rate > 0 or draws_anyway
        occurrence = self._seen[path, active]
        self._seen[path, active] += 1
        number = occurrence if active else -1 - occurrence
        is_mask = not draws_anyway
        site = SiteCall(path, number, kind, rate, tuple(shape), fires, is_mask)
        self.sites.append(site)
        if active:
            self.omega.visit(site, tensor, has_values=not draws_anyway)
        return site

    def _draw(
        self, site: SiteCall, law: Law, shape: Sequence[int], like: Tensor
    ) -> Drawn | None:
        found = self.omega.spec(site, law, shape, like)
        if found is None:
            return None
        spec, layout = found
        return Drawn(
            self.recorder.noise(spec, self.omega.seed, self.omega.draw), layout
        )

    def _where(self) -> str:
        return (
            f"module {self.stack.path!r}" if self.stack.path else "the model's forward"
        )

    # ------------------------------------------------------------ dropout

    def drop(self, tensor: Tensor, rate: float, *, kind: str = "attention") -> Tensor:
        """Dropout as part of a larger rule, which runs under the recorder."""
        drawn = self.mask(kind, rate, tensor, fires=True)
        return tensor if drawn is None else self._times(tensor, drawn)

    def _dropout(self, func: OpOverload, x: Tensor, p: float, train: bool) -> Tensor:
        drawn = self.mask("dropout", p, x, fires=train)
        return x if drawn is None else self._times(x, drawn, func)

    def _feature_dropout(
        self, func: OpOverload, x: Tensor, p: float, train: bool
    ) -> Tensor:
        drawn = self.mask("feature dropout", p, x, fires=train, shape=_features(x))
        return x if drawn is None else self._times(x, drawn, func)

    def _alpha_dropout(
        self, func: OpOverload, x: Tensor, p: float, train: bool
    ) -> Tensor:
        drawn = self.mask("alpha dropout", p, x, fires=train, scale=1.0)
        return x if drawn is None else self._towards_saturation(x, drawn, p, func)

    def _feature_alpha_dropout(
        self, func: OpOverload, x: Tensor, p: float, train: bool
    ) -> Tensor:
        shape = _features(x)
        drawn = self.mask(
            "feature alpha dropout", p, x, fires=train, shape=shape, scale=1.0
        )
        return x if drawn is None else self._towards_saturation(x, drawn, p, func)

    def _native_dropout(
        self, func: OpOverload, x: Tensor, p: float, train: bool | None
    ) -> tuple[Tensor, Tensor]:
        drawn = self.mask("dropout", p, x, fires=bool(train))
        if drawn is None:
            return x.clone(), torch.ones_like(x, dtype=torch.bool)
        out = self._times(x, drawn)
        kept = drawn.noise.ne(0)
        if drawn.layout is not None and drawn.layout.factor > 1:
            raise UnsupportedModelError(
                "native_dropout on a folded batch is not supported."
            )
        return out, kept.expand(x.shape)

    def _times(self, x: Tensor, drawn: Drawn, func: OpOverload | None = None) -> Tensor:
        """x ∘ mask, in place if ``func`` works in place."""
        run = self.recorder.run
        if func is not None and func._schema.name.endswith("_"):
            return run(_aten.copy_.default, x, self._times(x, drawn))  # type: ignore[no-any-return]
        noise, layout = drawn
        if layout is None or layout.factor == 1:
            return run(_aten.mul.Tensor, x, noise)  # type: ignore[no-any-return]
        rows = x.shape[layout.axis] // layout.factor
        split = run(_aten.reshape.default, x, layout.split(x.shape, rows))
        product = run(_aten.mul.Tensor, split, noise)
        return run(_aten.reshape.default, product, x.shape)  # type: ignore[no-any-return]

    def _towards_saturation(
        self, x: Tensor, drawn: Drawn, rate: float, func: OpOverload
    ) -> Tensor:
        """Alpha dropout: dropped units go to SELU's saturation, then an affine map."""
        saturation = 1.7580993408473766
        a = ((saturation**2 * rate + 1) * (1 - rate)) ** -0.5
        run = self.recorder.run
        noise, layout = drawn
        shift = run(_aten.mul.Tensor, run(_aten.sub.Tensor, noise, 1), saturation * a)
        shift = run(_aten.add.Tensor, shift, saturation * a * rate)
        scale = run(_aten.mul.Tensor, noise, a)
        rows = None if layout is None else x.shape[layout.axis] // layout.factor
        split = (
            x
            if rows is None
            else run(_aten.reshape.default, x, layout.split(x.shape, rows))
        )  # type: ignore[union-attr]
        out = run(_aten.add.Tensor, run(_aten.mul.Tensor, split, scale), shift)
        out = run(_aten.reshape.default, out, x.shape)
        if func._schema.name.endswith("_"):
            return run(_aten.copy_.default, x, out)  # type: ignore[no-any-return]
        return out  # type: ignore[no-any-return]

    def _attention(
        self,
        func: OpOverload,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        **options: Any,
    ) -> Tensor:
        if dropout_p == 0.0:
            return self.recorder.run(  # type: ignore[no-any-return]
                func, query, key, value, attn_mask, dropout_p, is_causal, **options
            )
        clean = attn_mask is not None and not self.recorder.is_noisy(attn_mask)
        with self.recorder:
            return attention(
                query,
                key,
                value,
                attn_mask,
                is_causal,
                drop=lambda weights: self.drop(weights, dropout_p),
                look_at_mask=clean,
                **options,
            )

    def _recurrent(self, func: OpOverload, *args: Any) -> Any:
        if not is_recurrent(func, args):
            return self.recorder.run(func, *args)
        with self.recorder:
            return layer_by_layer(func, args, self._drop_between_layers)

    def _drop_between_layers(
        self, x: Tensor, rate: float, fires: bool, batch_sizes: Tensor | None
    ) -> Tensor:
        mask = self.mask_between_layers(x, rate, fires, batch_sizes)
        return x if mask is None else self.recorder.run(_aten.mul.Tensor, x, mask)

    def mask_between_layers(
        self, x: Tensor, rate: float, fires: bool, batch_sizes: Tensor | None
    ) -> Tensor | None:
        """The mask between two recurrent layers, to be multiplied with ``x``."""
        kind = "recurrent dropout"
        if batch_sizes is None:
            drawn = self.mask(kind, rate, x, fires=fires)
            return None if drawn is None else drawn.noise
        # The rows of a packed sequence are (step, row) pairs: address them as such.
        rows = int(batch_sizes[0]) if not self.omega.shared else 1
        shape = (len(batch_sizes), rows, x.shape[1])
        drawn = self.mask(kind, rate, x, fires=fires, shape=shape, has_rows=False)
        if drawn is None:
            return None
        steps = torch.repeat_interleave(torch.arange(len(batch_sizes)), batch_sizes)
        if rows > 1:
            steps = steps * rows + torch.cat(
                [torch.arange(int(n)) for n in batch_sizes]
            )
        run = self.recorder.run
        by_step = run(_aten.reshape.default, drawn.noise, (-1, x.shape[1]))
        return run(_aten.index_select.default, by_step, 0, steps.to(x.device))  # type: ignore[no-any-return]

    # ------------------------------------------------------------ other random operations

    def _fill(self, target: Tensor, kind: str, law: Law, rate: float = 0.0) -> Tensor:
        values = self.values(kind, law, target, rate=rate)
        return self.recorder.run(_aten.copy_.default, target, values)  # type: ignore[no-any-return]

    def _bernoulli_(
        self, func: OpOverload, x: Tensor, p: float = 0.5, *, generator: Any = None
    ) -> Tensor:
        return self._fill(x, "bernoulli", Mask(p), rate=1.0 - p)

    def _bernoulli_p(
        self, func: OpOverload, x: Tensor, p: float = 0.5, *, generator: Any = None
    ) -> Tensor:
        return self.values("bernoulli", Mask(p), x, rate=1.0 - p)

    def _bernoulli(
        self, func: OpOverload, p: Tensor, *, generator: Any = None
    ) -> Tensor:
        uniform = self.values("bernoulli", Uniform(), p)
        below = self.recorder.run(_aten.lt.Tensor, uniform, p)
        return self.recorder.run(_aten._to_copy.default, below, dtype=p.dtype)  # type: ignore[no-any-return]

    def _bernoulli_tensor_(
        self, func: OpOverload, x: Tensor, p: Tensor, *, generator: Any = None
    ) -> Tensor:
        with self.recorder:
            expanded = p.to(x.device).expand(x.shape)
        return self.recorder.run(
            _aten.copy_.default, x, self._bernoulli(func, expanded)
        )  # type: ignore[no-any-return]

    def _uniform_(
        self, func: OpOverload, x: Tensor, low: float = 0.0, high: float = 1.0, **_: Any
    ) -> Tensor:
        return self._fill(x, "uniform", Uniform(low, high))

    def _normal_(
        self, func: OpOverload, x: Tensor, mean: float = 0.0, std: float = 1.0, **_: Any
    ) -> Tensor:
        return self._fill(x, "normal", Normal(mean, std))

    def _exponential_(
        self, func: OpOverload, x: Tensor, rate: float = 1.0, **_: Any
    ) -> Tensor:
        return self._fill(x, "exponential", Exponential(rate))

    def _normal_of_size(
        self,
        func: OpOverload,
        mean: float,
        std: float,
        size: Sequence[int],
        **options: Any,
    ) -> Tensor:
        return self.values("normal", Normal(mean, std), _empty(size, options))

    def _normal(
        self, func: OpOverload, mean: Any, std: Any = 1.0, *, generator: Any = None
    ) -> Tensor:
        shapes = [t.shape for t in (mean, std) if isinstance(t, Tensor)]
        like = mean if isinstance(mean, Tensor) else std
        noise = self.values(
            "normal", Normal(), like.new_empty(torch.broadcast_shapes(*shapes))
        )
        with self.recorder:
            return mean + std * noise  # type: ignore[no-any-return]

    def _rrelu(
        self,
        func: OpOverload,
        x: Tensor,
        lower: float = 1 / 8,
        upper: float = 1 / 3,
        training: bool = False,
        generator: Any = None,
    ) -> Tensor:
        """Random leaky ReLU: a site whatever its flag says, as dropout is."""
        slope = self.values(
            "random leaky relu", Uniform(lower, upper), x, fires=training
        )
        with self.recorder:
            out = torch.where(x >= 0, x, x * slope)
            return x.copy_(out) if func._schema.name.endswith("_") else out

    def _rrelu_with_noise(
        self,
        func: OpOverload,
        x: Tensor,
        noise: Tensor,
        lower: float = 1 / 8,
        upper: float = 1 / 3,
        training: bool = False,
        generator: Any = None,
    ) -> Tensor:
        slope = self.values("random leaky relu", Uniform(lower, upper), x)
        with self.recorder:
            noise.copy_(torch.where(x >= 0, 1.0, slope))
            return x * noise

    def _rand_like(self, func: OpOverload, x: Tensor, **options: Any) -> Tensor:
        return self.values("uniform", Uniform(), _empty_like(x, options))

    def _randn_like(self, func: OpOverload, x: Tensor, **options: Any) -> Tensor:
        return self.values("normal", Normal(), _empty_like(x, options))

    def _randint_like(
        self, func: OpOverload, x: Tensor, *bounds: int, **options: Any
    ) -> Tensor:
        law = Integers(*(bounds if len(bounds) == 2 else (0, *bounds)))
        return self.values("integers", law, _empty_like(x, options))

    def _rand(self, func: OpOverload, size: Sequence[int], **options: Any) -> Tensor:
        return self.values("uniform", Uniform(), _empty(size, options))

    def _randn(self, func: OpOverload, size: Sequence[int], **options: Any) -> Tensor:
        return self.values("normal", Normal(), _empty(size, options))

    def _randint(
        self, func: OpOverload, *bounds_and_size: Any, **options: Any
    ) -> Tensor:
        *bounds, size = bounds_and_size
        law = Integers(*(bounds if len(bounds) == 2 else (0, *bounds)))
        options["dtype"] = options.get("dtype") or torch.int64
        return self.values("integers", law, _empty(size, options))

    def _seeded(self, func: OpOverload, *args: Any, **kwargs: Any) -> Any:
        """Any other random operation: its own generator, seeded by the address."""
        name = func._schema.name.removeprefix("aten::")
        if not any(a.name == "generator" for a in func._schema.arguments):
            raise UnsupportedModelError(
                f"{self._where()} calls {func}, whose randomness cannot be controlled. "
                f"Write it with torch.rand or torch.bernoulli, or use it outside the model."
            )
        like = next((a for a in args if isinstance(a, Tensor)), torch.empty(0))
        site = self._site(name, 0.0, like, like.shape, fires=True, draws_anyway=True)
        generator = torch.Generator(like.device)
        generator.manual_seed(
            stream_key(self.omega.seed, f"{site.name}@{self.omega.draw}") >> 1
        )
        self.recorder.escape = f"{func} draws from a generator of its own"
        kwargs["generator"] = generator
        return self.recorder.run(func, *args, **kwargs)


@dataclass
class _WithSeeded(dict[OpOverload, Rule]):
    """The rules, and ``seeded`` for every other operation that torch marks as random."""

    rules: dict[OpOverload, Rule]
    seeded: Rule = field(repr=False)

    def get(self, func: OpOverload, default: Any = None) -> Any:
        rule = self.rules.get(func)
        if rule is None and torch.Tag.nondeterministic_seeded in func.tags:
            return self.seeded
        return rule


def _features(x: Tensor) -> tuple[int, ...]:
    return (*x.shape[:2], *[1] * (x.dim() - 2))


def _empty_like(x: Tensor, options: dict[str, Any]) -> Tensor:
    dtype, device = options.get("dtype"), options.get("device")
    return torch.empty(x.shape, dtype=dtype or x.dtype, device=device or x.device)


def _empty(size: Sequence[int], options: dict[str, Any]) -> Tensor:
    return torch.empty(size, dtype=options.get("dtype"), device=options.get("device"))
