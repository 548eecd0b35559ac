"""Digits to train and test on."""

import pytest
import torch

from caveat.errors import DataError
from caveat.papers.lenet import Labelled, as_input, images_of, load_images


def test_digits_stand_in_for_mnist(no_data):
    images = load_images()
    assert images.name == "digits"
    assert len(images.train) + len(images.test) == 1797
    assert images.train.image.shape[1:] == (28, 28)
    assert images.train.image.dtype == torch.uint8
    x = as_input(images.test.image[:2])
    assert x.shape == (2, 1, 28, 28) and 0.9 < x.max() < 1.0
    assert not x[:, :, :4].any() and not x[:, :, :, -4:].any()


def test_numbers_of_other_images_are_not_mixed(no_data):
    assert images_of({"digits"}).name == "digits"
    for names in ({"MNIST"}, {"MNIST", "digits"}):
        with pytest.raises(DataError, match="found now are digits"):
            images_of(names)


def test_mnist_is_taken_where_it_is(real_data):
    images = load_images()
    assert images.name == "MNIST"
    assert (len(images.train), len(images.test)) == (60_000, 10_000)


def test_labelled_images_from_both_ends():
    data = Labelled(torch.arange(5)[:, None, None].expand(5, 2, 2), torch.arange(5))
    assert data.first(2).label.tolist() == [0, 1]
    assert data.last(2).label.tolist() == [3, 4]
    assert len(data.first(None)) == 5
