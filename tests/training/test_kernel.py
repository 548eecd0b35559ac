"""The kernel by itself: its functions, its layout, and whether it is there."""

import ctypes

import numpy as np
import pytest
import torch

from caveat.training import KernelStatus, NetworkSpec, Schedule, building, kernel_status
from caveat.training import kernel as kernel_module
from caveat.training.activations import ACTIVATIONS, activation
from caveat.training.building import NoLibraryError
from caveat.training.compiled import disagreement
from caveat.training.kernel import Kernel, aligned, kernel, padded_rows
from caveat.training.members import Architecture

needs_kernel = pytest.mark.skipif(
    not kernel_status().is_compiled, reason="there is no compiled kernel here"
)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The kernel for any processor of this kind: other vectors, other blocks."""
    try:
        compiler = building._compiler()
    except NoLibraryError as error:
        pytest.skip(str(error))
    made = tmp_path_factory.mktemp("plain") / "kernel.so"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "_TUNED", ((),))
        building._compile(compiler, kernel_module.SOURCE, made)
    return Kernel(ctypes.CDLL(str(made)))


@pytest.fixture(params=["native", "plain"])
def own(request):
    if request.param == "plain":
        return request.getfixturevalue("plain")
    if not kernel_status().is_compiled:
        pytest.skip("there is no compiled kernel here")
    return kernel()


def ladder():
    """Numbers of all sizes, and those that break formulas."""
    fine = np.linspace(-30, 30, 40_001)
    sizes = 10.0 ** np.linspace(-30, 4, 2_000)
    odd = [0.0, -0.0, 0.625, -0.625, 0.92773437, 20.0, 88.7, 89.5, -87.4, -104.0]
    return np.concatenate([fine, sizes, -sizes, odd]).astype(np.float32)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_functions_are_torchs(own, name):
    z = ladder()
    values, slopes = own.activate(name, z)
    exact = torch.from_numpy(z).double()
    h, expected = torch.empty_like(exact), torch.empty_like(exact)
    activation(name).function(exact, h)
    activation(name).slope(exact, h, expected)
    for found, right, most in ((values, h, 4e-7), (slopes, expected, 1e-6)):
        right = right.numpy()
        error = np.abs(found - right) / (1 + np.abs(right))
        assert error.max() < most, z[error.argmax()]


@pytest.mark.parametrize("name", ["tanh", "elu", "softplus", "sigmoid", "silu", "gelu"])
def test_small_values_are_right_relatively(own, name):
    z = (10.0 ** np.linspace(-20, -0.5, 500)).astype(np.float32)
    for part in (z, -z):
        values, _ = own.activate(name, part)
        h = torch.from_numpy(part).double()
        activation(name).function(h.clone(), h)
        np.testing.assert_allclose(values, h.numpy(), rtol=1e-6)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_what_is_not_finite_is_not_hidden(own, name):
    z = np.zeros(64, dtype=np.float32)
    z[[3, 17, 40]] = np.nan, np.inf, -np.inf
    values, _ = own.activate(name, z)
    expected = torch.empty(64)
    activation(name).function(torch.from_numpy(z), expected)
    finite = expected.isfinite().numpy()
    assert (np.isfinite(values) == finite).all() and np.isnan(values[3])
    np.testing.assert_allclose(values[finite], expected.numpy()[finite], atol=1e-6)


@pytest.mark.parametrize("noise", ["bernoulli", "gaussian"])
@pytest.mark.parametrize("hidden", [(), (3, 50), (33, 7)], ids=str)
def test_it_trains_as_torch_does_on_any_processor(own, noise, hidden):
    spec = NetworkSpec(hidden, noise=noise, schedule=Schedule(1, 19, keep_last=True))
    for n_targets in (1, 5):
        assert disagreement(own, spec, 13, n_targets) < 1e-3


@pytest.mark.parametrize("hidden", [(), (3,), (16, 20)], ids=str)
def test_packing_loses_nothing(own, hidden):
    architecture = Architecture(5, hidden, 6)
    network = own.network(architecture, 8, 6, 0)
    flat = np.arange(1, architecture.n_parameters + 1, dtype=np.float32)
    packed = network.packed(flat)
    assert np.sort(packed[packed != 0]).tolist() == flat.tolist()
    assert network.flat(packed).tolist() == flat.tolist()


def test_rows_are_padded_with_zeros():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = padded_rows(x, 4)
    assert found.tolist() == [[0, 1, 2, 0], [3, 4, 5, 0]]
    assert padded_rows(found, 4) is found
    assert aligned(5).ctypes.data % 64 == 0 and len(aligned(5)) == 5


def test_it_can_be_switched_off(monkeypatch):
    monkeypatch.setenv("CAVEAT_KERNEL", "Off")
    assert kernel_status() == KernelStatus(False, "it is switched off by CAVEAT_KERNEL")


def test_why_there_is_none_is_told(monkeypatch):
    def none(source):
        raise NoLibraryError("there is no C compiler: cc not found")

    monkeypatch.setattr(kernel_module, "_FOUND", [])
    monkeypatch.setattr(kernel_module, "library", none)
    assert kernel_status() == (False, "there is no C compiler: cc not found")


def test_nonsense_in_the_environment_is_a_reason(monkeypatch, tmp_path):
    monkeypatch.setattr(kernel_module, "_FOUND", [])
    monkeypatch.setenv("CAVEAT_CACHE", str(tmp_path))
    monkeypatch.setenv("CC", "'gcc")
    assert not kernel_status().is_compiled


@needs_kernel
def test_another_version_is_not_used(monkeypatch):
    monkeypatch.setattr(kernel_module, "_VERSION", -1)
    monkeypatch.setattr(kernel_module, "_FOUND", [])
    assert kernel_status() == (False, "the library is of another version")
