"""Passes that only look: nothing is drawn, and what the sites were given is kept."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from torch import Tensor, nn

from caveat.errors import CaveatError, UnsupportedModelError
from caveat.sampling.flags import Glance
from caveat.sampling.inputs import Batch
from caveat.sampling.noise import Law, Layout, NoiseSpec
from caveat.sampling.passes import SiteCall
from caveat.sampling.rows import (
    TURNED,
    Outputs,
    are_apart,
    find_layout,
    output_layouts,
    same_numbers,
    two_rows,
    varied,
)
from caveat.sampling.running import Switches, run_pass

_UNREPEATABLE = """{name} gives two answers for the same input and the same noise. It
draws from a source that cannot be seen (an operator of its own, another library, the
clock), seeds a generator by such a source (torch.seed()), or keeps count of its calls
in an object outside its modules. Draws of it would be numbers that nothing can be said
of. Draw with torch's functions, from generators that are attributes of the model; keep
counters in attributes of a module."""

T = TypeVar("T")
_EVALUATION = Switches()


def look(model: nn.Module, batch: Batch, switches: Switches = _EVALUATION) -> Glance:
    """One pass with this setting, in which nothing is dropped."""
    omega = _ProbeOmega(rows=batch.rows)
    output, run = run_pass(model, batch, omega, switches, record=False)
    return Glance(
        output,
        tuple(run.sites),
        run.reached,
        omega.tensors,
        run.seeded,
        run.moved,
        run.arguments,
        frozenset(run.ragged),
    )


class RowFindings(NamedTuple):
    """What looks at a few rows have shown.

    Attributes
    ----------
    outputs : tuple of Layout or None
        Where the rows lie in each leaf of the output.
    apart : bool
        The output of a row depends on that row alone.
    layouts : dict
        Where the rows lie at each site, by name, where that is known.
    seen : frozenset of str
        The sites that were reached.
    astray : frozenset of str
        Sites whose noise depends on the rows, but not row by row: the rows are packed,
        gathered or looped over.
    """

    outputs: tuple[Layout | None, ...]
    apart: bool
    layouts: dict[str, Layout]
    seen: frozenset[str]
    astray: frozenset[str]


def find_rows(
    model: nn.Module, batch: Batch, switches: Switches, known: Glance | None = None
) -> RowFindings:
    """Look at two rows in a few arrangements, and see whether looks repeat.

    ``known`` is an earlier look at two rows of the batch with these switches.
    """
    given = two_rows(batch)

    def rows(pair: Batch) -> RowFindings:
        two = look(model, pair, switches)
        again = known if pair is given and known else look(model, pair, switches)
        check_repeats(model, again, two)
        return _rows(model, pair, switches, two, one=batch.rows == 1)

    return _with_a_pair(batch, given, rows)


def _with_a_pair(batch: Batch, pair: Batch, function: Callable[[Batch], T]) -> T:
    """Call with two rows that differ, made up if need be and if the model runs them."""
    other = None
    if batch.rows > 1 and pair.two_rows() == (0, 0):
        other = varied(pair)
    if other is not None:
        try:
            return function(other)
        except CaveatError:
            raise
        except Exception:  # a made-up row may be one that cannot be
            pass
    return function(pair)


def _rows(
    model: nn.Module, pair: Batch, switches: Switches, two: Glance, *, one: bool
) -> RowFindings:
    three = look(model, pair.take(TURNED), switches)
    alone = [
        None if one else look(model, pair.take((row, row)), switches).output
        for row in (0, 1)
    ]
    found = {site: _layout(two, three, site, guess=one) for site in two.tensors}
    if one:
        found.update(_told_apart(model, pair, switches, two, three))
    # By values there may be as many entries as rows, and others for each row.
    ragged = two.ragged & three.ragged
    found.update(dict.fromkeys(ragged))
    astray = ragged | {
        site
        for site, layout in found.items()
        if layout is None and _depends_on_rows(two, three, site)
    }
    return RowFindings(
        output_layouts(two.output, three.output),
        are_apart(Outputs(two.output, three.output, *alone)),
        {site: layout for site, layout in found.items() if layout is not None},
        frozenset(two.tensors),
        frozenset(() if one else astray | (three.tensors.keys() - found.keys())),
    )


def _layout(
    two: Glance, three: Glance, site: str, *, guess: bool = False
) -> Layout | None:
    """Where the rows lie at a site.

    Dropout acts on the numbers that it was given. Other noise has a shape, and the
    numbers that this was taken from say something only where the shape does not.
    """
    left, right = two.tensors[site], three.tensors.get(site)
    if left is not None and right is not None and site not in two.masks:
        by_shape = find_layout(left.to("meta"), right.to("meta"))
        if by_shape is not None:
            return by_shape
    return find_layout(left, right, guess=guess)


def _told_apart(
    model: nn.Module, pair: Batch, switches: Switches, two: Glance, three: Glance
) -> dict[str, Layout]:
    """Where the rows lie at sites that show it only if there is another row."""
    unclear = [
        site
        for site in two.tensors
        if _layout(two, three, site) is None
        and _layout(two, three, site, guess=True) is not None
    ]
    other = varied(pair) if unclear else None
    if other is None:
        return {}
    try:
        two = look(model, other, switches)
        three = look(model, other.take(TURNED), switches)
    except CaveatError:
        raise
    except Exception:  # a made-up row may be one that cannot be
        return {}
    found = {site: _layout(two, three, site) for site in unclear if site in two.tensors}
    return {site: layout for site, layout in found.items() if layout is not None}


def _depends_on_rows(two: Glance, three: Glance, site: str) -> bool:
    if site not in three.tensors:
        return True
    left, right = two.tensors[site], three.tensors[site]
    return left is not None and right is not None and left.shape != right.shape


def check_repeats(model: nn.Module, first: Glance, again: Glance) -> None:
    """Refuse a model that does not answer as it did."""
    if not same_numbers(first.output, again.output):
        raise UnsupportedModelError(_UNREPEATABLE.format(name=type(model).__name__))


@dataclass
class _ProbeOmega:
    """Leaves everything as it is and keeps what the sites were given."""

    rows: int
    seed: int = 0
    draw: int = 0
    shared: bool = True
    tensors: dict[str, Tensor | None] = field(default_factory=dict)
    looks: bool = True

    def visit(self, site: SiteCall, tensor: Tensor | None, *, has_values: bool) -> None:
        if tensor is not None:
            tensor = tensor.detach().clone() if has_values else tensor.to("meta")
        self.tensors[site.name] = tensor

    def spec(
        self, site: SiteCall, law: Law, shape: Sequence[int], like: Tensor
    ) -> tuple[NoiseSpec, Layout | None] | None:
        return None
