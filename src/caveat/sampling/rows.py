"""Where the rows of a batch lie inside a model.

A mask is shared by all rows, so it must be known which axis of each site's tensor they
are on. Sizes alone would be guessing: a sequence may be as long as the batch is wide,
and heads may be folded into the batch in either order. So the model runs once on rows
(a, b) and once on rows (b, a, a). The axis that grows from 2k to 3k, and whose content
moves accordingly, carries the rows.
"""

import torch
from torch import Tensor

from caveat.sampling.noise import Layout

TURNED = (1, 0, 0)  # the rows of the second run, as rows of the first


def find_layout(
    two: Tensor | None, three: Tensor | None, *, guess: bool = False
) -> Layout | None:
    """The layout of a tensor seen for rows (a, b) and again for rows (b, a, a).

    None if no axis or more than one reading fits; with ``guess`` the usual reading is
    taken among several (for a batch of one row it does not matter which).
    """
    if two is None or three is None or two.dim() != three.dim():
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
    expected = left.index_select(layout.row_axis, order)
    if not two.is_floating_point():
        return torch.equal(expected, right)
    tolerance = max(1e-4, torch.finfo(two.dtype).eps ** 0.5)
    finite = expected.abs().nan_to_num(posinf=0.0)
    scale = float(finite.max()) if finite.numel() else 0.0
    return torch.allclose(
        right, expected, rtol=tolerance, atol=tolerance * scale, equal_nan=True
    )
