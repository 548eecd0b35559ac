"""Maps of outputs that are pictures: what is predicted at each pixel, and its doubt."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap
from numpy.typing import NDArray
from torch import Tensor

from caveat import _validation as check
from caveat.errors import NoAnswerError, ParameterError, ShapeError
from caveat.evaluation.axes import COLOURS, SHADES, Display
from caveat.predictive import (
    ClassificationPredictive,
    Predictive,
    RegressionPredictive,
)

Array = NDArray[Any]
# What a map is a part of: both are drawn on one scale.
_WHOLES = {
    "entropy": "entropy",
    "mutual information": "entropy",
    "standard deviation": "standard deviation",
    "of it, epistemic": "standard deviation",
}


@dataclass(eq=False)
class MapDisplay(Display):
    """One row of a predictive whose outputs are a picture, as maps side by side.

    Of classes: the label, the entropy and the mutual information of each pixel. Of
    numbers: the mean, the standard deviation of a new observation and the part of it
    that comes from the draws. What a predictive cannot know is left out.

    Attributes
    ----------
    maps : dict of array, shape (height, width)
        By name.
    names : list of str
        Of the classes; empty for numbers.
    axes_ : list of Axes
        Of the maps, in their order; set by ``plot``.

    Examples
    --------
    >>> import torch
    >>> from caveat.predictive import CategoricalPredictive
    >>> logits = torch.randn(9, 2, 6, 8, 3, generator=torch.Generator().manual_seed(0))
    >>> display = CategoricalPredictive.from_logits(logits).plot(row=1)
    >>> list(display.maps), display.maps["label"].shape
    (['label', 'entropy', 'mutual information'], (6, 8))
    """

    maps: dict[str, Array]
    names: list[str]
    axes_: list[Axes] = field(init=False, repr=False)

    @classmethod
    def from_predictive(
        cls,
        predictive: Predictive,
        *,
        row: int = 0,
        names: Sequence[Any] | None = None,
        ax: Any = None,
        **style: Any,
    ) -> Self:
        """Take the maps of a row, and draw them.

        Parameters
        ----------
        predictive : Predictive
            With outputs of shape (height, width), axes of size 1 aside; classes last.
        row : int, default 0
            Which picture.
        names : sequence, optional
            Of the classes; by default their numbers.
        ax : sequence of Axes, optional
            One for each map; a new figure by default.
        **style
            Passed to ``Axes.imshow``.

        Returns
        -------
        MapDisplay
            Drawn.
        """
        own = predictive[_row_number(row, len(predictive))]
        if isinstance(own, ClassificationPredictive):
            n_classes = own.probs.shape[-1]
            maps = _classes(own)
            named = range(n_classes) if names is None else names
            known = [str(name) for name in check.class_names(named, n_classes)]
        elif isinstance(own, RegressionPredictive):
            maps, known = _numbers(own), []
        else:
            raise ParameterError(f"Maps are of predictives. Got {type(own).__name__}.")
        return cls(maps, known).plot(ax, **style)

    def plot(self, ax: Any = None, **style: Any) -> Self:
        """Draw the maps.

        Parameters
        ----------
        ax : sequence of Axes, optional
            One for each map; a new figure by default.
        **style
            Passed to ``Axes.imshow``.

        Returns
        -------
        MapDisplay
            Itself, with ``axes_``, ``ax_`` (the first of them) and ``figure_``.
        """
        self.axes_ = _axes(ax, len(self.maps))
        self._open(self.axes_[0])
        for where, (name, values) in zip(self.axes_, self.maps.items(), strict=True):
            where.set(title=name, xticks=[], yticks=[])
            if name == "label":
                self._draw_labels(where, values, style)
            else:
                own = {"cmap": SHADES, **self._range(name), **style}
                drawn = where.imshow(values, **own)
                where.figure.colorbar(drawn, ax=where, shrink=0.8)
        return self

    def _range(self, name: str) -> dict[str, float]:
        """A part of something has the shades of the whole, from 0 on."""
        whole = _WHOLES.get(name)
        if whole is None:
            return {}
        return {"vmin": 0.0, "vmax": float(self.maps[whole].max())}

    def _draw_labels(self, ax: Axes, values: Array, style: dict[str, Any]) -> None:
        """Each class in a colour of its own, with its name beside the map."""
        number = len(self.names)
        colours: Any = ListedColormap(COLOURS[:number])
        if number > len(COLOURS):  # no colours of their own: shades in their order
            colours = import_module("matplotlib").colormaps[SHADES].resampled(number)
        edges = BoundaryNorm(np.arange(number + 1) - 0.5, number)
        own = {"cmap": colours, "norm": edges, "interpolation": "nearest", **style}
        bar = ax.figure.colorbar(ax.imshow(values, **own), ax=ax, shrink=0.8)
        shown = np.arange(0, number, max(1, -(-number // 12)))
        bar.set_ticks(shown.tolist(), labels=[self.names[k] for k in shown])


def is_picture(event: Sequence[int]) -> bool:
    """Whether outputs of this shape are better shown as a map than as lines."""
    sizes = [size for size in event if size != 1]
    return len(sizes) == 2 and sizes[0] * sizes[1] > len(COLOURS)


def _classes(own: ClassificationPredictive) -> dict[str, Array]:
    return _known(
        {
            "label": lambda: own.label,
            "entropy": lambda: own.entropy,
            "mutual information": lambda: own.mutual_information,
        }
    )


def _numbers(own: RegressionPredictive) -> dict[str, Array]:
    return _known(
        {
            "mean": lambda: own.mean,
            "standard deviation": lambda: own.std,
            "of it, epistemic": lambda: own.epistemic_variance.sqrt(),
        }
    )


def _known(parts: dict[str, Callable[[], Tensor]]) -> dict[str, Array]:
    found = {}
    for name, part in parts.items():
        try:
            found[name] = _picture(part()[0])
        except NoAnswerError:
            continue
    return found


def _picture(values: Tensor) -> Array:
    if not is_picture(values.shape):
        raise ShapeError(
            f"A map needs outputs of shape (height, width). Got {tuple(values.shape)} "
            f"for a row."
        )
    sizes = [size for size in values.shape if size != 1]
    return values.detach().cpu().reshape(sizes).numpy()


def _row_number(row: Any, n_rows: int) -> int:
    if isinstance(row, bool) or not hasattr(row, "__index__"):
        raise ParameterError(f"row must be the number of a row. Got {row!r}.")
    number = row.__index__()
    if not -n_rows <= number < n_rows:
        raise ParameterError(f"row must be below {n_rows}. Got {number}.")
    return number % n_rows


def _axes(ax: Any, number: int) -> list[Axes]:
    if ax is None:
        size = {"figsize": (3.2 * number, 2.8), "squeeze": False}
        _, grid = import_module("matplotlib.pyplot").subplots(
            1, number, layout="constrained", **size
        )
        return list(grid[0])
    given = list(np.ravel(np.asarray(ax, dtype=object)))
    if len(given) != number:
        raise ParameterError(
            f"ax must be {number} axes, one for each map. Got {len(given)}."
        )
    return given
