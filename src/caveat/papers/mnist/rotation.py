"""A digit turned step by step."""

import numpy as np
import torch
from scipy import ndimage
from torch import Tensor

from caveat.papers.lenet import Images

DIGIT = 1
N_IMAGES = 12
STEPS = (-15, -10, -5, 5, 10, 15)  # degrees per image; anticlockwise is positive
SHOWN = 10  # the step of the figure: of these the most like the paper's classes


def angles(step: int) -> list[int]:
    """The angles of the twelve images."""
    return [k * step for k in range(N_IMAGES)]


def typical(images: Images, digit: int = DIGIT) -> Tensor:
    """The test image nearest to the mean training image of a digit; (28, 28)."""
    mean = images.train.image[images.train.label == digit].float().mean(0)
    candidates = images.test.image[images.test.label == digit]
    distance = (candidates.float() - mean).square().sum((1, 2))
    return candidates[distance.argmin()]


def turned(image: Tensor, angle: float) -> Tensor:
    """Images (rows, 28, 28) of bytes, turned anticlockwise about their centre.

    Parameters
    ----------
    image : Tensor of uint8, shape (rows, 28, 28)
        The images.
    angle : float
        In degrees.

    Returns
    -------
    Tensor of uint8, shape (rows, 28, 28)
    """
    found = ndimage.rotate(
        image.numpy().astype(np.float32), angle, axes=(2, 1), reshape=False, order=1
    )
    return torch.from_numpy(np.rint(found).clip(0, 255).astype(np.uint8))


def rotations(image: Tensor, step: int) -> Tensor:
    """One image (28, 28) at all angles; shape (12, 28, 28)."""
    return torch.cat([turned(image[None], angle) for angle in angles(step)])
