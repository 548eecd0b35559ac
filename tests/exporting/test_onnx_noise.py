"""Noise written in ONNX is that of a site, of every law: masks bit by bit."""

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import helper

from caveat._strata import slices_of
from caveat.exporting.drawing import SiteNoise
from caveat.exporting.hashing import DrawAddress, Tables
from caveat.exporting.onnx_noise import DOMAIN, SiteNodes, functions
from caveat.sampling.noise import (
    Exponential,
    Integers,
    Mask,
    NoiseSpec,
    Normal,
    Uniform,
)
from caveat.sampling.passes import SiteCall

LAWS = (
    Mask(0.9, 1 / 0.9),
    Mask(0.5, 2.0),  # of these two the rates leave the same remainder
    Mask(0.75, 4 / 3),
    Mask(0.37, 2.0),
    Uniform(),
    Uniform(-1.0, 3.0),
    Normal(1.0, 0.3),
    Exponential(2.0),
    Integers(2, 9),
)
SHAPES = (((1, 3, 2, 5), ()), ((4, 6), (0, 2)), ((), ()))
CPU = torch.device("cpu")


def sites() -> tuple[SiteNoise, ...]:
    found = []
    for stratified in (True, False):
        for law in LAWS:
            dtype = torch.int64 if isinstance(law, Integers) else torch.float32
            # A shape each: a session with all of them takes long to make.
            shape, starts = SHAPES[len(found) % len(SHAPES)]
            name = f"s{len(found)}#0"
            spec = NoiseSpec(name, law, shape, dtype, CPU, starts, stratified)
            call = SiteCall(name, 0, "noise", 0.1, shape, True)
            found.append(SiteNoise.of(call, spec, None, True))
    return tuple(found)


@pytest.fixture(scope="module")
def session() -> onnxruntime.InferenceSession:
    own, names = SiteNodes(sites(), "seed"), [f"o{i}" for i in range(len(sites()))]
    own.write(names)
    info, whole = helper.make_tensor_value_info, onnx.TensorProto.INT64
    inputs = [info("seed", whole, [])]
    inputs += [info(n, whole, [None]) for n in ("caveat_draws", "caveat_slices")]
    outputs = []
    for name, site in zip(names, sites(), strict=True):
        kind = helper.np_dtype_to_tensor_dtype(
            torch.empty(0, dtype=site.spec.dtype).numpy().dtype
        )
        outputs.append(info(name, kind, [None] * (1 + len(site.spec.shape))))
    nodes = [*own.keys, *own.nodes]
    graph = helper.make_graph(nodes, "noise", inputs, outputs, own.constants)
    versions = [helper.make_opsetid("", 20), helper.make_opsetid(DOMAIN, 1)]
    model = helper.make_model(graph, opset_imports=versions, functions=functions())
    model.ir_version = 10
    onnx.checker.check_model(model)
    return onnxruntime.InferenceSession(model.SerializeToString())


@pytest.mark.parametrize("seed", [0, -5, 2**62])
@pytest.mark.parametrize("draws", [range(3), range(14, 40), range(60, 130)], ids=str)
def test_noise_is_that_of_a_site(session, seed, draws):
    slices = slices_of(draws)
    numbers = [np.arange(r.start, r.stop) for r in (draws, slices)]
    given = dict(zip(("caveat_draws", "caveat_slices"), numbers, strict=True))
    found = session.run(None, {"seed": np.array(seed), **given})
    where = DrawAddress.of(
        torch.tensor(seed), *map(torch.from_numpy, numbers), Tables.made()
    )
    for site, values in zip(sites(), map(torch.from_numpy, found), strict=True):
        expected = site.spec.sample(seed, draws)
        in_torch = site.draw(where, 1)
        if isinstance(site.spec.law, Normal | Exponential):  # logarithms are rounded
            torch.testing.assert_close(values, expected, rtol=1e-6, atol=1e-6)
            torch.testing.assert_close(in_torch, expected, rtol=1e-6, atol=1e-6)
        else:
            assert torch.equal(values, expected) and torch.equal(in_torch, expected)
