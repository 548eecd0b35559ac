"""How a value depends on masks, read off the operations that compute it.

If a value is affine in the masks z, c + sum_k b_k z_k, its mean and variance over
masks are known without drawing any, and so is the mean of its exponential. Whether it
is affine is not assumed but followed through JAX's own record of the computation (a
jaxpr), operation by operation; what is not affine is reported with the operation that
broke it. The b_k are found on the way, in time proportional to their number.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from caveat.maxent.affine import Affine, MarkerPart, Opaque
from caveat.maxent.markers import Array
from caveat.maxent.operations import RULES, Value

_CALLS = {"jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call"}


def follow(
    function: Callable[[dict[str, Array]], Sequence[Array]], units: Mapping[str, int]
) -> list[Value]:
    """The outputs of ``function`` of masks {marker: (units,)}, as they depend on them.

    Parameters
    ----------
    function : callable
        From masks by marker to a sequence of arrays.
    units : mapping of str to int
        The number of units of each marker.

    Returns
    -------
    list
        For each output an array, if no mask touches it, an Affine or an Opaque.
    """
    masks = {name: jnp.zeros(count) for name, count in units.items()}
    closed = jax.make_jaxpr(function)(masks)
    inputs = [
        Affine(mask, {name: MarkerPart(jnp.ones_like(mask), 0, len(mask))})
        for name, mask in sorted(masks.items())
    ]
    return _run(closed.jaxpr, closed.consts, inputs)


def _run(jaxpr: Any, consts: Sequence[Any], inputs: Sequence[Value]) -> list[Value]:
    known = dict(
        zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *inputs], strict=True)
    )

    def read(atom: Any) -> Value:
        return atom.val if hasattr(atom, "val") else known[atom]

    for equation in jaxpr.eqns:
        outputs = _step(equation, [read(atom) for atom in equation.invars])
        known.update(zip(equation.outvars, outputs, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _step(equation: Any, inputs: Sequence[Value]) -> list[Value]:
    if not any(isinstance(value, Affine | Opaque) for value in inputs):
        return _plain(equation, inputs)
    name = equation.primitive.name
    opaque = [value for value in inputs if isinstance(value, Opaque)]
    if opaque:
        return [opaque[0]] * len(equation.outvars)
    if name in _CALLS:
        inner = equation.params.get("jaxpr") or equation.params["call_jaxpr"]
        return _run(inner.jaxpr, inner.consts, inputs)
    if name in RULES:
        return [RULES[name](equation, inputs)]
    return [Opaque(name)] * len(equation.outvars)


def _plain(equation: Any, inputs: Sequence[Any]) -> list[Any]:
    bound = equation.primitive.get_bind_params(equation.params)
    # a pair in older releases of JAX, which pass inner functions separately
    functions, params = bound if isinstance(bound, tuple) else ((), bound)
    outputs = equation.primitive.bind(*functions, *inputs, **params)
    return list(outputs) if equation.primitive.multiple_results else [outputs]
