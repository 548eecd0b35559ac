"""The pyfunc itself, without a store."""

import numpy as np
import pytest

import caveat
from caveat.errors import InputTypeError, ParameterError
from caveat.frames import FrameModel

pytest.importorskip("mlflow")
from caveat.mlflow.loading import _load_pyfunc


def test_a_file_is_read_and_wrong_ones_are_refused(tmp_path):
    x = np.random.default_rng(0).normal(size=(40, 2))
    estimator = caveat.BayesianDropoutRegression(0.2)
    table = {"a": x[:, 0], "b": x[:, 1], "y": x.sum(1)}
    caveat.save(
        FrameModel.fit(table, target="y", estimator=estimator), tmp_path / "m.caveat"
    )
    pyfunc = _load_pyfunc(str(tmp_path / "m.caveat"))
    assert len(pyfunc.predict({"a": [1.0], "b": [2.0]})) == 1
    with pytest.raises(ParameterError, match="n_samples"):
        pyfunc.predict(table, {"n_samples": 3})
    caveat.save(estimator.fit(x, x[:, 0]), tmp_path / "e.caveat")
    with pytest.raises(InputTypeError, match="FrameModel"):
        _load_pyfunc(str(tmp_path / "e.caveat"))
