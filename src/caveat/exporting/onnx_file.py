"""Writing a subject as an ONNX file that ONNX Runtime has been seen to run."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from caveat._optional import require
from caveat._strata import SLICE, slices_of
from caveat._version import __version__
from caveat.errors import UnsupportedModelError
from caveat.exporting.building import Built, build, tensors_of
from caveat.exporting.checking import check_answers, check_noise
from caveat.exporting.describing import N_DRAWS, SEED, description
from caveat.exporting.onnx_graph import (
    DRAW_NUMBERS,
    SLICE_NUMBERS,
    FlatStep,
    flat_model,
    looped_model,
    noise_model,
)
from caveat.exporting.subjects import ExportSubject, as_signed_seed, input_names
from caveat.sampling.inputs import Batch

_LARGEST = 2**31 - 1  # bytes of a file of this kind

_CONVERSION = """{name} cannot be exported: torch's exporter has no ONNX for a part of
it ({error}). Write that part in other operations."""

_NOT_RUN = """{name} cannot be exported: ONNX Runtime cannot run the graph of it
({error}). It has few operations for float64: a copy in float32 may do."""

_TOO_LARGE = """{name} cannot be exported as one ONNX file: it takes {size} bytes, and
such files end at 2 GiB. Export it as .pt2."""


def onnx_bytes(subject: ExportSubject, batch: Batch) -> bytes:
    """The file, checked against the subject on ``batch``."""
    for package in ("onnx", "onnxscript", "onnxruntime"):
        require(package, extra="export")
    built = build(subject, batch)
    name = type(subject.sampler.model).__name__
    wanted = built.chunk.summary.wanted
    names = input_names(built.batch, (SEED, N_DRAWS, *wanted))
    inputs = tensors_of(built.batch)
    step = FlatStep(built.chunk, len(inputs), built.dtype)
    size = sum(p.nbytes for p in step.parameters())
    if size > _LARGEST:
        raise UnsupportedModelError(_TOO_LARGE.format(name=name, size=size))
    try:
        flat = flat_model(step, inputs, built.axes, names)
    except Exception as error:
        cause = str(error.__cause__ or error).strip().split("\n")[0]
        raise UnsupportedModelError(
            _CONVERSION.format(name=name, error=cause)
        ) from error
    model = looped_model(flat, step, names)
    _describe(model, subject, built, names)
    written: bytes = model.SerializeToString()
    try:
        session = _session(written)
    except Exception as error:  # of several kinds, which are its own
        cause = str(error).strip().split("\n")[0]
        raise UnsupportedModelError(_NOT_RUN.format(name=name, error=cause)) from error
    _check_bits(subject, built, step, flat)

    def run(own: Batch, seed: int, n_draws: int) -> list[Tensor]:
        given = dict(zip(names, map(_array, tensors_of(own)), strict=True))
        given[SEED] = _array(as_signed_seed(seed))
        given[N_DRAWS] = np.array(n_draws)
        return [torch.from_numpy(value) for value in session.run(list(wanted), given)]

    check_answers(subject, batch, wanted, run)
    return written


def _check_bits(
    subject: ExportSubject, built: Built, step: FlatStep, flat: Any
) -> None:
    """Run the noise of some draws by itself."""
    inputs = tensors_of(built.batch)
    draws = (
        range(SLICE - 1, SLICE + 2) if step.chunk.together else range(SLICE, SLICE + 1)
    )
    slices = slices_of(draws)
    given = {
        SEED: _array(as_signed_seed(subject.seed)),
        DRAW_NUMBERS: np.arange(draws.start, draws.stop),
        SLICE_NUMBERS: np.arange(slices.start, slices.stop),
    }
    names, model = step.names, flat
    if step.draws_inside:
        first = 2 * step.n_sums
        names = [v.name for v in flat.graph.output][first : first + step.n_inside]
        example = dict(
            zip((v.name for v in flat.graph.input), step.example(inputs), strict=True)
        )
        given = {n: _array(v) for n, v in example.items()} | given
    else:
        model = noise_model(step)
    session = _session(model.SerializeToString())
    known = {value.name for value in session.get_inputs()}
    found = session.run(names, {n: v for n, v in given.items() if n in known})
    tensors = [torch.from_numpy(value) for value in found]
    check_noise(subject, step.chunk.sites, tensors, draws)


def _session(model: bytes) -> Any:
    """Quiet, and with the threads that torch uses."""
    runtime = require("onnxruntime", extra="export")
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = torch.get_num_threads()
    return runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _array(tensor: Tensor) -> Any:
    return np.ascontiguousarray(tensor.detach().numpy()).reshape(tensor.shape)


def _describe(
    model: Any, subject: ExportSubject, built: Built, names: Sequence[str]
) -> None:
    """Write into a file what it is."""
    onnx = require("onnx", extra="export")
    model.producer_name, model.producer_version = "caveat", __version__
    onnx.helper.set_model_props(model, description(subject, built, names))
