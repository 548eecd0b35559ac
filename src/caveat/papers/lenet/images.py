"""Digits to train and test on: MNIST, or scikit-learn's where it is absent."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from scipy import ndimage
from sklearn.model_selection import train_test_split
from torch import Tensor

from caveat.data import LabelledImages, load_digits_images, load_mnist
from caveat.errors import DataError

SCALE = 1.0 / 256.0  # of the Caffe files
_SMALL_TEST = 0.25  # share of scikit-learn's digits that is tested on


@dataclass(frozen=True, eq=False)
class Labelled:
    """Grey images and their classes."""

    image: Tensor  # of bytes, shape (images, 28, 28)
    label: Tensor  # of int64, shape (images,)

    def __len__(self) -> int:
        return len(self.label)

    def first(self, count: int | None) -> "Labelled":
        """The first images, or all of them for None."""
        return Labelled(self.image[:count], self.label[:count])

    def last(self, count: int) -> "Labelled":
        """The last images."""
        return Labelled(self.image[-count:], self.label[-count:])


@dataclass(frozen=True, eq=False)
class Images:
    """One data set."""

    name: str  # "MNIST" or "digits"
    train: Labelled
    test: Labelled


def load_images() -> Images:
    """MNIST; where it can neither be read nor downloaded, scikit-learn's digits."""
    try:
        return _mnist()
    except DataError:
        return small_digits()


def images_of(names: set[str]) -> Images:
    """The images, if stored numbers were made with those of these names, no others."""
    images = load_images()
    if names != {images.name}:
        raise DataError(
            f"the stored numbers are about {' and '.join(sorted(names))}, the images "
            f"found now are {images.name}. Make those available again (see `caveat "
            "data list`), or let `--output` name another folder."
        )
    return images


def as_input(image: Tensor) -> Tensor:
    """Images of bytes (rows, 28, 28) as the network takes them (rows, 1, 28, 28)."""
    return image[:, None].float().mul_(SCALE)


@cache
def _mnist() -> Images:
    mnist = load_mnist()
    return Images("MNIST", _labelled(mnist.train), _labelled(mnist.test))


@cache
def small_digits() -> Images:
    """The 1797 digits of scikit-learn, enlarged to 20 × 20 pixels in a frame of 28."""
    digits = load_digits_images()
    larger = ndimage.zoom(digits.image, (1, 2.5, 2.5), order=1)
    framed = np.pad(larger, ((0, 0), (4, 4), (4, 4)))
    image = torch.from_numpy(np.rint(255.0 * framed).astype(np.uint8))
    label = torch.from_numpy(digits.label)
    parts = train_test_split(
        np.arange(len(digits)),
        test_size=_SMALL_TEST,
        stratify=digits.label,
        random_state=0,
    )
    return Images("digits", *(Labelled(image[rows], label[rows]) for rows in parts))


def _labelled(images: LabelledImages) -> Labelled:
    label = torch.from_numpy(images.label.astype(np.int64))
    return Labelled(torch.from_numpy(images.image), label)
