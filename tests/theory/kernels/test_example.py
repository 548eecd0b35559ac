"""examples/network_kernels.py writes its figure and does what it says."""

import runpy
from pathlib import Path

import matplotlib as mpl
import numpy as np
from numpy.testing import assert_allclose

PATH = Path(__file__).parents[3] / "examples" / "network_kernels.py"


def test_figure(tmp_path):
    before = dict(mpl.rcParams)
    example = runpy.run_path(str(PATH))
    main = example["main"]
    main.__globals__["GRID"] = example["GRID"][::16]
    main(tmp_path / "new" / "figure.png")
    assert (tmp_path / "new" / "figure.png").stat().st_size > 10_000
    assert dict(mpl.rcParams) == before


def test_outputs_have_variance_1_at_the_origin():
    example = runpy.run_path(str(PATH))
    for name in example["NAMES"]:
        for lengthscale in (1.0, 0.2):
            kernel = example["unit_kernel"](name, lengthscale)
            assert_allclose(kernel.diag(np.zeros((1, 1))), 1.0)
