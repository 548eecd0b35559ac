"""MNIST is the official one, and the others have the facts of their readme."""

import gzip
import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from caveat.data import images, load_fashion_sample, load_mnist, load_notmnist
from caveat.data.images import MNIST_SET, read_idx
from caveat.errors import DataError
from tests.data.conftest import Server, write


def idx(array: np.ndarray) -> bytes:
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    return gzip.compress(head + array.tobytes())


def test_mnist(real_data: Path) -> None:
    mnist = load_mnist()
    for part, size in ((mnist.train, 60_000), (mnist.test, 10_000)):
        assert part.image.shape == (size, 28, 28) and part.label.shape == (size,)
        assert part.image.dtype == part.label.dtype == np.uint8
        assert len(part) == size and part.image.flags.writeable
    assert np.bincount(mnist.train.label).tolist() == [
        5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949,
    ]  # fmt: skip
    assert np.bincount(mnist.test.label).tolist() == [
        980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009,
    ]  # fmt: skip
    assert mnist.train.image.mean() / 255 == pytest.approx(0.13066, abs=5e-6)
    assert mnist.train.label[:5].tolist() == [5, 0, 4, 1, 9]
    raw = hashlib.md5(idx_content(mnist.train.image)).hexdigest()
    assert raw == "6bbc9ace898e44ae57da46a324031adb"


def idx_content(array: np.ndarray) -> bytes:
    return gzip.decompress(idx(array[:0])).replace(
        np.array([0], ">u4").tobytes(), np.array([len(array)], ">u4").tobytes(), 1
    ) + array.tobytes()  # fmt: skip


def test_mnist_is_downloaded_with_its_checksums(
    real_data: Path, mirror: Server, cache: Path
) -> None:
    for file in MNIST_SET.editions[0].files:
        mirror.put(file.path, (real_data / file.path).read_bytes())
    assert len(load_mnist().test) == 10_000
    label = cache / "mnist/t10k-labels-idx1-ubyte.gz"
    label.write_bytes(idx(np.zeros(10_000, np.uint8)))
    with pytest.raises(DataError, match="md5:ec29112dd5afa0611ce80d1b7f02629c"):
        load_mnist()


def test_mnist_from_a_wrong_server(mirror: Server, cache: Path) -> None:
    for file in MNIST_SET.editions[0].files:
        mirror.put(file.path, idx(np.zeros((3, 28, 28), np.uint8)))
    with pytest.raises(DataError, match="f68b3c2dcbeaaa9fbdd348bbdeb94873") as caught:
        load_mnist()
    assert str(cache / "mnist/train-images-idx3-ubyte.gz") in str(caught.value)


def test_mnist_has_two_addresses_and_a_checksum_per_file() -> None:
    for file in MNIST_SET.editions[0].files:
        assert len(file.urls) == 2
        assert all(url.endswith(file.path.removeprefix("mnist/")) for url in file.urls)
        assert file.checksum is not None


def test_notmnist(real_data: Path) -> None:
    letters = load_notmnist()
    assert letters.image.shape == (10_000, 28, 28)
    assert np.bincount(letters.label).tolist() == [1000] * 10
    assert letters.class_names[0] == "A"


def test_notmnist_that_is_damaged(cache: Path) -> None:
    image = np.zeros((10_000, 28, 28), np.uint8)
    write(cache, "ood/notmnist-t10k-images-idx3-ubyte.gz", idx(image))
    labels = "ood/notmnist-t10k-labels-idx1-ubyte.gz"
    write(cache, labels, idx(np.ones(10_000, np.uint8)))
    assert load_notmnist().label.sum() == 10_000
    write(cache, labels, idx(np.ones(9_999, np.uint8)))
    with pytest.raises(DataError, match=r"labels.*should hold bytes \(10000,\)"):
        load_notmnist()


def test_fashion_sample(real_data: Path) -> None:
    clothes = load_fashion_sample()
    assert clothes.image.shape == (10_000, 28, 28)
    assert np.bincount(clothes.label).tolist() == [1000] * 10
    assert (np.diff(clothes.label.astype(int)) >= 0).all()
    assert "both splits" in clothes.source


def test_official_fashion_where_there_is_no_sample(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample, official = images.FASHION_SET.editions
    assert all(file.checksum and file.urls for file in official.files)
    unchecked = replace(
        official, files=tuple(replace(file, checksum=None) for file in official.files)
    )
    monkeypatch.setattr(
        images, "FASHION_SET", replace(images.FASHION_SET, editions=(sample, unchecked))
    )
    image = np.full((10_000, 28, 28), 7, np.uint8)
    write(cache, official.files[0].path, idx(image))
    write(cache, official.files[1].path, idx(image[:, 0, 0]))
    clothes = load_fashion_sample()
    assert clothes.image.min() == 7 and "official test split" in clothes.source


@pytest.mark.parametrize("shape", [(5,), (2, 3), (2, 3, 4)])
def test_idx_of_any_shape(tmp_path: Path, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    path = write(tmp_path, "a.gz", idx(array))
    assert np.array_equal(read_idx(path), array)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0\0\x0d\x01\0\0\0\x01\0\0\0\0",
        b"\0\0\x08\x01\0\0\0\x05abc",
        b"\0\0\x08\x03",
    ],
    ids=["empty", "floats", "truncated", "head only"],
)
def test_idx_that_is_none(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(DataError, match="a-file"):
        read_idx(write(tmp_path, "a-file", content))
