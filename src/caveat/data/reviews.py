"""Product reviews as bags of words.

.. [Blitzer2007] J. Blitzer, M. Dredze, F. Pereira. Biographies, Bollywood,
   boom-boxes and blenders: domain adaptation for sentiment classification. ACL 2007.
"""

import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from caveat import _validation as validation
from caveat.data import storage
from caveat.data.storage import DataFile, Dataset, Edition

CATEGORIES = ("books", "dvd", "electronics", "kitchen")
VERSIONS = ("full", "top5000", "unlabelled")

_LICENCE = "for research; cite Blitzer et al. 2007"
_ARCHIVE = DataFile(
    "amazon/processed_acl.tar.gz",
    ("https://www.cs.jhu.edu/~mdredze/datasets/sentiment/processed_acl.tar.gz",),
)
_SVMLIGHT = (
    "https://raw.githubusercontent.com/GRAAL-Research/"
    "domain_adversarial_neural_network/master/data"
)
_PARTS = {"full": ("positive", "negative"), "unlabelled": ("unlabeled",)}
_DESCRIPTIONS = {
    "full": "product reviews: 2000 per category, all words and pairs of words",
    "top5000": "product reviews: the 5000 most frequent features, more reviews",
    "unlabelled": "product reviews: 3586 to 5945 more per category, all features",
}


class Reviews(NamedTuple):
    """Reviews as counts, and whether they praise.

    Attributes
    ----------
    X : CSR matrix of SciPy, shape (reviews, features)
        Counts of words and pairs of words.
    y : array of int64, shape (reviews,)
        +1 for praise, -1 for blame.
    """

    X: Any
    y: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ReviewData:
    """Reviews of the products of one category.

    Attributes
    ----------
    category, version : str
    train : Reviews
    test : Reviews or None
        The part called unlabelled, with labels; of the version ``"top5000"`` only.
    vocabulary : tuple of str
        The names of the columns; empty if they are not known.
    source, licence : str
    """

    category: str
    version: str
    train: Reviews
    test: Reviews | None
    vocabulary: tuple[str, ...]
    source: str
    licence: str


def load_reviews(category: str, version: str = "full") -> ReviewData:
    """Product reviews as bags of words, to tell praise from complaint [Blitzer2007]_.

    Parameters
    ----------
    category : str
        ``"books"``, ``"dvd"``, ``"electronics"`` or ``"kitchen"``.
    version : str
        ``"full"``: 2000 reviews with all words and pairs of words. ``"top5000"``: the
        same with 5000 features without names, and 3586 to 5945 others as ``test``.
        ``"unlabelled"``: those others with all features, by download only.

    Returns
    -------
    ReviewData

    Raises
    ------
    ParameterError
        If there is no such category or version.
    DataError
        If the files are neither here nor to be downloaded, or are damaged.

    Examples
    --------
    >>> books = load_reviews("books")  # doctest: +SKIP
    >>> books.train.X.shape, books.vocabulary[-1]  # doctest: +SKIP
    ((2000, 195887), '~$20.00_a')
    """
    validation.one_of("category", category, CATEGORIES)
    validation.one_of("version", version, VERSIONS)
    edition = storage.choose(dataset(version, (category,)))
    paths = [storage.obtain(file) for file in edition.files]
    if edition.files == (_ARCHIVE,):
        train, vocabulary = _read_archive(paths[0], category, _PARTS[version])
        test = None
    elif version == "full":
        train, test = _read_npz(paths[0], ""), None
        vocabulary = _read_vocabulary(paths[1], train)
    else:
        train, test = _read_parts(paths)
        vocabulary = ()
    return ReviewData(
        category, version, train, test, vocabulary, edition.source, _LICENCE
    )


def dataset(version: str, categories: Iterable[str] = CATEGORIES) -> Dataset:
    """Where the files of a version come from, for some categories."""
    editions = tuple(_editions(version, tuple(categories)))
    name = "reviews" if version == "full" else f"reviews-{version}"
    return Dataset(name, _DESCRIPTIONS[version], _LICENCE, editions)


def _editions(version: str, categories: tuple[str, ...]) -> Iterator[Edition]:
    if version == "top5000":
        source = "GRAAL-Research/domain_adversarial_neural_network"
        yield Edition(
            source, tuple(DataFile(f"amazon/{c}_top5000.npz") for c in categories)
        )
        names = [
            f"{c}_{part}.svmlight" for c in categories for part in ("train", "test")
        ]
        yield Edition(
            source,
            tuple(DataFile(f"amazon/{n}", (f"{_SVMLIGHT}/{n}",)) for n in names),
        )
        return
    source = "Multi-domain sentiment, processed_acl"
    if version == "full":
        stems = [f"amazon/{c}_processed_acl" for c in categories]
        files = [f"{stem}.{end}" for stem in stems for end in ("npz", "vocab.txt.gz")]
        yield Edition(source, tuple(DataFile(path) for path in files))
    yield Edition(source, (_ARCHIVE,))


def _read_parts(paths: list[Path]) -> tuple[Reviews, Reviews]:
    if len(paths) == 1:
        return _read_npz(paths[0], "train_"), _read_npz(paths[0], "test_")
    train, test = (_read_svmlight(path) for path in paths)
    return train, test


def _read_npz(path: Path, prefix: str) -> Reviews:
    with storage.reading(path), np.load(path, allow_pickle=False) as arrays:
        keys = ("data", "indices", "indptr", "shape", "y")
        data, indices, indptr, shape, y = (arrays[prefix + key] for key in keys)
        counts = csr_matrix((data, indices, indptr), shape=tuple(shape.tolist()))
        counts.check_format(full_check=True)
        return Reviews(counts, _labels(path, y, counts.shape[0]))


def _read_svmlight(path: Path) -> Reviews:
    from sklearn.datasets import load_svmlight_file  # here: it brings pandas

    with storage.reading(path):
        counts, y = load_svmlight_file(
            str(path), n_features=5000, dtype=np.int16, zero_based=True
        )
        return Reviews(counts, _labels(path, y, counts.shape[0]))


def _labels(path: Path, y: NDArray[Any], n_reviews: int) -> NDArray[np.int64]:
    if y.shape != (n_reviews,) or not np.isin(y, (-1, 1)).all():
        raise storage.damaged(
            path, "it should have a label, +1 or -1, for every review"
        )
    return y.astype(np.int64)


def _read_vocabulary(path: Path, reviews: Reviews) -> tuple[str, ...]:
    with storage.reading(path):
        words = tuple(storage.read_bytes(path).decode().removesuffix("\n").split("\n"))
        if len(words) != reviews.X.shape[1]:
            raise storage.damaged(
                path,
                f"it should name {reviews.X.shape[1]} columns, and names {len(words)}",
            )
        return words


def _read_archive(
    path: Path, category: str, parts: tuple[str, ...]
) -> tuple[Reviews, tuple[str, ...]]:
    with storage.reading(path), tarfile.open(path) as archive:
        lines = [
            line
            for part in parts
            for line in _member(archive, f"{category}/{part}.review").splitlines()
        ]
        bags, labels = zip(*(_parse_line(line) for line in lines), strict=True)
    vocabulary = tuple(sorted({word for bag in bags for word in bag}))
    counts = _counts(bags, {word: column for column, word in enumerate(vocabulary)})
    return Reviews(counts, np.array(labels, dtype=np.int64)), vocabulary


def _member(archive: tarfile.TarFile, ending: str) -> bytes:
    for member in archive.getmembers():
        stream = archive.extractfile(member) if member.isfile() else None
        if stream is not None and member.name.endswith(f"/{ending}"):
            return stream.read()
    raise storage.damaged(Path(str(archive.name)), f"it holds no {ending}")


def _parse_line(line: bytes) -> tuple[dict[str, int], int]:
    """A line such as ``good:2 very_good:1 #label#:positive``."""
    *words, last = line.decode().strip().split(" ")
    sign = {"#label#:positive": 1, "#label#:negative": -1}[last]
    bag: dict[str, int] = {}
    for entry in words:
        word, _, count = entry.rpartition(":")
        bag[word] = bag.get(word, 0) + int(count)
    return bag, sign


def _counts(bags: Sequence[Mapping[str, int]], columns: Mapping[str, int]) -> Any:
    data = [count for bag in bags for count in bag.values()]
    indices = [columns[word] for bag in bags for word in bag]
    indptr = np.cumsum([0, *(len(bag) for bag in bags)])
    counts = csr_matrix(
        (np.array(data, np.int16), indices, indptr), shape=(len(bags), len(columns))
    )
    counts.sort_indices()
    return counts
