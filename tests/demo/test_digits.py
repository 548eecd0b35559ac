"""The digits task: images, rotations, and the classes worth showing."""

import numpy as np
import torch

from caveat.data import load_digits_images
from caveat.demo import digits
from caveat.predictive import CategoricalPredictive


def test_enlarged_images_keep_their_ink() -> None:
    image = load_digits_images().image[:5]
    large = digits.enlarge(image)
    assert large.shape == (5, 20, 20)
    assert large[:, :2].max() == 0 and large[:, :, -2:].max() == 0
    np.testing.assert_allclose(large[:, 2, 2:-2:15], image[:, 0, ::7])  # corners


def test_the_split_is_stratified_disjoint_and_seeded() -> None:
    data = load_digits_images()
    task, again, other = (digits.DigitsTask.of(data, seed=seed) for seed in (0, 0, 1))
    assert len(task.train[1]) == 1347 and len(task.test[1]) == 450
    assert (torch.bincount(task.test[1]) >= 43).all()
    assert torch.equal(task.test[0], again.test[0])
    assert not torch.equal(task.test[1], other.test[1])


def test_rotations_start_upright_and_turn() -> None:
    image = torch.zeros(1, 20, 20)
    image[:, 4:16, 9:11] = 1.0
    turned = digits.rotations(image)
    assert turned.shape == (12, 1, 20, 20)
    torch.testing.assert_close(turned[0], image)
    upright = list(digits.ANGLES).index(90)
    torch.testing.assert_close(turned[upright], image.mT, atol=1e-5, rtol=0)
    assert turned.min() >= 0 and turned.max() <= 1 + 1e-6


def test_a_typical_digit_is_one_of_the_test_images() -> None:
    task = digits.DigitsTask.of(load_digits_images(), seed=0)
    chosen = digits.typical(task, 1)
    same = (task.test[0] == chosen).all((1, 2, 3))
    assert task.test[1][same].tolist() == [1]


def test_top_classes_are_likely_somewhere() -> None:
    logits = torch.full((5, 2, 10), -9.0)
    logits[:, 0, 7] = logits[:, 1, 2] = 9.0
    predictive = CategoricalPredictive.from_logits(logits)
    assert digits.top_classes(predictive) == [2, 7]
