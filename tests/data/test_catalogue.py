"""The list of data sets, and getting one by name."""

import doctest
import subprocess
import sys
from pathlib import Path

import pytest

from caveat.data import catalogue, fetch, list_datasets
from caveat.errors import DataError, ParameterError
from tests.data.conftest import Server

NOWHERE = {"uci-results", "co2"}


def test_list_on_a_machine_without_data(cache: Path) -> None:
    listed = list_datasets()
    names = [info.name for info in listed]
    assert len(set(names)) == len(names) == 22
    assert all(info.present is None for info in listed)
    assert {info.name for info in listed if not info.downloadable} == NOWHERE
    assert all(info.description and info.licence for info in listed)


def test_list_with_the_data_folder(real_data: Path) -> None:
    absent = {info.name for info in list_datasets() if info.present is None}
    assert absent <= {"year", "reviews-unlabelled"}
    (mnist,) = [info for info in list_datasets() if info.name == "mnist"]
    assert mnist.present == real_data / "mnist"


def test_addresses_are_whole() -> None:
    for dataset in catalogue._datasets():
        for edition in dataset.editions:
            for file in edition.files:
                assert not file.path.startswith("/")
                assert all(url.startswith(("https://", "http://")) for url in file.urls)
                assert all(" " not in url for url in file.urls)


def test_fetch_downloads_what_is_missing(mirror: Server, cache: Path) -> None:
    for name in ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"):
        mirror.put(f"ood/notmnist-{name}", b"bytes")
    for _ in range(2):
        assert fetch("notmnist", progress=False) == cache / "ood"
    assert len(mirror.asked) == 2
    (info,) = [info for info in list_datasets() if info.name == "notmnist"]
    assert info.present == cache / "ood"


def test_fetch_of_what_is_nowhere(cache: Path) -> None:
    with pytest.raises(DataError, match=r"uci-results.*and 3 more.*no address"):
        fetch("uci-results")


def test_fetch_of_an_unknown_name() -> None:
    with pytest.raises(ParameterError, match=r"'boston', .*'sst2'\. Got 'imagenet'"):
        fetch("imagenet")


def test_import_of_the_loaders_is_light() -> None:
    code = (
        "import sys, caveat.data; print([m for m in ('pandas', 'statsmodels', 'h5py',"
        " 'matplotlib.pyplot') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_doctests() -> None:
    assert doctest.testmod(catalogue).failed == 0
