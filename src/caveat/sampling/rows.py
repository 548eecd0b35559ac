"""Where the rows of a batch lie inside a model, and whether they are kept apart.

A mask is shared by all rows, so it must be known which axis of each site's tensor they
are on. Sizes alone would be guessing: a sequence may be as long as the batch is wide,
and heads may be folded into the batch in either order. So the model runs once on rows
(a, b) and once on rows (b, a, a). The axis that grows from 2k to 3k, and whose content
moves accordingly, carries the rows.

Rows that influence each other must not share masks at all: a mean over rows with one
mask has the variance of a single row. The two runs show means, sums and sorting, but a
maximum does not care for repeated rows. So the model also runs on (a, a) and on (b, b),
where each row has only itself beside it, and must give the same again.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from caveat.sampling.inputs import Batch
from caveat.sampling.noise import Layout
from caveat.sampling.sparse import is_sparse
from caveat.sampling.trees import leaves_of

TURNED = (1, 0, 0)  # the rows of the second run, as rows of the first
EXACT = 1e-6  # tolerance for what is computed in the same way from the same numbers
_STEP = 0.1  # how far a made-up row lies from a given one, in its own units


def find_layout(
    two: Tensor | None, three: Tensor | None, *, guess: bool = False
) -> Layout | None:
    """The layout of a tensor seen for rows (a, b) and again for rows (b, a, a).

    None if no axis or more than one reading fits; with ``guess`` the usual reading is
    taken among several (for a batch of one row it does not matter which).
    """
    if two is None or three is None or two.dim() != three.dim():
        return None
    if two.is_nested or three.is_nested:
        return None
    two, three = two.detach(), three.detach()
    grown = [d for d in range(two.dim()) if two.shape[d] != three.shape[d]]
    if len(grown) != 1 or two.shape[grown[0]] * 3 != three.shape[grown[0]] * 2:
        return None
    axis, factor = grown[0], two.shape[grown[0]] // 2
    if two.is_meta:  # a shape without content: folded rows are anyone's guess
        return Layout(axis) if factor == 1 else None
    readings = [Layout(axis, factor)]
    if factor > 1:
        readings.append(Layout(axis, factor, rows_first=False))
    fitting = [layout for layout in readings if _moves(two, three, layout)]
    return fitting[0] if len(fitting) == 1 or (fitting and guess) else None


def _moves(two: Tensor, three: Tensor, layout: Layout) -> bool:
    left = two.reshape(layout.split(two.shape, 2))
    right = three.reshape(layout.split(three.shape, 3))
    order = torch.tensor(TURNED, device=two.device)
    return is_close(right, left.index_select(layout.row_axis, order))


def is_close(found: Tensor, expected: Tensor, tolerance: float = 1e-4) -> bool:
    """Equal up to the rounding of sums that are added up in another order."""
    if found.is_nested and expected.is_nested and found.layout is torch.jagged:
        found, expected = found.values(), expected.values()
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return False
    found, expected = found.detach(), expected.detach()
    if is_sparse(found):
        found, expected = found.to_dense(), expected.to_dense()
    if not (expected.is_floating_point() or expected.is_complex()):
        return torch.equal(expected, found)
    tolerance = max(tolerance, tolerance * 1e4 * torch.finfo(expected.dtype).eps ** 0.5)
    finite = expected.abs().nan_to_num(posinf=0.0)
    scale = float(finite.max()) if finite.numel() else 0.0
    return torch.allclose(
        found, expected, rtol=tolerance, atol=tolerance * scale, equal_nan=True
    )


def same_numbers(first: Any, again: Any, tolerance: float = EXACT) -> bool:
    """Whether two outputs are equal, up to sums added up in another order."""
    left, right = leaves_of(first), leaves_of(again)
    return len(left) == len(right) and all(
        is_close(two, one, tolerance)
        for one, two in zip(left, right, strict=True)
        if isinstance(one, Tensor) and isinstance(two, Tensor)
    )


def output_layouts(two: Any, three: Any) -> tuple[Layout | None, ...]:
    """Where the rows lie in each leaf of an output."""
    return tuple(
        find_layout(left, right, guess=True) if _are_tensors((left, right)) else None
        for left, right in zip(leaves_of(two), leaves_of(three), strict=False)
    )


# ------------------------------------------------------------ rows kept apart


class Outputs(NamedTuple):
    """What a model returns for rows (a, b), (b, a, a), (a, a) and (b, b).

    The last two are None where there is but one row.
    """

    two: Any
    three: Any
    first: Any = None
    second: Any = None


def are_apart(outputs: Outputs) -> bool:
    """Whether every output of a row depends on that row alone."""
    leaves = [leaves_of(output) for output in outputs if output is not None]
    if len({len(of_one) for of_one in leaves}) > 1:
        return False
    tensors = [same for same in zip(*leaves, strict=True) if _are_tensors(same)]
    if outputs.first is None:  # one row: nothing to be kept apart from
        return all(
            find_layout(two, three, guess=True) is not None
            for two, three in tensors
            if two.shape != three.shape
        )
    return all(_is_apart(*same) for same in tensors)


def _are_tensors(values: Sequence[Any]) -> bool:
    return all(isinstance(value, Tensor) for value in values)


def _is_apart(two: Tensor, three: Tensor, first: Tensor, second: Tensor) -> bool:
    layout = find_layout(two, three, guess=True)
    if layout is None:  # no rows in it: then no row may have a say in it
        return all(is_close(other, two, EXACT) for other in (three, first, second))
    return all(
        alone.shape == two.shape
        and is_close(_row(two, layout, number), _row(alone, layout, number))
        for number, alone in enumerate((first, second))
    )


def _row(tensor: Tensor, layout: Layout, number: int) -> Tensor:
    split = tensor.reshape(layout.split(tensor.shape, 2))
    return split.select(layout.row_axis, number)


# ------------------------------------------------------------ rows to look at


def two_rows(batch: Batch) -> Batch:
    """Two rows of the batch that differ, if any do."""
    return batch.take(batch.two_rows())


def varied(pair: Batch) -> Batch | None:
    """A pair of equal rows with the second one changed; None if it cannot be.

    Equal rows show nothing of where they are, nor that they are mixed. Real numbers
    are moved a little, whole ones rotated (they may be names of things).
    """
    leaves = [
        _changed(leaf, pair.axis) if own else leaf
        for leaf, own in zip(pair.leaves, pair.batched, strict=True)
    ]
    other = replace(pair, leaves=tuple(leaves))
    return other if other.two_rows() != (0, 0) else None


def _changed(leaf: Tensor, axis: int) -> Tensor:
    if is_sparse(leaf):
        return _changed(leaf.to_dense(), axis).to_sparse(layout=leaf.layout)
    row = leaf.select(axis, 1)
    if leaf.is_floating_point():
        wave = torch.arange(row.numel(), dtype=torch.float64).cos().view(row.shape)
        size = row.abs().nan_to_num(posinf=0.0).amax().clamp(min=1.0)
        row = row + (_STEP * size * wave.to(row.device)).to(row.dtype)
    elif row.dim():
        row = row.roll(1, -1)
    return torch.stack([leaf.select(axis, 0), row], axis)
