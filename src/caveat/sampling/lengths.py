"""Sequences of another length: whether what was learned of one holds for another.

Tokens lie on the second axis of the inputs. A plan is taken over for inputs that differ
in the sizes of that axis alone, if one look at the model shows the same sites, each
with its rows where they were and all other sizes as they were, or changed as the
lengths changed. What looks otherwise is planned anew.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from caveat.sampling.caches import may_have_cache
from caveat.sampling.flags import Glance
from caveat.sampling.inputs import Batch, key_of
from caveat.sampling.noise import Layout
from caveat.sampling.passes import SiteCall

_ROWS = 2  # of a look


def family_of(batch: Batch) -> Any:
    """What inputs of different lengths share; None if they have no tokens."""
    if batch.axis != 0 or not any(map(_has_tokens, batch.leaves)):
        return None
    if may_have_cache(batch):
        return None
    pairs = zip(batch.leaves, batch.batched, strict=True)
    kinds = tuple(_kind(leaf, own) for leaf, own in pairs)
    return batch.structure.key, kinds, batch.batched, batch.part


def lengths_of(batch: Batch) -> tuple[int, ...]:
    """The sizes of the axis of tokens, in the order of the inputs."""
    return tuple(leaf.shape[1] for leaf in batch.leaves if _has_tokens(leaf))


def changed(old: Sequence[int], new: Sequence[int]) -> dict[int, int] | None:
    """Which size has become which; None if one has become two."""
    found = dict(zip(old, new, strict=True))
    again = tuple(found[size] for size in old)
    return found if again == tuple(new) else None


def holds(
    sites: Sequence[SiteCall],
    layouts: Mapping[str, Layout],
    seen: Glance,
    sizes: Mapping[int, int],
) -> bool:
    """Whether a look at other lengths met the sites that are known, where they were."""
    if len(sites) != len(seen.sites):
        return False
    pairs = zip(sites, seen.sites, strict=True)
    return all(_same(one, other, layouts, sizes) for one, other in pairs)


def _same(
    one: SiteCall,
    other: SiteCall,
    layouts: Mapping[str, Layout],
    sizes: Mapping[int, int],
) -> bool:
    if (one.name, one.kind, one.rate) != (other.name, other.kind, other.rate):
        return False
    layout = layouts.get(one.name)
    if layout is not None and not (
        layout.fits(one.shape, _ROWS) and layout.fits(other.shape, _ROWS)
    ):
        return False
    return len(one.shape) == len(other.shape) and all(
        before == after or sizes.get(before) == after
        for before, after in zip(one.shape, other.shape, strict=True)
    )


def _has_tokens(leaf: Any) -> bool:
    """Whole numbers in a table: ids, masks, kinds of tokens."""
    return (
        isinstance(leaf, Tensor)
        and not leaf.is_nested
        and leaf.dim() == 2
        and not leaf.is_floating_point()
        and not leaf.is_complex()
    )


def _kind(leaf: Any, own: bool) -> Any:
    if not isinstance(leaf, Tensor):
        return key_of(leaf)
    if leaf.is_nested:
        return leaf.dim(), leaf.dtype, leaf.layout
    sizes: list[Any] = list(leaf.shape)
    if own:
        sizes[0] = "rows"
    if _has_tokens(leaf):
        sizes[1] = "tokens"
    return (*sizes, leaf.dtype, leaf.device, leaf.layout)
