"""A table with all kinds of columns, and a quick model of it."""

import numpy as np
import pandas as pd

from caveat.estimators import BayesianDropoutRegression
from caveat.frames import FrameModel
from tests.estimators.dropout_data import quick_classifier, quick_regressor


def mixed(n_rows: int = 300, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    days = pd.to_timedelta(rng.integers(0, 900, n_rows), unit="D")
    hours = pd.to_timedelta(rng.integers(0, 24, n_rows), unit="h")
    frame = pd.DataFrame(
        {
            "name": [f"row {i}" for i in range(n_rows)],
            "size": rng.normal(size=n_rows),
            "kind": rng.choice(["a", "b", "ü, or not"], n_rows),
            "zip": rng.choice(["01", "02", "10"], n_rows),
            "flag": rng.random(n_rows) > 0.5,
            "when": pd.Timestamp("2020-01-01") + days + hours,
            "whole": rng.integers(0, 10**6, n_rows),
        }
    )
    gaps = rng.random((2, n_rows)) < 0.1
    frame["gap"] = np.where(gaps[0], np.nan, rng.normal(size=n_rows))
    frame["who"] = np.where(gaps[1], None, rng.choice(["x", "y"], n_rows))
    noise = 0.1 * rng.normal(size=n_rows)
    frame["y"] = frame["size"] + (frame["kind"] == "a") + 0.3 * frame["flag"] + noise
    frame["label"] = np.where(frame["y"] > 0.5, "high", "low")
    return frame


def quick_model(frame: pd.DataFrame | None = None, **settings) -> FrameModel:
    found = mixed() if frame is None else frame
    own = {"target": "y", "drop": ["label"], "estimator": quick_regressor()}
    return FrameModel.fit(found, **(own | settings))


def quick_labels(frame: pd.DataFrame | None = None) -> FrameModel:
    found = mixed() if frame is None else frame
    return FrameModel.fit(
        found,
        target="label",
        classify=True,
        drop=["y"],
        estimator=quick_classifier(),
    )


def linear_model() -> FrameModel:
    return quick_model(estimator=BayesianDropoutRegression(0.1, drop_to="mean"))
