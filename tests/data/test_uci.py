"""The UCI sets have the facts of their readme, and the splits of their authors."""

import doctest
import gzip
import hashlib
import io
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from caveat.data import load_uci, uci
from caveat.data.uci_sets import UCI_SETS, UCISet
from caveat.errors import DataError, ParameterError
from tests.data.conftest import Server, write

NINE = UCI_SETS[:-1]
YEAR = UCI_SETS[-1]

FACTS = {  # rows, inputs, train, test, splits, hidden, epochs, mean, sd of the target
    "boston": (506, 13, 455, 51, 20, 50, 40, 22.53, 9.19),
    "concrete": (1030, 8, 927, 103, 20, 50, 40, 35.82, 16.70),
    "energy": (768, 8, 691, 77, 20, 50, 40, 22.31, 10.08),
    "kin8nm": (8192, 8, 7373, 819, 20, 50, 40, 0.714, 0.264),
    "naval": (11934, 16, 10741, 1193, 20, 50, 40, 0.975, 0.0147),
    "power": (9568, 4, 8611, 957, 20, 50, 40, 454.37, 17.07),
    "protein": (45730, 9, 41157, 4573, 5, 100, 20, 7.75, 6.12),
    "wine": (1599, 11, 1439, 160, 20, 50, 40, 5.64, 0.81),
    "yacht": (308, 6, 277, 31, 20, 50, 40, 10.50, 15.14),
}


@pytest.mark.parametrize("name", FACTS)
def test_facts(real_data: Path, name: str) -> None:
    data = load_uci(name)
    rows, inputs, n_train, n_test, splits, hidden, epochs, mean, sd = FACTS[name]
    assert data.X.shape == (rows, inputs) and data.y.shape == (len(data),) == (rows,)
    assert data.X.dtype == data.y.dtype == np.float64
    assert np.isfinite(data.X).all() and np.isfinite(data.y).all()
    assert len(data.feature_names) == inputs == len(set(data.feature_names))
    assert (data.n_hidden, data.n_epochs) == (hidden, epochs)
    assert data.y.mean() == pytest.approx(mean, abs=0.5 * 10.0 ** -_digits(mean))
    assert data.y.std() == pytest.approx(sd, abs=0.51 * 10.0 ** -_digits(sd))
    assert len(data.splits) == splits
    for train, test in data.splits:
        assert (len(train), len(test)) == (n_train, n_test)
        assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(rows))


def _digits(number: float) -> int:
    return len(str(number).partition(".")[2]) if number not in (10.5, 16.7) else 2


@pytest.mark.parametrize("spec", NINE, ids=lambda spec: spec.name)
def test_rebuilt_splits_are_those_of_the_index_files(
    real_data: Path, spec: UCISet
) -> None:
    assert (real_data / "uci" / spec.folder / "index_train_0.txt").is_file()
    read = load_uci(spec.folder).splits
    rebuilt = uci.rebuilt_splits(spec.n_rows, spec.n_splits)
    for ours, theirs in zip(rebuilt, read, strict=True):
        assert np.array_equal(ours.train, theirs.train)
        assert np.array_equal(ours.test, theirs.test)


@pytest.mark.parametrize("spec", NINE, ids=lambda spec: spec.name)
def test_protocol_is_that_of_the_folder(real_data: Path, spec: UCISet) -> None:
    folder = real_data / "uci" / spec.folder

    def read(name: str) -> list[int]:
        return [int(float(word)) for word in (folder / name).read_text().split()]

    assert read("n_splits.txt") == [spec.n_splits]
    assert read("n_hidden.txt") == [spec.n_hidden]
    assert read("n_epochs.txt") == [spec.n_epochs]
    assert read("index_features.txt") == list(spec.feature_columns)
    assert read("index_target.txt") == [spec.target_column % spec.n_columns]


def test_constant_columns_of_naval(real_data: Path) -> None:
    assert np.flatnonzero(np.ptp(load_uci("naval").X, axis=0) == 0).tolist() == [8, 11]


def test_split_gives_the_cases(real_data: Path) -> None:
    data = load_uci("yacht")
    X_train, y_train, X_test, y_test = data.split(3)
    assert np.array_equal(X_train, data.X[data.splits[3].train])
    assert np.array_equal(y_test, data.y[data.splits[3].test])
    assert len(X_train) == len(y_train) and len(X_test) == len(y_test)


def test_official_text_is_downloaded_and_split_anew(
    real_data: Path, cache: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = real_data / "uci" / "yacht" / "data.txt.gz"
    content = gzip.decompress(packed.read_bytes())
    server.put("UCI_Datasets/yacht/data/data.txt", content)
    monkeypatch.setattr(uci, "_REPOSITORY", server.url)
    downloaded = load_uci("yacht")
    assert (cache / "uci/yacht/data.txt").read_bytes() == content
    monkeypatch.setenv("CAVEAT_DATA", str(real_data))
    here = load_uci("yacht")
    assert np.array_equal(downloaded.X, here.X)
    assert np.array_equal(downloaded.y, here.y)
    assert np.array_equal(downloaded.splits[19].test, here.splits[19].test)


TEXT = b"".join(b"%d %d %d\n" % (i, 10 * i, 100 * i) for i in range(30))
SMALL = UCISet(
    "small", "small-set", 30, 3, ("a", "b"), "c", "m",
    hashlib.sha256(TEXT).hexdigest(), n_splits=2,
)  # fmt: skip


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    tiny_year = replace(YEAR, n_rows=50, n_test=5)
    monkeypatch.setattr(uci, "UCI_SETS", (SMALL, tiny_year))


@pytest.mark.usefixtures("small")
def test_small_set_in_both_forms(cache: Path) -> None:
    write(cache, "uci/small-set/data.txt", TEXT)
    data = load_uci("small")
    assert data.X[2].tolist() == [2, 20] and data.y[2] == 200
    assert [len(part) for part in data.splits[1]] == [27, 3]
    (cache / "uci/small-set/data.txt").unlink()
    write(cache, "uci/small-set/data.txt.gz", gzip.compress(TEXT))
    again = load_uci("small-set")
    assert again.name == "small" and np.array_equal(again.X, data.X)
    write(cache, "uci/small-set/index_train_0.txt", b"1\n2\n")
    write(cache, "uci/small-set/index_test_0.txt", b"0\n")
    with pytest.raises(DataError, match=r"index_train_1\.txt"):
        load_uci("small")
    write(cache, "uci/small-set/index_train_1.txt", b"5\n")
    write(cache, "uci/small-set/index_test_1.txt", b"6\n")
    assert [part.tolist() for part in load_uci("small").splits[0]] == [[1, 2], [0]]


@pytest.mark.usefixtures("small")
def test_other_content_is_refused(cache: Path) -> None:
    write(cache, "uci/small-set/data.txt.gz", gzip.compress(TEXT[:-5]))
    with pytest.raises(DataError, match=SMALL.sha256):
        load_uci("small")


@pytest.mark.usefixtures("small")
def test_absent_set_says_where_to_put_it(
    cache: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uci, "_REPOSITORY", server.url)
    with pytest.raises(DataError) as caught:
        load_uci("small")
    assert str(cache / "uci/small-set/data.txt") in str(caught.value)
    assert f"{server.url}/UCI_Datasets/small-set/data/data.txt" in str(caught.value)


def year_zip(n_rows: int) -> tuple[bytes, np.ndarray]:
    table = np.random.default_rng(0).normal(size=(n_rows, 91)).round(3)
    table[:, 0] = 1990 + np.arange(n_rows) % 20
    text = "\n".join(",".join(map(str, row)) for row in table.tolist())
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("YearPredictionMSD.txt", text)
    return packed.getvalue(), table


@pytest.mark.usefixtures("small")
def test_year_is_downloaded_and_split_by_its_own_rule(mirror: Server) -> None:
    packed, table = year_zip(50)
    mirror.put("uci/YearPredictionMSD/yearpredictionmsd.zip", packed)
    year = load_uci("year")
    assert np.array_equal(year.X, table[:, 1:]) and np.array_equal(year.y, table[:, 0])
    ((train, test),) = year.splits
    assert train.tolist() == list(range(45)) and test.tolist() == list(range(45, 50))


@pytest.mark.usefixtures("small")
def test_damaged_year(cache: Path) -> None:
    packed, _ = year_zip(50)
    other, _ = year_zip(49)
    for content, why in (
        (packed[:-100], "BadZipFile"),
        (other, "should have 50 rows of 91 numbers, and has 49 of 91"),
    ):
        write(cache, "uci/YearPredictionMSD/yearpredictionmsd.zip", content)
        with pytest.raises(DataError, match=why):
            load_uci("year")


def test_year_is_split_as_its_authors_ask() -> None:
    assert (YEAR.n_rows, YEAR.n_columns) == (515_345, 91)
    ((train, test),) = uci._fixed(YEAR.n_rows, YEAR)
    assert (len(train), len(test)) == (463_715, 51_630)
    assert test[0] == 463_715 and test[-1] == 515_344
    assert len(YEAR.feature_names) == 90 and YEAR.feature_columns == range(1, 91)


def test_unknown_name() -> None:
    with pytest.raises(ParameterError, match=r"'boston', 'con.*'year'\. Got 'iris'"):
        load_uci("iris")


def test_doctests() -> None:
    assert doctest.testmod(uci).failed == 0
