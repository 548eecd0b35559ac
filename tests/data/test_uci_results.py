"""The published tables, and what their readme says of them."""

from pathlib import Path

import numpy as np
import pytest

from caveat.data import (
    load_uci,
    load_uci_grid_settings,
    load_uci_per_split,
    load_uci_published,
    load_uci_settings,
)
from caveat.data.uci_sets import UCI_SETS
from caveat.errors import DataError
from tests.data.conftest import write

NAMES = [spec.name for spec in UCI_SETS]


def test_published(real_data: Path) -> None:
    table = load_uci_published()
    assert len(table) == 296
    assert {row.dataset for row in table} == set(NAMES)
    assert {row.metric for row in table} == {"rmse", "ll"}
    (boston,) = [
        row
        for row in table
        if (row.dataset, row.metric, row.method) == ("boston", "rmse", "MC dropout")
    ]
    assert (boston.mean, boston.spread, boston.spread_type) == (2.97, 0.85, "sd")
    assert None in {row.epochs for row in table}


@pytest.mark.parametrize("name", NAMES[:-1])
def test_table_of_the_paper_is_the_mean_of_the_splits(
    real_data: Path, name: str
) -> None:
    original = [
        row
        for row in load_uci_per_split()
        if row.dataset == name and row.variant == "original_1x"
    ]
    published = {
        row.metric: row.mean
        for row in load_uci_published()
        if row.dataset == name and row.method == "MC dropout"
    }
    assert np.mean([r.rmse_mc for r in original]) == pytest.approx(
        published["rmse"], abs=0.011
    )
    assert np.mean([r.ll_mc for r in original]) == pytest.approx(
        published["ll"], abs=0.011
    )


def test_per_split(real_data: Path) -> None:
    table = load_uci_per_split()
    assert len(table) == 661
    searched = [row for row in table if row.variant == "grid_search_2018"]
    assert len(searched) == 165 and all(row.precision for row in searched)
    assert all(row.precision is None for row in table if row not in searched)


def test_settings(real_data: Path) -> None:
    settings = {row.dataset: row for row in load_uci_settings()}
    assert list(settings) == NAMES
    for name in ("boston", "protein"):
        data = load_uci(name)
        assert settings[name].n_hidden == data.n_hidden
        assert settings[name].n_epochs == data.n_epochs
        assert settings[name].n_splits == len(data.splits)
    rates = {"concrete": 0.01, "yacht": 0.01, "power": 0.005, "protein": 0.005}
    scales = {"naval": 1, "yacht": 0.1, "year": 1e-4}
    for name, row in settings.items():
        assert row.drop_rate == rates.get(name, 0.05)
        assert row.lengthscale == scales.get(name, 1e-2)
        assert (row.batch_size, row.n_draws) == (32, 10_000)
        assert row.search_low < row.precision < row.search_high


def test_grid_settings(real_data: Path) -> None:
    settings = load_uci_grid_settings()
    assert [row.dataset for row in settings] == NAMES[:-1]
    assert {row.drop_rates for row in settings} == {(0.005, 0.01, 0.05, 0.1)}
    assert settings[0].precisions == (0.1, 0.15, 0.2)
    assert {row.n_epochs * row.epoch_multiplier for row in settings} == {4000, 2000}


@pytest.mark.parametrize(
    "load",
    [
        load_uci_published,
        load_uci_per_split,
        load_uci_settings,
        load_uci_grid_settings,
    ],
)
def test_absent_tables_have_no_address(cache: Path, load) -> None:
    with pytest.raises(DataError, match="no address to download it from") as caught:
        load()
    assert "CAVEAT_DATA" in str(caught.value) and str(cache) in str(caught.value)


def test_damaged_table(cache: Path) -> None:
    head = b"dataset,variant,split,rmse_single,rmse_mc,ll_mc,tau,train_seconds\n"
    path = "uci/per_split_results.csv"
    write(cache, path, head + b"yacht,original_1x,3,1.5,1.25,-2,,\n")
    (row,) = load_uci_per_split()
    assert (row.dataset, row.split, row.precision) == ("yacht", 3, None)
    for bad in (b"moon,x,3,1,1,-2,,\n", b"yacht,x,3,one,1,-2,,\n", b"yacht,x\n"):
        write(cache, path, head + bad)
        with pytest.raises(DataError, match="per_split_results"):
            load_uci_per_split()
