"""Reviews as counts, the same from every form they come in."""

import gzip
import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import dump_svmlight_file

from caveat.data import load_reviews
from caveat.data.reviews import CATEGORIES
from caveat.errors import DataError, ParameterError
from tests.data.conftest import write

FACTS = {  # features, in two or more reviews, non-zeros, others, of these + and -
    "books": (195_887, 44_208, 479_173, 4465, 2264, 2201),
    "dvd": (188_778, 43_878, 468_995, 3586, 1807, 1779),
    "electronics": (111_407, 27_495, 307_629, 5681, 2857, 2824),
    "kitchen": (93_474, 23_905, 263_469, 5945, 2954, 2991),
}


@pytest.mark.parametrize("category", CATEGORIES)
def test_full(real_data: Path, category: str) -> None:
    reviews = load_reviews(category)
    features, frequent, non_zeros, *_ = FACTS[category]
    X, y = reviews.train
    assert X.shape == (2000, features) and X.nnz == non_zeros
    assert ((X > 0).sum(axis=0) >= 2).sum() == frequent
    assert y.tolist() == [1] * 1000 + [-1] * 1000
    assert len(reviews.vocabulary) == features == len(set(reviews.vocabulary))
    assert reviews.test is None


def test_the_words_mean_what_they_say(real_data: Path) -> None:
    reviews = load_reviews("books")
    column = {word: place for place, word in enumerate(reviews.vocabulary)}
    counts = reviews.train.X[:, [column["waste"], column["excellent"]]].toarray()
    waste, excellent = reviews.train.y @ counts
    assert waste < 0 < excellent


@pytest.mark.parametrize("category", CATEGORIES)
def test_top5000(real_data: Path, category: str) -> None:
    reviews = load_reviews(category, "top5000")
    *_, others, positive, negative = FACTS[category]
    assert reviews.train.X.shape == (2000, 5000) and reviews.train.y.sum() == 0
    assert reviews.test is not None
    assert reviews.test.X.shape == (others, 5000)
    assert (reviews.test.y == 1).sum() == positive
    assert (reviews.test.y == -1).sum() == negative
    assert reviews.vocabulary == ()


def archive(files: dict[str, str]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(f"processed_acl/{name}")
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
    return packed.getvalue()


WORDS = np.random.default_rng(0).integers(10**6, size=2000)
TAR = "amazon/processed_acl.tar.gz"
SMALL = {
    "dvd/positive.review": "good:2 a:b:1 #label#:positive\n",
    "dvd/negative.review": (
        "bad:1 #label#:negative\nnot_good:3 bad:2 #label#:negative\n"
    ),
    "dvd/unlabeled.review": "new:1 #label#:negative\n",
}
LONG = {
    **SMALL,
    "dvd/negative.review": " ".join(f"{n}:1" for n in WORDS) + " #label#:negative\n",
}


def test_archive(cache: Path) -> None:
    write(cache, TAR, archive(SMALL))
    reviews = load_reviews("dvd")
    assert reviews.vocabulary == ("a:b", "bad", "good", "not_good")
    assert reviews.train.X.toarray().tolist() == [
        [1, 0, 2, 0], [0, 1, 0, 0], [0, 2, 0, 3],
    ]  # fmt: skip
    assert reviews.train.y.tolist() == [1, -1, -1]
    others = load_reviews("dvd", "unlabelled")
    assert others.vocabulary == ("new",) and others.train.y.tolist() == [-1]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (archive(LONG)[:-3000], "EOFError|ReadError"),
        (b"<html>", "ReadError"),
        (archive({}), "holds no dvd/positive"),
        (archive({**SMALL, "dvd/positive.review": "good:2\n"}), "KeyError"),
        (archive({**SMALL, "dvd/positive.review": "a:x #label#:positive\n"}), "Value"),
    ],
    ids=["cut off", "a web page", "empty", "no label", "no number"],
)
def test_damaged_archive(cache: Path, content: bytes, why: str) -> None:
    write(cache, TAR, content)
    with pytest.raises(DataError, match=why):
        load_reviews("dvd")


def test_archive_gives_the_same_as_the_folder(
    real_data: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAVEAT_DATA", str(real_data))
    here = load_reviews("kitchen")
    lines = [
        _line(here.train.X[i], here.train.y[i], here.vocabulary) for i in range(2000)
    ]
    parts = {"positive": lines[:1000], "negative": lines[1000:]}
    files = {f"kitchen/{part}.review": "".join(some) for part, some in parts.items()}
    monkeypatch.delenv("CAVEAT_DATA")
    write(cache, TAR, archive(files))
    there = load_reviews("kitchen")
    assert there.vocabulary == here.vocabulary
    assert (there.train.X != here.train.X).nnz == 0
    assert np.array_equal(there.train.y, here.train.y)


def _line(row: csr_matrix, label: int, vocabulary: tuple[str, ...]) -> str:
    words = (f"{vocabulary[i]}:{n}" for i, n in zip(row.indices, row.data, strict=True))
    return f"{' '.join(words)} #label#:{'positive' if label > 0 else 'negative'}\n"


def test_svmlight_gives_the_same_as_the_folder(
    real_data: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAVEAT_DATA", str(real_data))
    here = load_reviews("kitchen", "top5000")
    monkeypatch.delenv("CAVEAT_DATA")
    for part in ("train", "test"):
        text = io.BytesIO()
        dump_svmlight_file(*getattr(here, part), text, zero_based=True)
        write(cache, f"amazon/kitchen_{part}.svmlight", text.getvalue())
    there = load_reviews("kitchen", "top5000")
    for part in ("train", "test"):
        ours, theirs = getattr(there, part), getattr(here, part)
        assert ours.X.shape == theirs.X.shape and (ours.X != theirs.X).nnz == 0
        assert np.array_equal(ours.y, theirs.y)


def save(cache: Path, **changes: object) -> None:
    arrays = {
        "data": np.ones(2, np.int16), "indices": np.array([0, 1]),
        "indptr": np.array([0, 1, 2]), "shape": np.array([2, 3]),
        "y": np.array([1, -1], np.int8), **changes,
    }  # fmt: skip
    packed = io.BytesIO()
    np.savez(packed, **arrays)
    write(cache, "amazon/dvd_processed_acl.npz", packed.getvalue())


def test_damaged_arrays(cache: Path) -> None:
    vocabulary = "amazon/dvd_processed_acl.vocab.txt.gz"
    write(cache, vocabulary, gzip.compress(b"a\nb\nc\n"))
    save(cache)
    assert load_reviews("dvd").vocabulary == ("a", "b", "c")
    for bad in (
        {"y": np.array([1, 0])},
        {"y": np.array([1])},
        {"indices": np.array([0, 7])},
        {"y": np.array([None, 1])},  # would need pickle
    ):
        save(cache, **bad)
        with pytest.raises(DataError, match=r"processed_acl\.npz"):
            load_reviews("dvd")
    save(cache)
    write(cache, vocabulary, gzip.compress(b"a\nb\n"))
    with pytest.raises(DataError, match="should name 3 columns, and names 2"):
        load_reviews("dvd")


def test_unknown_category_or_version() -> None:
    with pytest.raises(ParameterError, match=r"category must be one of 'b.*'toys'"):
        load_reviews("toys")
    with pytest.raises(ParameterError, match=r"version must be one of 'full'.*'half'"):
        load_reviews("books", "half")
