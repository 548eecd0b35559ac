"""One pass y(x, ω): its sites, and the noise that each of them gets.

A :class:`Pass` names the sites as the model reaches them (module path and how often
that module has drawn before, so that a branch elsewhere does not shift the names) and
asks its :class:`Omega` for their noise. How a random operation uses that noise is
written in ``caveat.sampling.rules``.
"""

import time
import weakref
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from caveat import _validation as check
from caveat._random import stream_key
from caveat._torch import OpOverload
from caveat.errors import UnsupportedModelError
from caveat.sampling import keras_layers
from caveat.sampling.copying import ModuleStack
from caveat.sampling.host import MARK
from caveat.sampling.noise import BOUNDED, Law, Layout, Mask, NoiseSpec
from caveat.sampling.ragged import Ragged
from caveat.sampling.raw import Raw
from caveat.sampling.recorder import Recorder

_aten = torch.ops.aten

_NESTED = """There is dropout on a nested tensor of the strided layout in {where}. It
has no shape that a mask could have. Make it with layout=torch.jagged, or pad it."""

# What to do in place of an operation; None for operations that draw nothing.
RuleBook = Callable[[OpOverload], Callable[..., Any] | None]


@dataclass(frozen=True)
class SiteCall:
    """One random operation of one pass.

    ``fires`` says whether it would have drawn as the model called it, ``is_mask``
    whether it is dropout. Sites of rate 0 are counted from -1 down: they draw nothing
    and must not shift the names of the others. Nor must numbers that may turn out not
    to matter, as in ``torch.rand([]) < 0``: ``bounded`` ones have their own count.
    """

    path: str
    occurrence: int
    kind: str
    rate: float
    shape: tuple[int, ...]
    fires: bool
    is_mask: bool = True
    bounded: bool = False

    @property
    def name(self) -> str:
        """What the noise of this site is addressed by."""
        return f"{self.path}#{'b' if self.bounded else ''}{self.occurrence}"

    @property
    def draws(self) -> bool:
        """Whether there is anything to draw."""
        return self.occurrence >= 0


class Drawn(NamedTuple):
    """Noise in hand, and the layout of the tensor that it is for."""

    noise: Tensor
    layout: Layout | None


class Omega(Protocol):
    """Decides the noise of every site of a pass."""

    seed: int
    draw: int
    shared: bool

    @property
    def looks(self) -> bool:
        """Whether nothing is drawn, but looked where the rows lie."""

    @property
    def rows(self) -> int:
        """How many rows the batch has."""

    def visit(self, site: SiteCall, tensor: Tensor | None, *, has_values: bool) -> None:
        """The pass has reached ``site``, which acts on ``tensor``.

        Without values only the shape of ``tensor`` means something.
        """

    def spec(
        self, site: SiteCall, law: Law, shape: Sequence[int], like: Tensor
    ) -> tuple[NoiseSpec, Layout | None] | None:
        """The noise of ``site``, or None to leave everything as it is."""


@dataclass
class DrawOmega:
    """Draw number ``draw`` of ω, for the rows from ``first_row`` on.

    ``tokens`` are the axes of a site that end with the last token of the sequence,
    which is number ``length``, counted from 1. If a cache holds the tokens before,
    they begin further along; masks are addressed by where a token stands. ``misfits``
    are the sites met whose tensor has not the size that its layout says.
    """

    seed: int
    draw: int
    layouts: Mapping[str, Layout]
    rows: int
    first_row: int = 0
    shared: bool = True
    stratified: bool = False
    tokens: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    length: int = 0
    misfits: set[str] = field(default_factory=set)

    @property
    def looks(self) -> bool:
        """It draws."""
        return False

    def visit(self, site: SiteCall, tensor: Tensor | None, *, has_values: bool) -> None:
        """Nothing to note: the noise follows from the name alone."""

    def spec(
        self, site: SiteCall, law: Law, shape: Sequence[int], like: Tensor
    ) -> tuple[NoiseSpec, Layout | None]:
        """Noise for every element, or for every element of one row if it is shared."""
        layout = self.layouts.get(site.name)
        spec = NoiseSpec(
            site.name,
            law,
            tuple(shape),
            like.dtype,
            like.device,
            stratified=self.stratified,
        )
        if layout is None or not layout.fits(shape, self.rows):
            # Rows cannot be told apart: each element has its own.
            if layout is not None and self.rows > 1 and all(shape):
                self.misfits.add(site.name)
            starts = self._starts(site, shape)
            return replace(spec, starts=_or_none(starts)), None
        split = list(layout.split(shape, self.rows))
        starts = self._starts(site, split)
        if self.shared:
            split[layout.row_axis] = 1
        else:
            starts[layout.row_axis] = self.first_row
        return replace(spec, shape=tuple(split), starts=_or_none(starts)), layout

    def _starts(self, site: SiteCall, shape: Sequence[int]) -> list[int]:
        """Where the tokens of a site begin."""
        axes = self.tokens.get(site.name, ())
        return [
            max(self.length - size, 0) if axis in axes else 0
            for axis, size in enumerate(shape)
        ]


def _or_none(starts: Sequence[int]) -> tuple[int, ...]:
    return tuple(starts) if any(starts) else ()


class Pass:
    """A pass under way.

    Attributes
    ----------
    sites : list of SiteCall
        The sites reached so far.
    recorder : Recorder
        Runs the operations; with ``record`` it keeps the tape of the noisy ones.
    arguments : tuple
        What the model was called with, for it to change.
    started, finished : float
        When the model was called and when it returned.
    seeded : bool
        The model seeded torch's generator, so that what follows is no noise.
    moved : bool
        Torch's generator was used where we did not see it; known if it was marked.
    ragged : set of str
        In looks, names of the sites on tensors whose number of entries values decide.
    """

    def __init__(
        self, stack: ModuleStack, omega: Omega, rules: RuleBook, *, record: bool
    ) -> None:
        self.omega = omega
        self.sites: list[SiteCall] = []
        me = weakref.proxy(self)  # freed with the pass, not by the garbage collector
        self.recorder = Recorder(
            lambda func: Pass._rule(me, func),
            record=record,
            ragged=Ragged(omega.rows) if omega.looks else None,
        )
        self.arguments: Any = ()
        self.started = self.finished = 0.0  # seconds, on the clock of perf_counter
        self.seeded = self.moved = False
        self.ragged: set[str] = set()
        self._seed = 0
        self._rules = rules
        self._stack = stack
        self._raw: list[tuple[SiteCall, Raw]] = []
        self._seen: Counter[tuple[str, bool, bool]] = Counter()

    @property
    def names(self) -> frozenset[str]:
        """Names of the sites that have drawn."""
        return frozenset(site.name for site in self.sites if site.draws)

    @property
    def reached(self) -> frozenset[str]:
        """Paths of the modules that have run."""
        return frozenset(self._stack.reached)

    @property
    def where(self) -> str:
        """The module that is running, for messages."""
        return f"module {self._stack.path!r}" if self._stack.path else "the model"

    def start(self) -> None:
        """The model is called now."""
        self._seed = torch.initial_seed()
        self.started = time.perf_counter()

    def is_seeded(self, generator: torch.Generator | None) -> bool:
        """Whether numbers of a generator, or of torch's own, are the model's choice.

        They are if the model has seeded it in this pass. A generator that it holds
        carries our mark until then (``copying.py``); one without it was made just now.
        Layers of Keras make one each time, with a seed that we gave them.
        """
        if generator is not None:
            return generator.initial_seed() not in (MARK, keras_layers.SEED)
        seeded = torch.initial_seed() != self._seed
        self.seeded = self.seeded or seeded
        return seeded

    def mask(
        self,
        kind: str,
        rate: float,
        tensor: Tensor,
        *,
        fires: bool,
        shape: Sequence[int] | None = None,
        scale: float | None = None,
        has_rows: bool = True,
    ) -> Drawn | None:
        """The dropout mask of the site reached now; None if nothing is dropped."""
        self._refuse_nested(tensor)
        rate = check.drop_rate(rate, where=f"{kind} in {self.where}")
        shape = tensor.shape if shape is None else shape
        batch = tensor if has_rows else None
        site = self._reach(kind, rate, shape, fires=fires, is_mask=True, tensor=batch)
        if rate == 0.0 or tensor.numel() == 0:
            return None
        keep_prob = 1.0 - rate
        law = Mask(keep_prob, 1.0 / keep_prob if scale is None else scale)
        return self._draw(site, law, shape, tensor)

    def values(
        self,
        kind: str,
        law: Law,
        like: Tensor,
        *,
        rate: float = 0.0,
        fires: bool = True,
        content: Tensor | None = None,
    ) -> Tensor:
        """Noise values in the shape of ``like``, in memory of their own.

        ``content`` has its rows where ``like`` has them, and numbers that may show it.
        """
        self._refuse_nested(like)
        shape = tuple(like.shape)
        site = self._reach(
            kind,
            rate,
            shape,
            fires=fires,
            is_mask=False,
            tensor=like if content is None else content,
            has_values=content is not None,
            bounded=isinstance(law, BOUNDED),
        )
        drawn = self._draw(site, law, shape, like)
        if drawn is None:
            return self._note_raw(site, law, torch.full_like(like, law.centre))
        noise, layout = drawn
        if layout is not None:
            split = layout.split(shape, shape[layout.axis] // layout.factor)
            noise = self.recorder.run(_aten.expand.default, noise, split)
        copy = {"memory_format": torch.contiguous_format}
        noise = self.recorder.run(_aten.clone.default, noise, **copy)
        noise = self.recorder.run(_aten.view.default, noise, shape)
        return self._note_raw(site, law, noise)

    def settle(self) -> None:
        """Forget the sites that nothing can depend on, when the model has returned."""
        idle = {id(site) for site, raw in self._raw if raw.idle}
        self.sites = [site for site in self.sites if id(site) not in idle]
        self._raw.clear()

    def own_generator(self, kind: str, like: Tensor) -> torch.Generator:
        """A generator seeded by the address of the site reached now."""
        shape = tuple(like.shape)
        site = self._reach(kind, 0.0, shape, fires=True, is_mask=False, tensor=like)
        generator = torch.Generator(like.device)
        address = f"{site.name}@{self.omega.draw}"
        return generator.manual_seed(stream_key(self.omega.seed, address) >> 1)

    def _refuse_nested(self, tensor: Tensor) -> None:
        if tensor.is_nested:
            raise UnsupportedModelError(_NESTED.format(where=self.where))

    def _reach(
        self,
        kind: str,
        rate: float,
        shape: Sequence[int],
        *,
        fires: bool,
        is_mask: bool,
        tensor: Tensor | None,
        has_values: bool | None = None,
        bounded: bool = False,
    ) -> SiteCall:
        path = self._stack.path
        draws = rate > 0 or not is_mask
        count = self._seen[path, draws, bounded]
        self._seen[path, draws, bounded] += 1
        number = count if draws else -1 - count
        site = SiteCall(path, number, kind, rate, tuple(shape), fires, is_mask, bounded)
        self.sites.append(site)
        if draws:
            has_values = is_mask if has_values is None else has_values
            self.omega.visit(site, tensor, has_values=has_values)
            self._note_ragged(site, tensor, has_values=has_values)
        return site

    def _note_ragged(
        self, site: SiteCall, tensor: Tensor | None, *, has_values: bool
    ) -> None:
        ragged = self.recorder.ragged
        if ragged is None or tensor is None:
            return
        # A shape that a model wrote down may have been read off such a tensor.
        sizes = () if has_values else tensor.shape[:1]
        if tensor in ragged or any(map(ragged.has_size, sizes)):
            self.ragged.add(site.name)

    def _draw(
        self, site: SiteCall, law: Law, shape: Sequence[int], like: Tensor
    ) -> Drawn | None:
        found = self.omega.spec(site, law, shape, like)
        if found is None:
            return None
        spec, layout = found
        noise = self.recorder.noise(spec, self.omega.seed, self.omega.draw)
        return Drawn(noise, layout)

    def _note_raw(self, site: SiteCall, law: Law, noise: Tensor) -> Tensor:
        self._raw.append((site, self.recorder.raw.add(noise, law)))
        return noise

    def _rule(self, func: OpOverload) -> Any:
        self.recorder.transcript.where = self._stack.path
        rule = self._rules(func)
        return None if rule is None else partial(rule, self)
