"""What each operation of JAX does to values that are affine in masks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from caveat.maxent.affine import Affine, MarkerPart, Opaque
from caveat.maxent.markers import Array

Value: TypeAlias = Any  # an array that masks do not touch, an Affine or an Opaque
Rule: TypeAlias = Callable[[Any, Sequence[Value]], Value]


def _bind(equation: Any, *operands: Any) -> Any:
    return equation.primitive.bind(*operands, **equation.params)


def _each(
    value: Affine, change: Callable[[MarkerPart], MarkerPart]
) -> dict[str, MarkerPart]:
    return {name: change(part) for name, part in value.parts.items()}


def _scaled(part: MarkerPart, factor: Any, shape: tuple[int, ...]) -> MarkerPart:
    """The part of a value times ``factor``, broadcast to ``shape``."""
    fits = part.axis is not None and part.slope.ndim == len(shape)
    if part.axis is not None and fits and shape[part.axis] == part.n_units:
        return replace(part, slope=jnp.broadcast_to(part.slope * factor, shape))
    slope = part.dense()
    slope = slope.reshape(
        part.n_units, *[1] * (len(shape) + 1 - slope.ndim), *slope.shape[1:]
    )
    wide = jnp.broadcast_to(slope * factor, (part.n_units, *shape))
    return MarkerPart(wide, None, part.n_units)


def _joined(
    left: Mapping[str, MarkerPart], right: Mapping[str, MarkerPart]
) -> dict[str, MarkerPart]:
    joined = dict(left)
    for name, part in right.items():
        other = joined.get(name)
        if other is None:
            joined[name] = part
        elif other.axis is not None and other.axis == part.axis:
            joined[name] = replace(part, slope=other.slope + part.slope)
        else:
            joined[name] = MarkerPart(other.dense() + part.dense(), None, part.n_units)
    return joined


def _signed_sum(equation: Any, inputs: Sequence[Value]) -> Value:
    """add and sub."""
    if any(isinstance(value, Affine) and value.log for value in inputs):
        return Opaque(equation.primitive.name)
    shape = equation.outvars[0].aval.shape
    signs = (1.0, -1.0 if equation.primitive.name == "sub" else 1.0)
    constants = [v.constant if isinstance(v, Affine) else v for v in inputs]
    parts: dict[str, MarkerPart] = {}
    for value, sign in zip(inputs, signs, strict=True):
        if isinstance(value, Affine):
            scaled = {n: _scaled(p, sign, shape) for n, p in value.parts.items()}
            parts = _joined(parts, scaled)
    return Affine(_bind(equation, *constants), parts)


def _product(equation: Any, inputs: Sequence[Value]) -> Value:
    """mul and div; of exponentials, sums and differences of what is in them."""
    left, right = inputs
    divides = equation.primitive.name == "div"
    shape = equation.outvars[0].aval.shape
    masked = [value for value in inputs if isinstance(value, Affine)]
    if masked[0].log and all(_positive(value) for value in inputs):
        return _log_product(inputs, shape, -1.0 if divides else 1.0)
    if len(masked) > 1 or masked[0].log or (divides and masked[0] is right):
        return Opaque(equation.primitive.name)
    value, factor = (left, right) if isinstance(left, Affine) else (right, left)
    factor = 1.0 / factor if divides else factor
    parts = {n: _scaled(p, factor, shape) for n, p in value.parts.items()}
    return Affine(jnp.broadcast_to(value.constant * factor, shape), parts)


def _positive(value: Value) -> bool:
    """Whether a logarithm can be taken; numbers that are being traced are trusted."""
    if isinstance(value, Affine):
        return value.log
    return isinstance(value, jax.core.Tracer) or bool(np.all(np.asarray(value) > 0.0))


def _log_product(
    inputs: Sequence[Value], shape: tuple[int, ...], sign: float
) -> Affine:
    constant, parts = jnp.zeros(shape), dict[str, MarkerPart]()
    for value, factor in zip(inputs, (1.0, sign), strict=True):
        logs = value.constant if isinstance(value, Affine) else jnp.log(value)
        constant = constant + factor * logs
        if isinstance(value, Affine):
            scaled = {n: _scaled(p, factor, shape) for n, p in value.parts.items()}
            parts = _joined(parts, scaled)
    return Affine(constant, parts, log=True)


def _negative(equation: Any, inputs: Sequence[Value]) -> Value:
    (value,) = inputs
    if value.log:
        return Opaque("neg")
    return Affine(-value.constant, _each(value, lambda p: replace(p, slope=-p.slope)))


def _exponential(equation: Any, inputs: Sequence[Value]) -> Value:
    (value,) = inputs
    return Opaque("exp of exp") if value.log else replace(value, log=True)


def _logarithm(equation: Any, inputs: Sequence[Value]) -> Value:
    (value,) = inputs
    return replace(value, log=False) if value.log else Opaque("log")


def _converted(equation: Any, inputs: Sequence[Value]) -> Value:
    dtype = equation.params["new_dtype"]
    if not jnp.issubdtype(dtype, jnp.floating):
        return Opaque(f"conversion to {dtype}")
    (value,) = inputs
    parts = _each(value, lambda p: replace(p, slope=p.slope.astype(dtype)))
    return replace(value, constant=value.constant.astype(dtype), parts=parts)


def _broadcast(equation: Any, inputs: Sequence[Value]) -> Value:
    value = inputs[0]
    shape = tuple(equation.params["shape"])
    places = equation.params["broadcast_dimensions"]

    def change(part: MarkerPart) -> MarkerPart:
        if part.axis is None or shape[places[part.axis]] != part.n_units:
            dense = part.dense()
            shifted = (0, *[place + 1 for place in places])
            whole = (part.n_units, *shape)
            return MarkerPart(
                lax.broadcast_in_dim(dense, whole, shifted), None, part.n_units
            )
        slope = lax.broadcast_in_dim(part.slope, shape, places)
        return replace(part, slope=slope, axis=places[part.axis])

    constant = lax.broadcast_in_dim(value.constant, shape, places)
    return replace(value, constant=constant, parts=_each(value, change))


def _summed(equation: Any, inputs: Sequence[Value]) -> Value:
    """reduce_sum."""
    (value,) = inputs
    axes = equation.params["axes"]
    if value.log:
        return Opaque("reduce_sum")

    def change(part: MarkerPart) -> MarkerPart:
        if part.axis is None or part.axis not in axes:
            return _through(equation, part)
        rest = [axis for axis in axes if axis != part.axis]
        slope = jnp.moveaxis(part.slope.sum(rest, keepdims=True), part.axis, 0)
        return MarkerPart(slope.reshape(part.n_units, *total.shape), None, part.n_units)

    total = _bind(equation, value.constant)
    return Affine(total, _each(value, change))


def _through(equation: Any, part: MarkerPart, *others: Any) -> MarkerPart:
    """An operation that is linear in its first operand, done for every unit."""
    slope = jax.vmap(lambda one: _bind(equation, one, *others))(part.dense())
    return MarkerPart(slope, None, part.n_units)


def _linear_first(equation: Any, inputs: Sequence[Value]) -> Value:
    """Operations that move or sum the elements of their first operand."""
    value, *others = inputs
    if any(isinstance(other, Affine) for other in others):
        return Opaque(equation.primitive.name)
    if value.log and equation.primitive.name in _SUMS:
        return Opaque(equation.primitive.name)
    parts = _each(value, lambda part: _through(equation, part, *others))
    return replace(
        value, constant=_bind(equation, value.constant, *others), parts=parts
    )


def _contracted(equation: Any, inputs: Sequence[Value]) -> Value:
    """dot_general of an affine value with an array that masks do not touch."""
    masked = [isinstance(value, Affine) for value in inputs]
    if all(masked) or inputs[masked.index(True)].log:
        return Opaque("dot_general")
    side = masked.index(True)
    value = inputs[side]

    def operands(own: Array) -> list[Array]:
        return [own, inputs[1]] if side == 0 else [inputs[0], own]

    def change(part: MarkerPart) -> MarkerPart:
        sums = equation.params["dimension_numbers"][0]
        if part.axis is not None and part.axis in sums[side]:
            slope = _kept_apart(equation, operands(part.slope), side, part.axis)
        else:
            slope = jax.vmap(lambda b: _bind(equation, *operands(b)))(part.dense())
        return MarkerPart(slope, None, part.n_units)

    return Affine(_bind(equation, *operands(value.constant)), _each(value, change))


def _kept_apart(equation: Any, operands: list[Array], side: int, axis: int) -> Array:
    """The product without its sum over the units, which become the first axis."""
    sums, batch = equation.params["dimension_numbers"]
    place = list(sums[side]).index(axis)
    left = [d for i, d in enumerate(sums[0]) if i != place]
    right = [d for i, d in enumerate(sums[1]) if i != place]
    together = ([sums[0][place], *batch[0]], [sums[1][place], *batch[1]])
    return lax.dot_general(
        operands[0],
        operands[1],
        dimension_numbers=((left, right), together),
        precision=equation.params["precision"],
        preferred_element_type=equation.params["preferred_element_type"],
    )


def _side_by_side(equation: Any, inputs: Sequence[Value]) -> Value:
    """concatenate and stack."""
    return _linear_jointly(equation, inputs, ())


def _selected(equation: Any, inputs: Sequence[Value]) -> Value:
    """select_n, where the condition does not depend on masks."""
    condition, *cases = inputs
    if isinstance(condition, Affine):
        return Opaque("select_n")
    return _linear_jointly(equation, cases, (condition,))


def _linear_jointly(
    equation: Any, inputs: Sequence[Value], before: tuple[Any, ...]
) -> Value:
    """Operations that move the elements of several operands into one."""
    if any(isinstance(value, Affine) and value.log for value in inputs):
        return Opaque(equation.primitive.name)
    constants = [v.constant if isinstance(v, Affine) else v for v in inputs]
    units = {
        name: part.n_units
        for value in inputs
        if isinstance(value, Affine)
        for name, part in value.parts.items()
    }

    def part(name: str) -> MarkerPart:
        slopes = [_slope(v, name, units[name]) for v in inputs]
        slope = jax.vmap(lambda *own: _bind(equation, *before, *own))(*slopes)
        return MarkerPart(slope, None, units[name])

    return Affine(
        _bind(equation, *before, *constants), {name: part(name) for name in units}
    )


def _slope(value: Value, name: str, n_units: int) -> Array:
    if not isinstance(value, Affine):
        return jnp.zeros((n_units, *jnp.shape(value)), jnp.result_type(value))
    if name not in value.parts:
        return jnp.zeros((n_units, *value.constant.shape), value.constant.dtype)
    return value.parts[name].dense()


_SUMS = {"cumsum", "reduce_sum"}
RULES: dict[str, Rule] = {
    "add": _signed_sum,
    "add_any": _signed_sum,
    "sub": _signed_sum,
    "mul": _product,
    "div": _product,
    "neg": _negative,
    "exp": _exponential,
    "log": _logarithm,
    "convert_element_type": _converted,
    "broadcast_in_dim": _broadcast,
    "reduce_sum": _summed,
    "dot_general": _contracted,
    "concatenate": _side_by_side,
    "stack": _side_by_side,
    "select_n": _selected,
    **dict.fromkeys(
        "reshape squeeze transpose slice rev copy cumsum gather dynamic_slice".split(),
        _linear_first,
    ),
}
