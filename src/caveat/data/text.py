"""Reviews of films with their ratings, and sentences with their sentiment.

.. [Pang2005] B. Pang, L. Lee. Seeing stars: exploiting class relationships for
   sentiment categorization with respect to rating scales. ACL 2005.
.. [Socher2013] R. Socher et al. Recursive deep models for semantic compositionality
   over a sentiment treebank. EMNLP 2013.
"""

import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from caveat.data import storage
from caveat.data.storage import DataFile, Dataset, Edition

_SST2 = (
    "https://raw.githubusercontent.com/clairett/"
    "pytorch-sentiment-classification/master/data/SST2"
)
_SST2_SIZES = {"train": 6920, "dev": 872, "test": 1821}
_N_MOVIES = 5006
_COLUMNS = ("id", "rating", "label.3class", "label.4class", "subj")

_MOVIE_TABLE = Edition(
    "Scale data v1.0, by yaringal/BayesianRNN",
    (DataFile("text/movie_scale_data.tsv.gz"),),
)
_MOVIE_ARCHIVE = Edition(
    "Scale data v1.0",
    (
        DataFile(
            "text/scale_data.tar.gz",
            (
                "http://www.cs.cornell.edu/people/pabo/movie-review-data/scale_data.tar.gz",
            ),
        ),
    ),
)
MOVIE_SET = Dataset(
    "movie-ratings",
    "5006 film reviews by four critics, with their ratings",
    "for research; cite Pang & Lee 2005",
    (_MOVIE_TABLE, _MOVIE_ARCHIVE),
)

_SST2_SOURCE = "clairett/pytorch-sentiment-classification, SST2"
SST2_SET = Dataset(
    "sst2",
    "sentences of film reviews, positive or negative: 6920, 872 and 1821",
    "none stated; cite Socher et al. 2013",
    (
        Edition(
            _SST2_SOURCE,
            tuple(DataFile(f"text/sst2_{part}.tsv.gz") for part in _SST2_SIZES),
        ),
        Edition(
            _SST2_SOURCE,
            tuple(
                DataFile(f"text/sst2_{part}.tsv", (f"{_SST2}/{part}.tsv",))
                for part in _SST2_SIZES
            ),
        ),
    ),
)


@dataclass(frozen=True, eq=False)
class MovieRatings:
    """Reviews of films and how their authors rated them.

    Attributes
    ----------
    text : tuple of str
        The subjective sentences of each review, in words set apart by spaces.
    rating : array of float64, shape (reviews,)
        From 0 to 1.
    author : tuple of str
    number : array of int64, shape (reviews,)
        The name of the page that the review stood on.
    label3, label4 : arrays of int64, shape (reviews,)
        The rating in three and in four classes.
    source, licence : str
    """

    text: tuple[str, ...]
    rating: NDArray[np.float64]
    author: tuple[str, ...]
    number: NDArray[np.int64]
    label3: NDArray[np.int64]
    label4: NDArray[np.int64]
    source: str
    licence: str

    def __len__(self) -> int:
        return len(self.text)


@dataclass(frozen=True, eq=False)
class Sentences:
    """Sentences with labels.

    Attributes
    ----------
    text : tuple of str
    label : array of int64, shape (sentences,)
        1 for those that are positive, 0 for the others.
    """

    text: tuple[str, ...]
    label: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.text)


@dataclass(frozen=True, eq=False)
class SST2:
    """The Stanford sentiment treebank with two classes.

    Attributes
    ----------
    train, dev, test : Sentences
        To train on, to choose settings by, and to test on.
    source, licence : str
    """

    train: Sentences
    dev: Sentences
    test: Sentences
    source: str
    licence: str


def load_movie_ratings() -> MovieRatings:
    """Film reviews with ratings [Pang2005]_, as in the paper on recurrent networks.

    Returns
    -------
    MovieRatings
        5006 reviews, critic by critic.

    Raises
    ------
    DataError
        If the file is neither here nor to be downloaded, or is damaged.
    """
    edition = storage.choose(MOVIE_SET)
    path = storage.obtain(edition.files[0])
    with storage.reading(path):
        read = _movie_table if edition is _MOVIE_TABLE else _movie_archive
        rows = list(read(path))
        if len(rows) != _N_MOVIES:
            raise storage.damaged(
                path, f"it should hold {_N_MOVIES} reviews, not {len(rows)}"
            )
        author, number, rating, label3, label4, text = zip(*rows, strict=True)
        return MovieRatings(
            text, np.array(rating, np.float64), author, np.array(number, np.int64),
            np.array(label3, np.int64), np.array(label4, np.int64), edition.source,
            MOVIE_SET.licence,
        )  # fmt: skip


def load_sst2() -> SST2:
    """Sentences of film reviews, positive or negative [Socher2013]_.

    Returns
    -------
    SST2
        With parts ``train``, ``dev`` and ``test``.

    Raises
    ------
    DataError
        If a file is neither here nor to be downloaded, or is damaged.
    """
    edition = storage.choose(SST2_SET)
    train, dev, test = (
        _sentences(storage.obtain(file), size)
        for file, size in zip(edition.files, _SST2_SIZES.values(), strict=True)
    )
    return SST2(train, dev, test, edition.source, SST2_SET.licence)


def _sentences(path: Path, size: int) -> Sentences:
    lines = _lines(storage.read_bytes(path))
    with storage.reading(path):
        if len(lines) != size:
            raise storage.damaged(
                path, f"it should hold {size} sentences, not {len(lines)}"
            )
        text, _, label = zip(*(line.rpartition("\t") for line in lines), strict=True)
        return Sentences(text, np.array([int(one) for one in label], np.int64))


def _movie_table(path: Path) -> Iterator[tuple[str, ...]]:
    for line in _lines(storage.read_bytes(path))[1:]:
        author, number, rating, label3, label4, text = line.split("\t")
        yield author.replace("+", " "), number, rating, label3, label4, text


def _movie_archive(path: Path) -> Iterator[tuple[str, ...]]:
    """Files such as ``scaledata/Steve+Rhodes/rating.Steve+Rhodes``, a line a review."""
    with tarfile.open(path) as archive:
        files = {PurePosixPath(m.name).name: m for m in archive if m.isfile()}
        critics = sorted(
            n.removeprefix("subj.") for n in files if n.startswith("subj.")
        )
        for critic in critics:
            columns = (
                _member(archive, files[f"{column}.{critic}"]) for column in _COLUMNS
            )
            for values in zip(*columns, strict=True):
                yield critic.replace("+", " "), *values


def _member(archive: tarfile.TarFile, member: tarfile.TarInfo) -> list[str]:
    stream = archive.extractfile(member)
    if stream is None:
        raise storage.damaged(Path(str(archive.name)), f"{member.name} is not a file")
    return _lines(stream.read())


def _lines(content: bytes) -> list[str]:
    return content.decode().removesuffix("\n").split("\n")
