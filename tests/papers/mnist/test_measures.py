"""A digit turned step by step."""

import numpy as np
import torch

from caveat.papers.lenet.images import small_digits
from caveat.papers.mnist.measures import angles, rotations, turned, typical


def test_turning_is_anticlockwise_about_the_centre():
    image = small_digits().test.image[:3]
    for quarter in range(4):
        expected = np.rot90(image.numpy(), quarter, axes=(1, 2))
        found = turned(image, 90 * quarter).numpy().astype(int)
        assert np.abs(found - expected).max() <= 1  # rounded back to bytes


def test_twelve_images_of_the_typical_digit():
    images = small_digits()
    image = typical(images)
    assert any(torch.equal(image, one) for one in images.test.image)
    found = rotations(image, 15)
    assert found.shape == (12, 28, 28) and angles(15)[-1] == 165
    assert torch.equal(found[0], image)
    assert torch.equal(found[6], turned(image[None], 90)[0])
