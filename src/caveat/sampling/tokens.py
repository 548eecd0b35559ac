"""Where the tokens of a sequence lie inside a model, for calls with a cache.

Under one ω the new tokens of a cached call must get the masks that they have in a pass
over the whole sequence, so masks are addressed by the place of a token in it. Which
axes of a site hold tokens shows when the model runs on one token more: those grow by
one. Such an axis ends with the last token of the sequence, be it the axis of the new
tokens or that of all the keys.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

import torch
from torch import Tensor

from caveat.errors import CaveatError
from caveat.sampling.caches import (
    grown_past,
    is_called_cache,
    longer,
    may_have_cache,
    new_tokens,
    stated_past,
    without_cache,
)
from caveat.sampling.flags import Glance
from caveat.sampling.inputs import Batch
from caveat.sampling.noise import Layout
from caveat.sampling.rows import TURNED, find_layout

Look = Callable[[Batch], Glance]


@dataclass(frozen=True)
class Tokens:
    """Where tokens lie inside a model.

    Attributes
    ----------
    axes : dict
        The axes of each site that end with the last token, by name; with the rows of
        the batch on an axis of their own.
    past : int or None
        How many tokens come before, if that follows from the shapes of the inputs;
        None if the cache says it itself.
    """

    axes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    past: int | None = None

    def length(self, batch: Batch) -> int:
        """Tokens of the sequence up to the end of this call."""
        if not self.axes:
            return 0
        past = stated_past(batch) if self.past is None else self.past
        return (past or 0) + new_tokens(batch)


@dataclass(frozen=True)
class FoundTokens:
    """Where tokens are; layouts of sites that hide them; and what is not known."""

    tokens: Tokens = field(default_factory=Tokens)
    layouts: Mapping[str, Layout] = field(default_factory=dict)
    unknown: str | None = None


def find_tokens(two: Batch, layouts: Mapping[str, Layout], look: Look) -> FoundTokens:
    """Find the tokens of a call, given by two of its rows.

    ``layouts`` say where the rows lie, ``look`` runs the model without noise.
    """
    if not may_have_cache(two):
        return FoundTokens()
    seen, stated = look(two), stated_past(two)
    past = stated
    if past is None:
        past = grown_past(two, (seen.output, seen.arguments))
    if past is None:
        unknown = "how many they are" if is_called_cache(two) else None
        return FoundTokens(unknown=unknown)
    search = _Search(two, past, dict(layouts), look)
    axes = search.axes(seen)
    lost = {
        s.path or "(the model)" for s in seen.sites if s.draws and s.name not in axes
    }
    tokens = Tokens(axes, past if stated is None else None)
    paths = ", ".join(sorted(lost)[:6])
    unknown = f"where they lie at {paths}" if lost and past else None
    return FoundTokens(tokens, search.found, unknown)


class _Search:
    """Runs on more tokens, and what they show.

    Attributes
    ----------
    found : dict
        Layouts of sites at which tokens share an axis with something else.
    """

    def __init__(
        self, two: Batch, past: int, layouts: dict[str, Layout], look: Look
    ) -> None:
        self._two, self._past = two, past
        self._layouts, self._look = layouts, look
        self.found: dict[str, Layout] = {}

    def axes(self, seen: Glance) -> dict[str, tuple[int, ...]]:
        """The axes of tokens at each site of a pass, where they can be told."""
        more = longer(self._two, self._past)
        after = self._tried(more)
        if after is not None:
            found = {
                site.name: self._at(site.name, seen, after, more) for site in seen.sites
            }
        else:
            found = self._without_cache(seen)
        return {name: axes for name, axes in found.items() if axes is not None}

    def _without_cache(self, seen: Glance) -> dict[str, tuple[int, ...] | None]:
        """There was no room for a token more: look at the new ones alone."""
        alone = without_cache(self._two, self._past)
        before = None if alone is None else self._tried(alone)
        if alone is None or before is None:
            return {}
        self._past = 0
        more = longer(alone, 0)
        after = self._tried(more)
        if after is None:
            return {}
        found = {}
        for site in seen.sites:
            axes = self._at(site.name, before, after, more)
            if axes is not None and _agree(site.shape, _shape(before, site.name), axes):
                found[site.name] = axes
        return {**found}

    def _at(
        self, name: str, before: Glance, after: Glance, more: Batch
    ) -> tuple[int, ...] | None:
        short, long = _shape(before, name), _shape(after, name)
        if short is None or long is None:
            return None
        layout = self._layouts.get(name)
        if layout is not None and _shares_axis(layout, long):
            layout = self._shared(name, after, more)
            if layout is None:
                return None
        axes = token_axes(_split(layout, short), _split(layout, long))
        if axes is None:
            layout = self._regrouped(name, layout, before, after, more)
            axes = None if layout is None else token_axes(layout.split(short, 2), long)
        return axes

    def _shared(self, name: str, after: Glance, more: Batch) -> Layout | None:
        """The layout of a site where rows and tokens share an axis."""
        turned = self._tried(more.take(TURNED))
        if turned is None:
            return None
        layout = find_layout(after.tensors[name], turned.tensors.get(name), guess=True)
        if layout is not None:
            self.found[name] = replace(layout, factor=1, tokens=True)
        return self.found.get(name)

    def _regrouped(
        self,
        name: str,
        layout: Layout | None,
        before: Glance,
        after: Glance,
        more: Batch,
    ) -> Layout | None:
        longest = self._tried(longer(more, self._past))
        last = None if longest is None else _shape(longest, name)
        short, long = before.tensors.get(name), after.tensors.get(name)
        if layout is None or last is None or short is None or long is None:
            return None
        regrouped_layout = regrouped(layout, short, long, last)
        if regrouped_layout is not None:
            self.found[name] = regrouped_layout
        return regrouped_layout

    def _tried(self, batch: Batch) -> Glance | None:
        """A look, if the model can run on this."""
        try:
            return self._look(batch)
        except CaveatError:
            raise
        except Exception:
            return None


def token_axes(short: Sequence[int], long: Sequence[int]) -> tuple[int, ...] | None:
    """The axes that grow by one with a token; None if a shape grows otherwise."""
    if len(short) != len(long):
        return None
    grown = [after - before for before, after in zip(short, long, strict=True)]
    if any(by not in (0, 1) for by in grown):
        return None
    return tuple(axis for axis, by in enumerate(grown) if by)


def regrouped(
    layout: Layout, short: Tensor, long: Tensor, longest: Sequence[int]
) -> Layout | None:
    """The layout of a site that has other axes for one token than for several.

    Attention with one query may put heads where queries were. The tensors are those of
    one, two and three tokens, for two rows. The last shape tells the axes of tokens,
    the second what the first would be like; their content must agree.
    """
    axes = token_axes(long.shape, longest)
    if layout.is_folded or not axes or long.is_meta:
        return None
    usual = tuple(n - (axis in axes) for axis, n in enumerate(long.shape))
    if math.prod(usual) != short.numel():
        return None
    start = _common(usual, short.shape)
    end = _common(usual[start:][::-1], tuple(short.shape)[start:][::-1])
    stop = len(usual) - end
    # Sizes that grow with the sequence must stay outside of what is regrouped.
    if layout.axis >= start or any(usual[a] > 1 for a in axes if start <= a < stop):
        return None
    expected = long[tuple(slice(n) for n in usual)]
    if not torch.allclose(short.reshape(usual), expected, rtol=1e-3, atol=1e-4):
        return None
    return replace(layout, regroup=(start, short.dim() - end, usual[start:stop]))


def _common(left: Sequence[int], right: Sequence[int]) -> int:
    """How many sizes two shapes begin with alike."""
    pairs = zip(left, right, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _shape(glance: Glance, name: str) -> tuple[int, ...] | None:
    shapes = (s.shape for s in glance.sites if s.draws and s.name == name)
    return next(shapes, None)


def _split(layout: Layout | None, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape of two rows with the rows on an axis of their own, as in ``layout``."""
    if layout is None:
        return shape
    return replace(layout, factor=shape[layout.axis] // 2).split(shape, 2)


def _shares_axis(layout: Layout, long: Sequence[int]) -> bool:
    """Whether rows and tokens share an axis, if a single token does not show it."""
    return layout.factor == 1 and long[layout.axis] == 4  # two rows of two tokens


def _agree(
    given: Sequence[int], alone: Sequence[int] | None, axes: tuple[int, ...]
) -> bool:
    """Whether a site is the same for new tokens alone, but for axes of tokens."""
    if alone is None or len(given) != len(alone):
        return False
    pairs = enumerate(zip(given, alone, strict=True))
    return all(left == right for axis, (left, right) in pairs if axis not in axes)
