"""Charts as static SVG: drawn once, shown anywhere, coloured by the page's style."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from caveat.evaluation.estimates import Array
from caveat.reports.markup import text

WIDTH, HEIGHT = 360, 250
_TOP, _RIGHT, _BOTTOM = 14, 14, 46
_LETTER = 6.7  # width of a character of 12 units, generously


@dataclass(frozen=True)
class Scale:
    """From numbers to places on one axis.

    Attributes
    ----------
    low, high : float
        The ends of the axis.
    """

    low: float
    high: float

    @classmethod
    def around(cls, *values: Any, pad: float = 0.04, least: float | None = None) -> Any:
        """A scale that holds all finite values, with a little room.

        Parameters
        ----------
        *values : array
            Of any shape.
        pad : float
            Room on both sides, as a share of the range.
        least : float, optional
            Where the scale begins instead.
        """
        flat = np.concatenate([np.ravel(np.asarray(v, dtype=float)) for v in values])
        flat = flat[np.isfinite(flat)]
        low, high = (float(flat.min()), float(flat.max())) if len(flat) else (0.0, 1.0)
        low = low if least is None else least
        if not high - low > 1e-9 * max(abs(low), abs(high), 1e-300):
            room = 0.5 * abs(high) or 1.0
            low, high = low - (room if least is None else 0.0), high + room
        else:
            room = pad * (high - low)
            low, high = low - (room if least is None else 0.0), high + room
        return cls(low, high)

    def ticks(self, most: int = 5) -> list[float]:
        """Round numbers along the axis, at most so many."""
        span = self.high - self.low
        if not (math.isfinite(span) and span > 0.0):
            return []
        step = 10.0 ** math.floor(math.log10(span / most))
        step *= next(m for m in (1, 2, 5, 10) if span / (step * m) <= most)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [k * step for k in range(first, last + 1)]


def tick_labels(ticks: Sequence[float], percent: bool = False) -> list[str]:
    """Labels with as many decimals as the step needs, and no more."""
    values = [100.0 * t if percent else t for t in ticks]
    step = values[1] - values[0] if len(values) > 1 else (values or [1.0])[0]
    size = max(map(abs, values), default=0.0)
    end = " %" if percent else ""
    if size >= 1e6 or 0.0 < size < 1e-3:
        labels = [f"{v:.2g}".replace("e+0", "e").replace("e-0", "e-") for v in values]
    else:
        decimals = max(0, -math.floor(math.log10(abs(step)) + 1e-9)) if step else 0
        labels = [f"{v:,.{decimals}f}" for v in values]
    return [label.replace("-", "−") + end for label in labels]


@dataclass
class Chart:
    """One chart: marks are added, and ``render`` writes it.

    Attributes
    ----------
    identifier : str
        Its id in the page.
    title, description : str
        What it shows, and what can be read from it: its text alternative.
    x, y : Scale
        The axes.
    x_label, y_label : str
        Their names, with units.
    x_percent, y_percent : bool
        Whether ticks are shares in percent.
    """

    identifier: str
    title: str
    description: str
    x: Scale
    y: Scale
    x_label: str = ""
    y_label: str = ""
    x_percent: bool = False
    y_percent: bool = False
    height: int = HEIGHT
    _marks: list[str] = field(default_factory=list)
    _hits: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._y_ticks = self.y.ticks()
        self._y_labels = tick_labels(self._y_ticks, self.y_percent)
        longest = max(map(len, self._y_labels), default=1)
        self._left = 30 + _LETTER * min(longest, 11)

    @property
    def frame(self) -> tuple[float, float, float, float]:
        """Left, right, top and bottom of the plotting area."""
        return self._left, WIDTH - _RIGHT, _TOP, self.height - _BOTTOM

    def at_x(self, values: Any) -> Array:
        """Places along the first axis."""
        left, right, _, _ = self.frame
        share = (np.asarray(values, dtype=float) - self.x.low) / (
            self.x.high - self.x.low
        )
        return left + np.clip(share, -0.02, 1.02) * (right - left)

    def at_y(self, values: Any) -> Array:
        """Places along the second axis, which points upwards."""
        _, _, top, bottom = self.frame
        share = (np.asarray(values, dtype=float) - self.y.low) / (
            self.y.high - self.y.low
        )
        return bottom - np.clip(share, -0.02, 1.02) * (bottom - top)

    def line(self, xs: Any, ys: Any, kind: str) -> None:
        """A line through points; those that are not finite are left out."""
        points = _points(self.at_x(xs), self.at_y(ys))
        if points:
            self._add(f'<path class="{kind}" fill="none" d="M{"L".join(points)}"/>')

    def band(self, xs: Any, low: Any, high: Any, kind: str = "band") -> None:
        """The area between two lines."""
        there = _points(self.at_x(xs), self.at_y(high))
        back = _points(self.at_x(xs), self.at_y(low))[::-1]
        if len(there) > 1:
            self._add(f'<path class="{kind}" d="M{"L".join(there + back)}Z"/>')

    def dots(self, xs: Any, ys: Any, kind: str, radius: float = 3.0) -> None:
        """Points, as lines without length and with round ends: one path for all."""
        path = "".join(f"M{point}h0" for point in _points(self.at_x(xs), self.at_y(ys)))
        if path:
            self._add(
                f'<path class="dots {kind}" fill="none" stroke-width="{2 * radius:.1f}"'
                f' d="{path}"/>'
            )

    def crosses(self, xs: Any, ys: Any, kind: str) -> None:
        """Points as crosses: told from dots also without colour."""
        places = _points(self.at_x(xs), self.at_y(ys))
        path = "".join(f"M{point}m-3 -3l6 6m-6 0l6 -6" for point in places)
        if path:
            self._add(f'<path class="{kind}" fill="none" d="{path}"/>')

    def uprights(self, xs: Any, low: Any, high: Any, kind: str) -> None:
        """Vertical bars from low to high, such as intervals, as one path."""
        ends = zip(self.at_x(xs), self.at_y(low), self.at_y(high), strict=True)
        path = "".join(
            f"M{a:.1f} {b:.1f}V{c:.1f}" for a, b, c in ends if math.isfinite(a + b + c)
        )
        if path:
            self._add(f'<path class="{kind}" fill="none" d="{path}"/>')

    def bars(
        self,
        edges: Any,
        heights: Any,
        kind: str,
        tips: Sequence[str],
        hits: bool = True,
    ) -> None:
        """A histogram."""
        left = self.at_x(np.asarray(edges, dtype=float)[:-1])
        right = self.at_x(np.asarray(edges, dtype=float)[1:])
        base, tops = float(self.at_y(0.0)), self.at_y(heights)
        gap = 1.0 if len(left) < 40 else 0.4
        for a, b, top, tip in zip(left, right, tops, tips, strict=True):
            if base - top > 0.0:
                self._add(
                    f'<rect class="{kind}" x="{a + gap / 2:.1f}" y="{top:.1f}" '
                    f'width="{max(b - a - gap, 0.5):.1f}" height="{base - top:.1f}"/>'
                )
            if hits:
                self._hit(a, b - a, tip)

    def upright(self, x: float, kind: str) -> None:
        """One line from bottom to top."""
        self.uprights([x], [self.y.low], [self.y.high], kind)

    def outline(self, edges: Any, heights: Any, kind: str) -> None:
        """A histogram as the line over its bars."""
        walls = np.repeat(np.asarray(edges, dtype=float), 2)
        tops = np.concatenate([[0.0], np.repeat(heights, 2), [0.0]])
        self.line(walls, tops, kind)

    def tips(self, xs: Any, tips: Sequence[str]) -> None:
        """What stands at each x, shown when a reader points there."""
        places = self.at_x(xs)
        left, right, _, _ = self.frame
        if len(places) == 0:
            return
        order = np.argsort(places, kind="stable")
        sorted_places = places[order]
        middles = 0.5 * (sorted_places[1:] + sorted_places[:-1])
        edges = np.concatenate([[left], middles, [right]])
        for k, row in enumerate(order):
            self._hit(edges[k], edges[k + 1] - edges[k], tips[row])

    def marker(self, x: float, y: float) -> None:
        """A mark that the script moves."""
        a, b = float(self.at_x(x)), float(self.at_y(y))
        _, _, top, bottom = self.frame
        self._add(
            f'<g class="marker" transform="translate({a:.1f} 0)">'
            f'<path class="guide" d="M0 {top}V{bottom}"/>'
            f'<circle class="now" cx="0" cy="{b:.1f}" r="5"/></g>'
        )

    def label(self, x: float, y: float, words: str, anchor: str = "start") -> None:
        """A few words inside the chart."""
        a, b = float(self.at_x(x)), float(self.at_y(y))
        self._add(
            f'<text class="note" x="{a:.1f}" y="{b:.1f}" text-anchor="{anchor}">'
            f"{text(words)}</text>"
        )

    def render(self) -> str:
        """The whole chart as an SVG element."""
        name = self.identifier
        return (
            f'<svg class="chart" id="{name}" viewBox="0 0 {WIDTH} {self.height}" '
            f'role="img" aria-labelledby="{name}-t {name}-d" '
            f'data-frame="{" ".join(f"{v:.1f}" for v in self.frame)}" '
            f'data-scale="{self.x.low!r} {self.x.high!r} {self.y.low!r} '
            f'{self.y.high!r}"><title id="{name}-t">{text(self.title)}</title>'
            f'<desc id="{name}-d">{text(_spaced(self.description))}</desc>'
            f"{self._axes()}{''.join(self._marks)}"
            f'<g class="hits" fill="transparent">{"".join(self._hits)}</g></svg>'
        )

    def _axes(self) -> str:
        left, right, top, bottom = self.frame
        parts = [
            f'<g class="axes" aria-hidden="true"><path class="axis" fill="none" '
            f'd="M{left:.1f} {bottom:.1f}H{right:.1f}"/>'
        ]
        for tick, shown in zip(self._y_ticks, self._y_labels, strict=True):
            place = float(self.at_y(tick))
            parts.append(
                f'<path class="rule" fill="none" d="M{left:.1f} {place:.1f}H'
                f'{right:.1f}"/><text x="{left - 6:.1f}" y="{place + 4:.1f}" '
                f'text-anchor="end">{shown}</text>'
            )
        for place, shown in self._x_labels():
            parts.append(
                f'<path class="tick" fill="none" d="M{place:.1f} {bottom:.1f}v4"/>'
                f'<text x="{place:.1f}" y="{bottom + 17:.1f}" text-anchor="middle">'
                f"{shown}</text>"
            )
        middle = 0.5 * (left + right)
        parts.append(
            f'<text class="label" x="{middle:.1f}" y="{self.height - 8}" '
            f'text-anchor="middle">{text(_cut(self.x_label, right - left))}</text>'
            f'<text class="label" transform="translate(13 {0.5 * (top + bottom):.1f}) '
            f'rotate(-90)" text-anchor="middle">'
            f"{text(_cut(self.y_label, bottom - top + 40))}</text></g>"
        )
        return "".join(parts)

    def _x_labels(self) -> list[tuple[float, str]]:
        """Places and labels of ticks, as many as fit beside each other."""
        left, right, _, _ = self.frame
        for most in (6, 5, 4, 3, 2):
            ticks = self.x.ticks(most)
            labels = tick_labels(ticks, self.x_percent)
            room = sum(len(label) * _LETTER + 12 for label in labels)
            if room <= right - left:
                break
        else:
            ticks, labels = ticks[:1], labels[:1]
        return list(zip(self.at_x(ticks).tolist(), labels, strict=True))

    def _hit(self, x: float, width: float, tip: str) -> None:
        _, _, top, bottom = self.frame
        self._hits.append(
            f'<path d="M{x:.1f} {top}h{max(width, 0.1):.1f}V{bottom}H{x:.1f}z"><title>'
            f"{text(_spaced(tip))}</title></path>"
        )

    def _add(self, mark: str) -> None:
        self._marks.append(mark)


def histogram(values: Array, n_bins: int = 30) -> tuple[Array, Array, int]:
    """Edges and counts of finite values, and how many lie beyond the last edge.

    A few values far out would leave the rest in one bin: what is more than ten times
    as far as the middle half reaches is counted, but not drawn.
    """
    finite = values[np.isfinite(values)]
    if len(finite) == 0:
        return np.array([0.0, 1.0]), np.array([0.0]), len(values)
    low, first, third, high = np.quantile(finite, [0.0, 0.25, 0.75, 1.0])
    reach = max(float(third - first), 0.02 * float(third - low))
    end = min(high, third + 10.0 * reach) if reach > 0.0 else high
    if not end - low > 1e-9 * max(abs(low), abs(end)):
        room = 0.05 * abs(low) or 0.5
        low, end = low - room, end + room
        n_bins = 1
    bins = int(np.clip(math.sqrt(len(finite)) * 1.5, 5, n_bins)) if n_bins > 1 else 1
    counts, edges = np.histogram(finite[finite <= end], bins=bins, range=(low, end))
    return edges, counts.astype(float), len(values) - int(counts.sum())


def legend(*entries: tuple[str, str]) -> str:
    """What marks stand for: (kind, words) of each, as a line below a chart."""
    parts = [
        f'<span class="key"><svg viewBox="0 0 22 12" aria-hidden="true">{_SIGNS[kind]}'
        f"</svg>{text(words)}</span>"
        for kind, words in entries
    ]
    return f'<p class="legend">{"".join(parts)}</p>'


_SIGNS = {
    "band": '<rect class="band" width="22" height="12"/>',
    "line": '<path class="line" fill="none" d="M0 6H22"/>',
    "ideal": '<path class="ideal" fill="none" d="M0 6H22"/>',
    "dot": '<path class="dots dot" stroke-width="8" d="M11 6h0"/>',
    "seen": '<path class="dots seen" stroke-width="6" d="M11 6h0"/>',
    "cross": '<path class="cross" fill="none" d="M7 2l8 8m-8 0l8 -8"/>',
    "foreign": '<path class="foreign" fill="none" d="M0 10V3H22V10"/>',
    "bar": '<rect class="bar" width="22" height="12"/>',
    "bar2": '<rect class="bar2" width="22" height="12"/>',
    "interval": '<path class="interval" fill="none" d="M11 0V12"/>',
}


def _points(xs: Array, ys: Array) -> list[str]:
    return [
        f"{a:.1f} {b:.1f}"
        for a, b in zip(xs, ys, strict=True)
        if math.isfinite(a) and math.isfinite(b)
    ]


def _spaced(words: str) -> str:
    """Percentages as in the rest of the page: 5 %, not 5%."""
    return re.sub(r"(?<=\d)%", "\u00a0%", words)


def _cut(words: str, room: float) -> str:
    most = int(room / _LETTER)
    return words if len(words) <= most else words[: max(most - 1, 1)] + "…"
