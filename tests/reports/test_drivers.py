"""Columns that drive the uncertainty are found, and others are not."""

import numpy as np
import pytest

from caveat.reports.columns import as_table
from caveat.reports.drivers import drivers_of, some_rows


def found(x, scores):
    drivers = drivers_of(as_table(x, len(scores)), np.asarray(scores, dtype=float))
    return {driver.column.name: driver for driver in drivers.found}, drivers


def test_the_column_that_drives_comes_first():
    generator = np.random.default_rng(0)
    x = generator.normal(size=(500, 4))
    by_name, drivers = found(x, 1.0 + x[:, 2] ** 2)
    assert drivers.found[0].column.name == "column 2"
    assert by_name["column 2"].share > 0.8 and by_name["column 2"].is_sure
    assert by_name["column 2"].trend.startswith("is highest at ")
    assert by_name["column 0"].share < 0.05 and not by_name["column 0"].is_sure


def test_trends_and_categories():
    generator = np.random.default_rng(1)
    rise, kind = generator.random(400), generator.choice(list("abc"), 400)
    by_name, _ = found({"rise": rise, "fall": -rise}, np.exp(rise))
    assert by_name["rise"].trend == "rises with it"
    assert by_name["fall"].trend == "falls with it"
    by_name, _ = found({"kind": kind}, np.exp(rise) + 5.0 * (kind == "b"))
    best = by_name["kind"]
    assert best.trend == "differs between categories" and best.is_sure
    assert best.groups[int(best.means.argmax())] == "b"
    assert best.counts.sum() == 400


def test_the_share_is_that_of_the_variance_of_ranks():
    groups = np.repeat([0.0, 1.0], 50)
    by_name, _ = found({"g": groups}, np.arange(100.0))
    # ranks 1..100: between 25², in all (100² - 1) / 12; less what chance gives
    eta = 25.0**2 / ((100**2 - 1) / 12)
    assert by_name["g"].share == pytest.approx(1.0 - (1.0 - eta) * 99 / 98)


def test_noise_is_seldom_taken_for_a_driver():
    """1 % over all columns of a table: of 40 tables, 5 or more have less than 1e-4."""
    generator = np.random.default_rng(2)
    alarms = 0
    for _ in range(40):
        by_name, _ = found(generator.random((200, 5)), generator.random(200))
        alarms += any(driver.is_sure for driver in by_name.values())
    assert alarms <= 4


def test_constants_identifiers_and_missing_values():
    n_rows = 200
    scores = np.linspace(1.0, 2.0, n_rows)
    holes = np.where(np.arange(n_rows) % 4 == 0, np.nan, np.linspace(0, 1, n_rows))
    by_name, drivers = found(
        {
            "one": np.ones(n_rows),
            "name": [f"n{k}" for k in range(n_rows)],
            "holes": holes,
            "empty": [None] * n_rows,
        },
        scores,
    )
    assert drivers.constant == ("one", "empty") and drivers.too_many == ("name",)
    assert by_name["holes"].groups[-1] == "missing"
    assert by_name["holes"].counts[-1] == 50


def test_one_score_for_all_has_no_driver():
    by_name, _ = found({"a": np.arange(50.0)}, np.ones(50))
    assert by_name["a"].share == 0.0 and not by_name["a"].is_sure


def test_some_rows_are_always_the_same_ones():
    assert some_rows(5, 9).tolist() == [0, 1, 2, 3, 4]
    chosen = some_rows(10_000, 100)
    assert len(set(chosen.tolist())) == 100
    assert np.array_equal(chosen, some_rows(10_000, 100))
