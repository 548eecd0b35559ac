"""Writing a subject by ``torch.export``: one draw at a time, in a loop of torch."""

import io
import json
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from caveat._strata import SLICE
from caveat._torch import (
    SymbolicRows,
    functional_graph,
    quiet_exporter,
    while_loop,
)
from caveat.errors import UnsupportedModelError
from caveat.exporting.building import build, tensors_of
from caveat.exporting.checking import check_answers, check_noise
from caveat.exporting.chunks import Chunk
from caveat.exporting.describing import N_DRAWS, SEED, description
from caveat.exporting.hashing import plain_mix, plain_shift
from caveat.exporting.subjects import ExportSubject, as_signed_seed, input_names
from caveat.sampling.inputs import Batch

ABOUT = "caveat.json"  # what a file says of itself, beside the graph

_KEPT = """A .pt2 file carries sums from draw to draw, not the draws:
{what} are for .onnx files."""

_CAPTURE = """{name} cannot be exported by torch.export ({error})."""


class LoopedModel(nn.Module):
    """All draws of a model: (inputs, seed, n_draws) to the answers.

    A step of the loop is a graph already: ``torch.export`` runs its compiler on what a
    loop repeats, which does not understand all that we do in Python.
    """

    def __init__(
        self, chunk: Chunk, inputs: Sequence[Tensor], dtype: torch.dtype
    ) -> None:
        super().__init__()
        self.chunk, self._dtype = chunk, dtype
        self.step = _step(chunk, inputs, dtype)

    def forward(self, *given: Tensor) -> tuple[Tensor, ...]:
        """The last two inputs are ``seed`` and ``n_draws``."""
        *inputs, seed, n_draws = given
        chunk, step = self.chunk, self.step
        # Views of one tensor may not enter a loop side by side.
        seam = tuple(value.clone() for value in chunk.clean(*inputs))

        def goes_on(draw: Tensor, *sums: Tensor) -> Tensor:
            return (draw < n_draws).squeeze(0)

        def body(draw: Tensor, *sums: Tensor) -> tuple[Tensor, ...]:
            return (draw + 1, *step(seed, draw, *seam, *sums))

        rows = chunk.rows(inputs)
        start = (torch.zeros(1, dtype=torch.int64), *chunk.empty(rows, self._dtype))
        _, *sums = while_loop(goes_on, body, start)
        return chunk.summary.told(tuple(sums))


def _step(chunk: Chunk, inputs: Sequence[Tensor], dtype: torch.dtype) -> nn.Module:
    """(seed, draw, seam, sums) to the sums with that draw, as a graph."""
    with torch.no_grad():
        # Views of one tensor may not enter a loop side by side.
        seam = tuple(value.clone() for value in chunk.clean(*inputs))

    def one_draw(seed: Tensor, draw: Tensor, *values: Tensor) -> tuple[Tensor, ...]:
        own, sums = values[: len(seam)], values[len(seam) :]
        noise = chunk.noise(seed, draw, draw // SLICE, rows.symbol)
        block = chunk.block(own, noise, rows.symbol, 1)
        return chunk.summary.merged(sums, chunk.summary.of_block(block))

    rows = SymbolicRows()
    place = chunk.row_place
    rows.inputs([inputs[place.number]], [place.axis])  # which makes the symbol
    shapes = chunk.seam_shapes(rows.symbol)
    fakes = [rows.empty(s, t.dtype) for s, t in zip(shapes, seam, strict=True)]
    sums = chunk.empty(chunk.rows(inputs), dtype)
    longer = chunk.empty(chunk.rows(inputs) + 1, dtype)
    for one, other in zip(sums, longer, strict=True):
        sizes = zip(one.shape, other.shape, strict=True)
        # What grows with the rows grows by k for each: k times their number.
        shape = [(m - n) * rows.symbol if m > n else n for n, m in sizes]
        fakes.append(rows.empty(shape, one.dtype))
    numbers = [rows.empty([], torch.int64), rows.empty([1], torch.int64)]
    own = torch.ops.caveat
    parts: dict[Any, Any] = {own.mix.default: plain_mix, own.shift.default: plain_shift}
    return functional_graph(one_draw, [*numbers, *fakes], parts)


def pt2_bytes(subject: ExportSubject, batch: Batch) -> bytes:
    """The file, checked against the subject on ``batch``."""
    built = build(subject, batch, together=False)
    chunk, name = built.chunk, type(subject.sampler.model).__name__
    summary = chunk.summary
    if summary.keeps_draws:
        names = sorted({"draws", "lower", "upper"} & set(summary.wanted))
        what = f"outputs {names}" if names else "pools of presets, which need them all,"
        raise UnsupportedModelError(_KEPT.format(what=what))
    inputs = tensors_of(built.batch)
    names = input_names(built.batch, (SEED, N_DRAWS, *summary.wanted))
    seed = as_signed_seed(subject.seed)
    auto = torch.export.Dim.AUTO
    sizes: Any = [{} if axis is None else {axis: auto} for axis in built.axes]
    given = (*inputs, seed, torch.tensor(2))
    try:
        with quiet_exporter():
            program = torch.export.export(
                LoopedModel(chunk, inputs, built.dtype).eval(),
                given,
                dynamic_shapes=((*sizes, {}, {}),),
            )
            buffer = io.BytesIO()
            facts = description(subject, built, names)
            torch.export.save(program, buffer, extra_files={ABOUT: json.dumps(facts)})
            buffer.seek(0)
            again = torch.export.load(buffer).module()
    except Exception as error:
        cause = f"{type(error).__name__}: {error}".strip().split("\n")[0]
        raise UnsupportedModelError(_CAPTURE.format(name=name, error=cause)) from error
    numbers = torch.arange(SLICE, SLICE + 1)
    noise = chunk.noise(seed, numbers, numbers // SLICE, chunk.rows(inputs))
    check_noise(subject, chunk.sites, noise, range(SLICE, SLICE + 1))

    def run(own: Batch, seed: int, n_draws: int) -> list[Tensor]:
        return list(
            again(*tensors_of(own), as_signed_seed(seed), torch.tensor(n_draws))
        )

    check_answers(subject, batch, summary.wanted, run)
    return buffer.getvalue()
