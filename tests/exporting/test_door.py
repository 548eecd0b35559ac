"""What export refuses, with the reason; and that nothing is written then."""

import sys

import numpy as np
import onnx
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import caveat
from caveat.errors import (
    InputTypeError,
    MissingExtraError,
    ParameterError,
    UnsupportedModelError,
)
from caveat.exporting import onnx_file
from tests.exporting.models import chain

X = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))


class Own(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.between(F.dropout(self.first(x), 0.3, True)))


class DrawnBranch(Own):
    def between(self, x: Tensor) -> Tensor:
        return x if torch.rand([]) < 0.5 else -x


class DrawnNumber(Own):
    def between(self, x: Tensor) -> Tensor:
        return x * torch.randn([]).item()


class InputBranch(Own):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(torch.zeros_like(x) if torch.isnan(x).any() else x)

    def between(self, x: Tensor) -> Tensor:
        return x


class NumpyNoise(Own):
    def between(self, x: Tensor) -> Tensor:
        return x * float(np.random.rand())  # noqa: NPY002


class Gradient(Own):
    def between(self, x: Tensor) -> Tensor:
        with torch.enable_grad():
            y = x.detach().requires_grad_()
            return torch.autograd.grad(y.square().sum(), y)[0]


class FixedRows(Own):
    def between(self, x: Tensor) -> Tensor:
        return x + torch.ones(len(x), 1)  # of len torch remembers no symbol


@torch.library.custom_op("caveat_tests::twice", mutates_args=())
def twice(x: Tensor) -> Tensor:
    return 2 * x


@twice.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


class CustomOperator(Own):
    def between(self, x: Tensor) -> Tensor:
        return twice(x)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (DrawnBranch, "a drawn value decides"),
        (DrawnNumber, "a drawn value decides"),
        (InputBranch, "values of tensors must not decide"),
        (NumpyNoise, "generators of Python or numpy"),
        (Gradient, "autograd inside its forward"),
        (FixedRows, "number of rows as a constant"),
        (CustomOperator, "custom operator has no graph"),
    ],
)
def test_what_has_no_graph_says_why(kind, words, tmp_path):
    mc = caveat.MCDropout(kind(), seed=0)
    with pytest.raises(UnsupportedModelError, match=words):
        caveat.export(mc, X, tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore")  # torch is about to move its quantisation
def test_whole_numbers_of_eight_bits(tmp_path):
    net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3), nn.Linear(8, 2))
    small = torch.ao.quantization.quantize_dynamic(net, {nn.Linear}, torch.qint8)
    with pytest.raises(UnsupportedModelError, match="quantise the file"):
        caveat.export(caveat.MCDropout(small, seed=0), X, tmp_path / "m.onnx")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_short_numbers_are_refused_with_the_remedy(tmp_path, dtype):
    mc = caveat.MCDropout(chain().to(dtype), seed=0)
    with pytest.raises(UnsupportedModelError, match="Export a copy in\nfloat32"):
        caveat.export(mc, X.to(dtype), tmp_path / "m.onnx")


def test_what_the_runtime_lacks_is_said(tmp_path):
    net = nn.Sequential(nn.Conv1d(1, 2, 3), nn.Dropout(0.2)).double()
    x = torch.zeros(2, 1, 4, dtype=torch.float64)
    with pytest.raises(UnsupportedModelError, match="ONNX Runtime cannot run"):
        caveat.export(caveat.MCDropout(net, seed=0), x, tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


def test_another_answer_is_not_written(tmp_path, monkeypatch):
    """Should the runtime draw something else, the old file stays."""
    path = tmp_path / "m.onnx"
    path.write_bytes(b"old")
    monkeypatch.setattr(onnx_file, "as_signed_seed", lambda seed: torch.tensor(9))
    mc = caveat.MCDropout(chain(), seed=0)
    with pytest.raises(UnsupportedModelError, match="was not written: the noise"):
        caveat.export(mc, X, path)
    assert path.read_bytes() == b"old" and len(list(tmp_path.iterdir())) == 1


def test_arguments(tmp_path):
    mc = caveat.MCDropout(chain(), seed=0)
    closed = caveat.MCDropout(chain(), seed=0, analytic=True)
    with pytest.raises(ParameterError, match="no closed forms"):
        caveat.export(closed, X, tmp_path / "m.onnx")
    with pytest.raises(ParameterError, match=r"path must end in \.onnx"):
        caveat.export(mc, X, tmp_path / "m.txt")
    with pytest.raises(ParameterError, match=r"The folder of .* must exist"):
        caveat.export(mc, X, tmp_path / "nowhere" / "m.onnx")
    with pytest.raises(ParameterError, match="outputs must name some of"):
        caveat.export(mc, X, tmp_path / "m.onnx", outputs=("mode",))
    with pytest.raises(ParameterError, match="level must lie strictly between"):
        caveat.export(mc, X, tmp_path / "m.onnx", level=95)
    with pytest.raises(InputTypeError, match="MCDropout\\(module, seed=0\\)"):
        caveat.export(chain(), X, tmp_path / "m.onnx")
    with pytest.raises(InputTypeError, match="which is for outputs of a classifier"):
        caveat.export(mc, X, tmp_path / "m.onnx", output="logits")
    with pytest.raises(ParameterError, match="need precision=tau"):
        caveat.export(mc, X, tmp_path / "m.onnx", outputs=("lower",))


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(MissingExtraError, match=r"caveat\[export\]"):
        caveat.export(caveat.MCDropout(chain(), seed=0), X, tmp_path / "m.onnx")


@pytest.mark.parametrize("model", ["m.onnx", onnx.ModelProto()], ids=["path", "model"])
def test_an_onnx_model_is_no_module(model):
    with pytest.raises(InputTypeError, match="Pass the module that it was made"):
        caveat.MCDropout(model)
