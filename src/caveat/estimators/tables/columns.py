"""The columns of a table as models take them: robust units, bounded, encoded.

Nothing here looks at y, so one set of columns serves all folds.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

WIDEST = 20.0  # robust standard deviations beyond which an input counts as mistyped
NEAR = 8.0  # the same, beyond which the pieces of a column do not reach
BEND = 3.0  # where bounded inputs begin to bend: they stay within +-BEND
_MARGIN = 0.5  # of the range of a column, by which new rows may leave it
_FEWEST, _MOST_LEVELS = 3, 40  # of a column of whole numbers that may be codes
_ROWS_A_LEVEL = 5
_KNOTS = 8
FEW_COLUMNS = 60  # up to which columns get pieces of their own


@dataclass(frozen=True, eq=False)
class Columns:
    """What was learned of the columns of some rows.

    Attributes
    ----------
    low, high : array, shape (columns,)
        Values are clipped to these.
    least, most : array, shape (columns,)
        The ends of what was seen, within these.
    centre, scale : array, shape (columns,)
        The median, and the spread of the middle half as a standard deviation.
    levels : tuple of array
        Codes of each column that may be a category; empty for numbers.
    knots : tuple of array
        Where the pieces of each column begin and end; empty for few values.
    """

    low: Array
    high: Array
    least: Array
    most: Array
    centre: Array
    scale: Array
    levels: tuple[Array, ...]
    knots: tuple[Array, ...]

    @classmethod
    def of(cls, x: Array) -> Self:
        """Those of rows (rows, columns)."""
        centre, scale = np.median(x, 0), _robust_scale(x)
        least, most = x.min(0), x.max(0)
        margin = _MARGIN * (most - least)
        low = np.maximum(least - margin, centre - WIDEST * scale)
        high = np.minimum(most + margin, centre + WIDEST * scale)
        near = np.clip(x, centre - NEAR * scale, centre + NEAR * scale)
        each = [_parts(*pair) for pair in zip(x.T, near.T, strict=True)]
        if x.shape[1] > FEW_COLUMNS:
            each = [(np.empty(0), np.empty(0))] * x.shape[1]
        return cls(
            low,
            high,
            np.maximum(least, low),
            np.minimum(most, high),
            centre,
            scale,
            tuple(a for a, _ in each),
            tuple(b for _, b in each),
        )

    def plain(self, x: Array) -> Array:
        """In robust units, without what is absurd: for a straight line."""
        return (np.clip(x, self.low, self.high) - self.centre) / self.scale

    def seen(self, x: Array) -> Array:
        """The nearest rows whose columns all lie where values were seen."""
        return np.clip(x, self.least, self.most)

    def bounded(self, x: Array) -> Array:
        """The same, bent so that a far value counts little more than a large one."""
        z = self.plain(x)
        return z / np.sqrt(1.0 + np.square(z / BEND))

    def encoded(self, x: Array) -> Array:
        """Bounded columns, then a column for each code."""
        return np.hstack([self.bounded(x), *self._codes(x)])

    def pieces(self, x: Array) -> Array:
        """Encoded columns, then each number cut at its quantiles (a bent line)."""
        parts = [self.encoded(x)]
        for column, knots in zip(x.T, self.knots, strict=True):
            if len(knots):
                steps = (column[:, None] - knots[:-1]) / np.diff(knots)
                parts.append(np.clip(steps, 0.0, 1.0))
        return np.hstack(parts)

    @property
    def has_pieces(self) -> bool:
        """Whether any column has codes or knots."""
        return any(map(len, self.levels)) or any(map(len, self.knots))

    def _codes(self, x: Array) -> list[Array]:
        pairs = zip(x.T, self.levels, strict=True)
        return [(c[:, None] == codes).astype(float) for c, codes in pairs if len(codes)]


def _robust_scale(x: Array) -> Array:
    """Of each column: of its middle half, or of all of it, if that is constant."""
    first, third = np.quantile(x, [0.25, 0.75], axis=0)
    scale = (third - first) / 1.349
    std = x.std(0)
    scale = np.where(scale > 0, scale, std)
    return np.where(scale > 0, scale, 1.0)


def _parts(column: Array, near: Array) -> tuple[Array, Array]:
    """Codes and knots of one column.

    Knots are of its values without the far ones: a piece that ends at a mistyped value
    would be so long that its slope is anything, where no other row is.
    """
    values = np.unique(column)
    none = np.empty(0)
    if len(values) < _FEWEST:
        return none, none
    whole = bool((values == np.rint(values)).all())
    few = len(values) <= min(_MOST_LEVELS, len(column) / _ROWS_A_LEVEL)
    if whole and few:
        return values, none
    knots = np.unique(np.quantile(near, np.linspace(0, 1, _KNOTS + 1)))
    return none, knots if len(knots) > 2 else none
