"""Random operations other than dropout: stochastic depth, Gaussian noise, and so on."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from caveat._torch import OpOverload, op_arguments, op_name
from caveat.errors import UnsupportedModelError
from caveat.sampling.dispatch import tensors_in
from caveat.sampling.noise import Exponential, Integers, Law, Mask, Normal, Uniform
from caveat.sampling.passes import Pass

_aten = torch.ops.aten


# ------------------------------------------------------------ filling a tensor


def _fill(run: Pass, target: Tensor, kind: str, law: Law, rate: float = 0.0) -> Tensor:
    values = run.values(kind, law, target, rate=rate)
    filled: Tensor = run.recorder.run(_aten.copy_.default, target, values)
    if not run.recorder.is_outside(target):  # those have a copy, which is not followed
        run.recorder.raw.move(values, filled)
    return filled


def _bernoulli_(
    run: Pass, func: OpOverload, x: Tensor, p: float = 0.5, **_: Any
) -> Tensor:
    if p in (0.0, 1.0):  # certain, so nothing is drawn
        return run.recorder.run(_aten.fill_.Scalar, x, p)
    return _fill(run, x, "bernoulli", Mask(p), rate=1.0 - p)


def _bernoulli_tensor_(
    run: Pass, func: OpOverload, x: Tensor, p: Tensor, **_: Any
) -> Tensor:
    with run.recorder:
        return x.copy_(_below(run, p.to(x.device).expand(x.shape)))


def _uniform_(
    run: Pass,
    func: OpOverload,
    x: Tensor,
    low: float = 0.0,
    high: float = 1.0,
    **_: Any,
) -> Tensor:
    return _fill(run, x, "uniform", Uniform(low, high))


def _normal_(
    run: Pass,
    func: OpOverload,
    x: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    **_: Any,
) -> Tensor:
    return _fill(run, x, "normal", Normal(mean, std))


def _exponential_(
    run: Pass, func: OpOverload, x: Tensor, rate: float = 1.0, **_: Any
) -> Tensor:
    return _fill(run, x, "exponential", Exponential(rate))


def _random_(run: Pass, func: OpOverload, x: Tensor, *bounds: Any, **_: Any) -> Tensor:
    low, high = (0, None) if not bounds else (0, *bounds)[-2:]
    return _fill(run, x, "integers", Integers(low, _end(x.dtype, high)))


def _end(dtype: torch.dtype, high: int | None) -> int:
    """One more than the largest number of ``Tensor.random_``."""
    if high is not None:
        return high
    if dtype == torch.bool:
        return 2
    if dtype.is_floating_point:
        return round(2 / torch.finfo(dtype).eps) + 1
    return torch.iinfo(dtype).max + 1


# ------------------------------------------------------------ new tensors


def _bernoulli_p(
    run: Pass, func: OpOverload, x: Tensor, p: float = 0.5, **_: Any
) -> Tensor:
    if p in (0.0, 1.0):
        return run.recorder.run(_aten.full_like.default, x, p)
    return run.values("bernoulli", Mask(p), x, rate=1.0 - p, content=x)


def _bernoulli(run: Pass, func: OpOverload, p: Tensor, **_: Any) -> Tensor:
    return _below(run, p)


def _below(run: Pass, p: Tensor) -> Tensor:
    """1 with probability p, element by element."""
    uniform = run.values("bernoulli", Uniform(), p, content=p)
    with run.recorder:
        return (uniform < p).to(p.dtype)


def _normal_of_size(
    run: Pass,
    func: OpOverload,
    mean: float,
    std: float,
    size: Sequence[int],
    **options: Any,
) -> Tensor:
    return run.values("normal", Normal(mean, std), _empty(size, options))


def _normal(run: Pass, func: OpOverload, mean: Any, std: Any = 1.0, **_: Any) -> Tensor:
    tensors = [t for t in (mean, std) if isinstance(t, Tensor)]
    shape = torch.broadcast_shapes(*(t.shape for t in tensors))
    like = tensors[0].new_empty(shape)
    whole = next((t for t in tensors if t.shape == shape), like)
    standard = run.values("normal", Normal(), like, content=whole)
    with run.recorder:
        return mean + std * standard


def _rand_like(run: Pass, func: OpOverload, x: Tensor, **options: Any) -> Tensor:
    return run.values("uniform", Uniform(), _empty_like(x, options), content=x)


def _randn_like(run: Pass, func: OpOverload, x: Tensor, **options: Any) -> Tensor:
    return run.values("normal", Normal(), _empty_like(x, options), content=x)


def _randint_like(
    run: Pass, func: OpOverload, x: Tensor, *bounds: int, **options: Any
) -> Tensor:
    law, like = _integers(bounds), _empty_like(x, options)
    return run.values("integers", law, like, content=x)


def _rand(run: Pass, func: OpOverload, size: Sequence[int], **options: Any) -> Tensor:
    return run.values("uniform", Uniform(), _empty(size, options))


def _randn(run: Pass, func: OpOverload, size: Sequence[int], **options: Any) -> Tensor:
    return run.values("normal", Normal(), _empty(size, options))


def _randint(run: Pass, func: OpOverload, *arguments: Any, **options: Any) -> Tensor:
    *bounds, size = arguments
    options["dtype"] = options.get("dtype") or torch.int64
    return run.values("integers", _integers(bounds), _empty(size, options))


def _randperm(run: Pass, func: OpOverload, n: int, **options: Any) -> Tensor:
    """In a look no number stays in its place, so that rows which are permuted show."""
    if not run.omega.looks:
        return with_own_generator(run, func, n, **options)
    run.own_generator("randperm", torch.empty(0))
    kept = {k: v for k, v in options.items() if k in ("dtype", "device")}
    with run.recorder:
        return torch.arange(n, **kept).roll(1)


# ------------------------------------------------------------ random leaky ReLU


def _rrelu(
    run: Pass,
    func: OpOverload,
    x: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    generator: Any = None,
) -> Tensor:
    """A site whatever its flag says, as dropout is."""
    law = Uniform(lower, upper)
    slope = run.values("random leaky relu", law, x, fires=training, content=x)
    with run.recorder:
        out = torch.where(x >= 0, x, x * slope)
        return x.copy_(out) if op_name(func).endswith("_") else out


def _rrelu_with_noise(
    run: Pass,
    func: OpOverload,
    x: Tensor,
    noise: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    *_: Any,
) -> Tensor:
    slope = run.values("random leaky relu", Uniform(lower, upper), x, content=x)
    with run.recorder:
        noise.copy_(torch.where(x >= 0, 1.0, slope))
        return x.mul_(noise) if op_name(func).endswith("_") else x * noise


# ------------------------------------------------------------ the rest


def with_own_generator(run: Pass, func: OpOverload, *args: Any, **kwargs: Any) -> Any:
    """Any other random operation: a generator of its own, seeded by its address.

    Its numbers have no address each, so it cannot be replayed. What could drop but
    has a rate of 0 (fused attention under gradients) draws nothing.
    """
    if _drops_nothing(func, args, kwargs):
        return run.recorder.run(func, *args, **kwargs)
    seeded = _taking_a_generator(func)
    if seeded is None:
        raise UnsupportedModelError(
            f"{run.where} calls {func}, whose randomness cannot be controlled. "
            f"Write it with torch.rand or torch.bernoulli, or keep it out of the model."
        )
    like = next((a for a in args if isinstance(a, Tensor)), torch.empty(0))
    kwargs["generator"] = run.own_generator(op_name(func), like)
    run.recorder.transcript.escape = f"{func} draws from a generator of its own"
    return run.recorder.run(seeded, *args, **kwargs)


def _taking_a_generator(func: OpOverload) -> OpOverload | None:
    """The operation, or its twin, that takes a generator (``torch.randperm``)."""
    twin = getattr(func.overloadpacket, "generator", None)
    both = (func,) if twin is None else (func, twin)
    takes = (f for f in both if any(a.name == "generator" for a in op_arguments(f)))
    return next(takes, None)


def as_seeded(run: Pass, func: OpOverload, *args: Any, **kwargs: Any) -> Any:
    """An operation whose numbers the model has chosen, by a seed: as torch does it.

    Dropout that was switched on draws, too, from the generator that was seeded.
    """
    names = [argument.name for argument in op_arguments(func)]
    for flag in {"train", "training"} & set(names[: len(args)]):
        place = names.index(flag)
        args = (*args[:place], True, *args[place + 1 :])
    tensors = list(tensors_in((*args, *kwargs.values())))
    if any(map(run.recorder.is_noisy, tensors)):
        run.recorder.transcript.escape = (
            f"{func} draws seeded numbers for a drawn tensor"
        )
    elif tensors:  # it may be on the tape, where it would draw once more
        run.recorder.transcript.bound = f"{func} draws seeded numbers"
    return run.recorder.run(func, *args, **kwargs)


def _drops_nothing(func: OpOverload, args: Any, kwargs: dict[str, Any]) -> bool:
    for position, argument in enumerate(op_arguments(func)):
        if argument.name in ("dropout_p", "dropout"):
            given = args[position] if position < len(args) else argument.default_value
            return kwargs.get(argument.name, given) == 0.0
    return False


def _integers(bounds: Sequence[int]) -> Integers:
    return Integers(*bounds) if len(bounds) == 2 else Integers(0, *bounds)


def _empty_like(x: Tensor, options: dict[str, Any]) -> Tensor:
    dtype, device = options.get("dtype"), options.get("device")
    return torch.empty(x.shape, dtype=dtype or x.dtype, device=device or x.device)


def _empty(size: Sequence[int], options: dict[str, Any]) -> Tensor:
    return torch.empty(size, dtype=options.get("dtype"), device=options.get("device"))


def _overloads(
    rules: dict[str, Callable[..., Any]],
) -> dict[OpOverload, Callable[..., Any]]:
    names = "default generator low low_generator low_dtype low_generator_dtype".split()
    found = {}
    for operation, rule in rules.items():
        packet = getattr(_aten, operation)
        for name in set(names) & set(packet.overloads()):
            found[getattr(packet, name)] = rule
    return found


RULES: dict[OpOverload, Callable[..., Any]] = {
    _aten.bernoulli_.float: _bernoulli_,
    _aten.bernoulli_.Tensor: _bernoulli_tensor_,
    _aten.bernoulli.default: _bernoulli,
    _aten.bernoulli.p: _bernoulli_p,
    _aten.uniform_.default: _uniform_,
    _aten.normal_.default: _normal_,
    _aten.exponential_.default: _exponential_,
    _aten.random_.default: _random_,
    _aten.random_.to: _random_,
    getattr(_aten.random_, "from"): _random_,
    _aten.normal.float_float: _normal_of_size,
    _aten.normal.Tensor_float: _normal,
    _aten.normal.float_Tensor: _normal,
    _aten.normal.Tensor_Tensor: _normal,
    _aten.rrelu.default: _rrelu,
    _aten.rrelu_.default: _rrelu,
    _aten.rrelu_with_noise.default: _rrelu_with_noise,
    _aten.rrelu_with_noise_.default: _rrelu_with_noise,
    _aten.randperm.default: _randperm,
    _aten.randperm.generator: _randperm,
    **_overloads({"rand": _rand, "randn": _randn, "randint": _randint}),
    **_overloads({"rand_like": _rand_like, "randn_like": _randn_like}),
    **_overloads({"randint_like": _randint_like}),
}
