"""Files of torch.export: the same numbers, without Caveat."""

import json
import subprocess
import sys

import pytest
import torch

import caveat
from caveat.errors import UnsupportedModelError
from tests.exporting.models import MODELS
from tests.exporting.test_onnx_file import assert_same, some_rows, truth

# Run where Caveat is not: by its own path it would be found.
LOAD = """
import sys, torch
sys.modules["caveat"] = None
model = torch.export.load(sys.argv[1]).module()
x, seed, n_draws = torch.load(sys.argv[2])
torch.save(model(x, torch.tensor(seed), torch.tensor(n_draws)), sys.argv[3])
"""


def exported(name, path):
    case = MODELS[name]()
    mc = caveat.MCDropout(case.model, seed=3, batch_dim=case.batch_dim)
    case.asked |= {"outputs": tuple(n for n in asked(case) if n != "draws")}
    caveat.export(mc, case.example, path, **case.asked)
    return case


def asked(case):
    return case.asked.get("outputs", ("mean", "std"))


def test_a_file_needs_torch_alone(tmp_path):
    case = exported("perceptron", tmp_path / "m.pt2")
    about = {"caveat.json": ""}
    torch.export.load(tmp_path / "m.pt2", extra_files=about)
    assert "analytic=False" in json.loads(about["caveat.json"])["equal_to"]
    (x,) = some_rows(case, 6)
    torch.save((x, -5, 40), tmp_path / "in.pt")
    paths = [str(tmp_path / name) for name in ("m.pt2", "in.pt", "out.pt")]
    subprocess.run([sys.executable, "-c", LOAD, *paths], check=True)
    found = torch.load(tmp_path / "out.pt")
    expected = truth(case, (x,), -5, 40)
    assert_same(dict(zip(expected, found, strict=True)), expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["lenet", "unet", "lstm", "transformer_encoder", "dropconnect", "other_noise"],
)
def test_other_models(name, tmp_path):
    case = exported(name, tmp_path / "m.pt2")
    program = torch.export.load(tmp_path / "m.pt2").module()
    example = some_rows(case, 6)
    found = program(*example, torch.tensor(8), torch.tensor(20))
    expected = truth(case, example, 8, 20)
    assert_same(dict(zip(expected, found, strict=True)), expected)


def test_draws_are_not_carried(tmp_path):
    case = MODELS["perceptron"]()
    mc = caveat.MCDropout(case.model, seed=3)
    with pytest.raises(UnsupportedModelError, match=r"are for \.onnx files"):
        caveat.export(mc, case.example, tmp_path / "m.pt2", outputs=("draws",))
