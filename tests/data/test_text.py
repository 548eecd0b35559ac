"""Film reviews and sentences, the same from every form they come in."""

import gzip
import io
import tarfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from caveat.data import load_movie_ratings, load_sst2
from caveat.errors import DataError
from tests.data.conftest import write

CRITICS = {
    "Dennis Schwartz": 1027,
    "James Berardinelli": 1307,
    "Scott Renshaw": 902,
    "Steve Rhodes": 1770,
}


def test_movie_ratings(real_data: Path) -> None:
    movies = load_movie_ratings()
    assert len(movies) == 5006 == len(movies.rating)
    assert Counter(movies.author) == CRITICS
    assert list(dict.fromkeys(movies.author)) == list(CRITICS)
    assert movies.rating.min() >= 0 and movies.rating.max() <= 1
    assert movies.text[0].startswith("in my opinion , a movie reviewer's most")
    assert (movies.number[0], movies.rating[0]) == (29420, 0.1)
    rounded = np.round(movies.rating, 6)
    three = np.where(rounded <= 0.4, 0, np.where(rounded < 0.7, 1, 2))
    assert np.array_equal(movies.label3, three)
    assert set(movies.label4.tolist()) == {0, 1, 2, 3}


def test_movie_archive_gives_the_same(
    real_data: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = (real_data / "text/movie_scale_data.tsv.gz").read_bytes()
    rows = [
        line.split("\t") for line in gzip.decompress(packed).decode().splitlines()[1:]
    ]
    columns = {"id": 1, "rating": 2, "label.3class": 3, "label.4class": 4, "subj": 5}
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz", compresslevel=1) as tar:
        for critic in reversed(CRITICS):
            author = critic.replace(" ", "+")
            for column, place in columns.items():
                lines = [row[place] + "\n" for row in rows if row[0] == author]
                text = "".join(lines).encode()
                info = tarfile.TarInfo(f"scaledata/{author}/{column}.{author}")
                info.size = len(text)
                tar.addfile(info, io.BytesIO(text))
    write(cache, "text/scale_data.tar.gz", content.getvalue())
    there = load_movie_ratings()
    monkeypatch.setenv("CAVEAT_DATA", str(real_data))
    here = load_movie_ratings()
    assert there.text == here.text and there.author == here.author
    for name in ("rating", "number", "label3", "label4"):
        assert np.array_equal(getattr(there, name), getattr(here, name))


def test_damaged_movie_ratings(cache: Path) -> None:
    head = b"author\tid\trating\tlabel3\tlabel4\ttext\n"
    path = "text/movie_scale_data.tsv.gz"
    for rows, why in (
        (b"A+B\t1\t0.5\t1\t1\tfine\n", "should hold 5006 reviews, not 1"),
        (b"A+B\t1\n", "not enough values"),
    ):
        write(cache, path, gzip.compress(head + rows))
        with pytest.raises(DataError, match=why):
            load_movie_ratings()


def test_sst2(real_data: Path) -> None:
    sst2 = load_sst2()
    assert [len(p) for p in (sst2.train, sst2.dev, sst2.test)] == [6920, 872, 1821]
    assert np.bincount(sst2.train.label).tolist() == [3310, 3610]
    assert sst2.dev.text[0] == "one long string of cliches" and sst2.dev.label[0] == 0


def test_sst2_in_its_original_form(
    real_data: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in ("train", "dev", "test"):
        packed = (real_data / f"text/sst2_{part}.tsv.gz").read_bytes()
        write(cache, f"text/sst2_{part}.tsv", gzip.decompress(packed))
    there = load_sst2()
    monkeypatch.setenv("CAVEAT_DATA", str(real_data))
    assert there.train.text == load_sst2().train.text


def test_damaged_sst2(cache: Path) -> None:
    lines = b"good\t1\n" * 6920
    for part, content in (("train", lines), ("dev", lines[: 7 * 871]), ("test", lines)):
        write(cache, f"text/sst2_{part}.tsv.gz", gzip.compress(content))
    with pytest.raises(DataError, match=r"sst2_dev.*872 sentences, not 871"):
        load_sst2()
    write(cache, "text/sst2_train.tsv.gz", gzip.compress(b"good\tyes\n" * 6920))
    with pytest.raises(DataError, match=r"sst2_train.*'yes'"):
        load_sst2()
