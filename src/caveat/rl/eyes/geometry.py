"""Walls, and what a ray meets first."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]

WIDTH, HEIGHT = 700.0, 500.0


def _box(left: float, top: float, right: float, bottom: float) -> list[list[float]]:
    """Four segments (x, y, x, y); the left side is the last of them."""
    return [
        [left, top, right, top],
        [right, top, right, bottom],
        [right, bottom, left, bottom],
        [left, bottom, left, top],
    ]


WALLS: Array = np.array(
    [
        *_box(10.0, 10.0, WIDTH - 10.0, HEIGHT - 10.0),
        *_box(100.0, 100.0, 300.0, 400.0)[:3],
        *_box(400.0, 100.0, 600.0, 400.0)[:3],
    ]
)  # shape: (10, 4); the inner boxes are open to the left
_CORNERS, _EDGES = WALLS[:, :2], WALLS[:, 2:] - WALLS[:, :2]


def clear_way(starts: Array, rays: Array) -> Array:
    """The part of each ray that lies before the first wall (ledger E131).

    A ray p + t u meets the wall a + s e where t = (a - p) × e / u × e and
    s = (a - p) × u / u × e both lie strictly between 0 and 1.

    Parameters
    ----------
    starts : array, shape (n, 2)
        Where the rays start, p.
    rays : array, shape (n, rays, 2)
        Their whole length as vectors, u.

    Returns
    -------
    array, shape (n, rays)
        The smallest t, and 1 where there is no wall in the way.

    Examples
    --------
    >>> import numpy as np
    >>> from caveat.rl.eyes.geometry import clear_way
    >>> float(clear_way(np.array([[50.0, 50.0]]), np.array([[[-80.0, 0.0]]]))[0, 0])
    0.5
    """
    offset = _CORNERS - starts[:, None]  # shape: (n, walls, 2)
    reach = offset[..., 0] * _EDGES[:, 1] - offset[..., 1] * _EDGES[:, 0]
    x, y = rays[..., 0, None], rays[..., 1, None]  # shape: (n, rays, 1)
    across = x * _EDGES[:, 1] - y * _EDGES[:, 0]  # shape: (n, rays, walls)
    place = offset[:, None, :, 0] * y - offset[:, None, :, 1] * x
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # E131
        t = reach[:, None] / across
        place /= across
    met = (t > 0.0) & (t < 1.0) & (place > 0.0) & (place < 1.0)
    first: Array = np.where(met, t, 1.0).min(-1)
    return first
