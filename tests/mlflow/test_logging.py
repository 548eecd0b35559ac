"""A model of a table in a local store of MLflow, and what comes back."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import caveat
from caveat.errors import CaveatError, InputTypeError, ParameterError
from caveat.frames import FrameModel

mlflow = pytest.importorskip("mlflow")
import caveat.mlflow  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore")]  # MLflow's own, of many kinds


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    size, kind = rng.normal(size=80), rng.choice(["a", "b"], 80)
    y = size + (kind == "a") + 0.1 * rng.normal(size=80)
    whole = rng.integers(0, 9, 80)
    return pd.DataFrame({"size": size, "kind": kind, "whole": whole, "y": y})


@pytest.fixture(scope="module")
def model(table):
    estimator = caveat.DropoutRegressor(
        preset=None, hidden=(8,), precision=25.0, n_draws=20, random_state=0
    )
    return FrameModel.fit(table[:60], target="y", estimator=estimator)


@pytest.fixture(scope="module")
def logged(model, table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    mlflow.set_tracking_uri(f"sqlite:///{folder}/store.db")
    mlflow.create_experiment("table", artifact_location=(folder / "own").as_uri())
    mlflow.set_experiment("table")
    with mlflow.start_run() as run:
        info = caveat.mlflow.log_model(model, held_out=table[60:])
    return run.info.run_id, info, folder


@pytest.fixture(scope="module")
def loaded(model, tmp_path_factory):
    """From a folder: a store takes a while to be made."""
    folder = tmp_path_factory.mktemp("saved") / "model"
    caveat.mlflow.save_model(model, folder)
    return mlflow.pyfunc.load_model(str(folder))


def test_what_comes_back_answers_as_the_command_line(loaded, model, table):
    rows = table[60:]
    found = loaded.predict(rows)
    assert list(found.columns) == model.predict_table(rows).schema.names
    assert list(found.index) == list(rows.index)
    expected = model.predict_table(rows).to_pandas().set_axis(rows.index)
    pd.testing.assert_frame_equal(found, expected, check_exact=True)
    params = {"n_draws": 8, "seed": 3, "level": 0.5}
    asked = loaded.predict(rows.drop(columns="y"), params=params)
    expected = model.predict_table(rows, **params).to_pandas().set_axis(rows.index)
    pd.testing.assert_frame_equal(asked, expected, check_exact=True)
    assert not np.array_equal(asked["y_mean"], found["y_mean"])
    loose = loaded.predict(rows, params={"tolerance": 0.5})
    expected = model.predict_table(rows, tolerance=0.5).to_pandas()
    assert np.array_equal(loose["y_mean"], expected["y_mean"])


def test_the_signature_names_columns_and_params(loaded):
    signature = loaded.metadata.signature
    assert signature.inputs.input_names() == ["size", "kind", "whole"]
    names = [p.name for p in signature.params.params]
    assert names == ["n_draws", "seed", "level", "tolerance"]
    assert "y_lower" in signature.outputs.input_names()


@pytest.mark.slow
def test_nothing_is_pickled_and_the_report_is_there(logged, loaded, table):
    run, info, folder = logged
    stored = mlflow.pyfunc.load_model(info.model_uri).predict(table)
    pd.testing.assert_frame_equal(stored, loaded.predict(table), check_exact=True)
    text = mlflow.artifacts.load_text(f"runs:/{run}/report.html")
    assert text.startswith("<!DOCTYPE html>")
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert any(path.name == "model.caveat" for path in files)
    assert not [p for p in files if p.suffix in (".pkl", ".pickle", ".joblib")]


def test_errors(model, table, loaded):
    with pytest.raises(InputTypeError, match="FrameModel"):
        caveat.mlflow.log_model(model.estimator)
    with pytest.raises(ParameterError, match="signature"):
        caveat.mlflow.log_model(model, signature=None)
    with pytest.raises(CaveatError, match="size"):
        loaded.predict(table.drop(columns="size"))
    with pytest.raises(ParameterError, match="not both"):
        loaded.predict(table, params={"n_draws": 9, "tolerance": 0.1})


@pytest.mark.slow
def test_a_fresh_process_gives_identical_numbers(model, table, tmp_path):
    caveat.mlflow.save_model(model, tmp_path / "folder")
    table.to_parquet(tmp_path / "rows.parquet")
    code = (
        "import sys, mlflow, pandas as pd; "
        "m = mlflow.pyfunc.load_model(sys.argv[1] + '/folder'); "
        "t = pd.read_parquet(sys.argv[1] + '/rows.parquet'); "
        "m.predict(t, params={'seed': 5}).to_parquet(sys.argv[1] + '/found.parquet')"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    found = pd.read_parquet(tmp_path / "found.parquet")
    expected = model.predict_table(table, seed=5).to_pandas()
    pd.testing.assert_frame_equal(found, expected, check_exact=True)
