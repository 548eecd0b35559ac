"""The audit of a network that is named on a command line."""

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from caveat.errors import DataError, InputTypeError, ParameterError
from caveat.files.auditing import audit_built

HERE = "tests.files.test_auditing"


def build():
    return nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.25), nn.Linear(8, 1))


def build_with_input():
    return build(), torch.zeros(3, 4)


def build_nothing():
    return 3


def build_from(x):
    return nn.Linear(x, 1)


def build_late():
    raise ValueError("no data")


@pytest.mark.parametrize(
    ("name", "shapes"), [("build", ["5,4"]), ("build_with_input", [])]
)
def test_sites_of_a_network(name, shapes, tmp_path):
    save_file(build().state_dict(), tmp_path / "w.safetensors")
    for weights in (None, tmp_path / "w.safetensors"):
        (site,) = audit_built(f"{HERE}:{name}", weights=weights, shapes=shapes)
        assert site.path == "1" and site.rate == 0.25


@pytest.mark.parametrize(
    ("name", "shapes", "why", "kind"),
    [
        (HERE, [], "package.module:function", ParameterError),
        ("no.such:thing", [], "cannot be imported", ParameterError),
        (f"{HERE}:thing", [], "cannot be imported", ParameterError),
        (f"{HERE}:build", [], "give --shape", ParameterError),
        (f"{HERE}:build", ["4,x"], "whole numbers", ParameterError),
        (f"{HERE}:build", ["4,-1"], "above 0", ParameterError),
        (f"{HERE}:build_nothing", [], "Got int", InputTypeError),
        (f"{HERE}:build_from", [], r"without arguments\..* 'x'.*line", ParameterError),
        (f"{HERE}:build_late", [], r"ValueError: no data \(.*py, line", ParameterError),
        (f"{HERE}.py:build", [], rf"as in an import, {HERE}:build", ParameterError),
    ],
)
def test_what_cannot_be_audited(name, shapes, why, kind):
    with pytest.raises(kind, match=why):
        audit_built(name, shapes=shapes)


def test_a_module_that_fails_when_it_is_imported(tmp_path, monkeypatch):
    (tmp_path / "broken_module.py").write_text("import torch\n1 / 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ParameterError, match=r"ZeroDivision.*broken_module.py, line 2"):
        audit_built("broken_module:build", shapes=["5,4"])


def test_weights_that_do_not_fit(tmp_path):
    path = tmp_path / "w"
    with pytest.raises(DataError, match="There is none"):
        audit_built(f"{HERE}:build", weights=path, shapes=["5,4"])
    path.write_bytes(b"junk")
    with pytest.raises(DataError, match="no whole safetensors"):
        audit_built(f"{HERE}:build", weights=path, shapes=["5,4"])
    save_file({"other": torch.ones(1)}, path)
    with pytest.raises(DataError, match="does not fit the network"):
        audit_built(f"{HERE}:build", weights=path, shapes=["5,4"])


def test_an_exported_graph_is_not_audited():
    with pytest.raises(ParameterError, match="the exported graph"):
        audit_built("m.onnx")
