"""Scaled dot-product attention in plain operations, so that its dropout can be seen.

With dropout, torch computes attention in just these steps on a CPU; on a GPU it draws
inside a fused kernel, where no mask could be given to it.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from caveat._torch import OpOverload, is_fake, safe_softmax
from caveat.sampling.passes import Pass
from caveat.sampling.rules.dropout import times

_aten = torch.ops.aten


def attention(  # noqa: PLR0913 (torch's own arguments)
    query: Tensor,  # shape: (..., length, width), heads before
    key: Tensor,  # shape: (..., source, width)
    value: Tensor,
    attn_mask: Tensor | None = None,
    is_causal: bool = False,
    *,
    drop: Callable[[Tensor], Tensor],
    look_at_mask: bool,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """``F.scaled_dot_product_attention``, with ``drop`` applied to the weights.

    ``look_at_mask`` allows reading the mask's values, to skip the guard against rows
    that may attend to nothing when there is no such row.
    """
    if max(query.dim(), key.dim(), value.dim()) < 3:  # one head, and no batch
        mixed = attention(
            query.unsqueeze(0),
            key,
            value,
            attn_mask,
            is_causal,
            drop=drop,
            look_at_mask=look_at_mask,
            scale=scale,
        )
        return mixed.squeeze(0)
    if enable_gqa:
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], dim=-3)
        value = value.repeat_interleave(query.shape[-3] // value.shape[-3], dim=-3)
    if is_causal:
        attn_mask = _causal_mask(query, key)
        look_at_mask = True
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    weights = _softmax(_scores(query, key, scale), attn_mask, look_at_mask)
    weights = drop(weights)
    outer = weights.shape[:-2]
    mixed = torch.bmm(_flat(weights, outer), _flat(value, outer))
    return mixed.view(*weights.shape[:-1], value.shape[-1])


def _scores(query: Tensor, key: Tensor, scale: float) -> Tensor:
    """scale · query · keyᵀ; the product is scaled by the product itself."""
    outer = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2])
    left, right = _flat(query, outer), _flat(key, outer)
    start = left.new_empty(())  # not read: beta is 0
    product = torch.baddbmm(start, left, right.transpose(1, 2), beta=0, alpha=scale)
    return product.view(*outer, query.shape[-2], key.shape[-2])


def _softmax(scores: Tensor, attn_mask: Tensor | None, look_at_mask: bool) -> Tensor:
    if attn_mask is None:
        return scores.softmax(-1)
    bias = _additive(attn_mask, scores.dtype)
    has_values = not is_fake(type(bias))  # while a pass is traced there are none
    if look_at_mask and has_values and bool((bias > -math.inf).any(-1).all()):
        return (scores + bias).softmax(-1)
    return safe_softmax(scores + bias, -1)


def _flat(x: Tensor, outer: torch.Size) -> Tensor:
    """All axes but the last two as one, for a batched product."""
    if x.shape[:-2] != outer:
        x = x.expand(*outer, -1, -1)
    return x.flatten(0, -3) if outer else x[None]


def _causal_mask(query: Tensor, key: Tensor) -> Tensor:
    shape = (query.shape[-2], key.shape[-2])
    return torch.ones(shape, dtype=torch.bool, device=query.device).tril()


def _additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    if mask.dtype != torch.bool:
        return mask
    bias = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
    return bias.masked_fill(mask.logical_not(), -math.inf)


def _scaled_dot_product_attention(
    run: Pass,
    func: OpOverload,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    *causal: bool,
    **options: Any,
) -> Tensor:
    if dropout_p == 0.0:
        inputs = (query, key, value, attn_mask)
        return run.recorder.run(func, *inputs, dropout_p, *causal, **options)

    def drop(weights: Tensor) -> Tensor:
        drawn = run.mask("attention dropout", dropout_p, weights, fires=True)
        return weights if drawn is None else times(run, weights, drawn)

    clean = attn_mask is not None and not run.recorder.is_noisy(attn_mask)
    with run.recorder:
        return attention(
            query,
            key,
            value,
            attn_mask,
            *causal,
            drop=drop,
            look_at_mask=clean,
            **options,
        )


RULES: dict[OpOverload, Callable[..., Any]] = {
    _aten.scaled_dot_product_attention.default: _scaled_dot_product_attention
}
