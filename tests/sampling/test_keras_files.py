"""``.keras`` files that another backend has trained and saved, on the torch backend."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import caveat
from tests.sampling.comparing import assert_same_distribution
from tests.sampling.keras_files import N_DRAWS, models

os.environ.setdefault("KERAS_BACKEND", "torch")
keras = pytest.importorskip("keras")
pytest.importorskip("jax")
if keras.backend.backend() != "torch":
    pytest.skip("Keras runs on another backend here", allow_module_level=True)

ROOT = Path(__file__).parents[2]
CHEAP = ["branches"]  # most of the time is the start of jax
ALL = list(models(keras))


def written(folder, names):
    environment = {**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-m", "tests.sampling.keras_files", str(folder), *names]
    subprocess.run(
        command, env=environment, cwd=ROOT, check=True, capture_output=True, timeout=500
    )
    return folder


@pytest.fixture(scope="module")
def cheap(tmp_path_factory):
    return written(tmp_path_factory.mktemp("cheap"), CHEAP)


@pytest.fixture(scope="module")
def rest(tmp_path_factory):
    names = [name for name in ALL if name not in CHEAP]
    return written(tmp_path_factory.mktemp("rest"), names)


def check(folder, name):
    model = keras.saving.load_model(folder / f"{name}.keras")
    stored = np.load(folder / f"{name}.npz")
    x = torch.as_tensor(stored["x"])
    with torch.no_grad():
        quiet = model(x, training=False)
    torch.testing.assert_close(
        quiet, torch.as_tensor(stored["quiet"]), rtol=1e-5, atol=1e-5
    )
    ours = caveat.MCDropout(model, seed=1).draws(x, n_draws=N_DRAWS)
    assert_same_distribution([ours], [torch.as_tensor(stored["noisy"])])
    return caveat.audit(model, x)


@pytest.mark.parametrize("name", CHEAP)
def test_a_file_of_jax_agrees_with_jax(cheap, name):
    sites = check(cheap, name)
    assert [site.rate for site in sites] == [0.2, 0.4]
    assert sites[0].path.endswith("inner")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in ALL if name not in CHEAP])
def test_nine_more_agree(rest, name):
    sites = check(rest, name)
    if name == "dropout":
        assert [(site.path.split(".")[-1], site.rate) for site in sites] == [
            ("own", 0.3)
        ]


def test_there_are_ten():
    assert len(ALL) == 10
