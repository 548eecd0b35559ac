"""The digits task: images, rotations, and the classes worth showing."""

import dataclasses

import numpy as np
import pytest
import torch
from sklearn.model_selection import train_test_split

from caveat.data import load_digits_images
from caveat.demo import digits, digits_figure
from caveat.predictive import CategoricalPredictive
from caveat.sampling import MCDropout


def test_enlarged_images_keep_their_ink() -> None:
    image = load_digits_images().image[:5]
    large = digits.enlarge(image)
    assert large.shape == (5, 20, 20)
    assert large[:, :2].max() == 0 and large[:, :, -2:].max() == 0
    np.testing.assert_allclose(large[:, 2, 2:-2:15], image[:, 0, ::7])  # corners


def test_the_split_is_stratified_disjoint_and_seeded() -> None:
    data = load_digits_images()
    task, again, other = (digits.DigitsTask.of(data, seed=seed) for seed in (0, 0, 1))
    sizes = [len(labels) for _, labels in (task.train, task.validation, task.test)]
    assert sizes == [897, 450, 450]
    for _, labels in (task.validation, task.test):
        assert (torch.bincount(labels) >= 43).all()
    images = torch.cat([task.train[0], task.validation[0], task.test[0]])
    assert len(images.unique(dim=0)) == len(torch.from_numpy(data.image).unique(dim=0))
    assert torch.equal(task.test[0], again.test[0])
    assert not torch.equal(task.test[1], other.test[1])


def test_the_images_that_settings_were_chosen_by_are_not_tested_on() -> None:
    """They were the quarter that one split of seed 0 puts aside."""
    data = load_digits_images()
    _, seen = train_test_split(
        np.arange(len(data)), test_size=0.25, stratify=data.label, random_state=0
    )
    task = digits.DigitsTask.of(data, seed=0)
    images = torch.from_numpy(digits.enlarge(data.image[seen]))[:, None]
    assert torch.equal(task.validation[0], images)


def test_rotations_start_upright_and_turn() -> None:
    image = torch.zeros(1, 20, 20)
    image[:, 4:16, 9:11] = 1.0
    turned = digits.rotations(image)
    assert turned.shape == (12, 1, 20, 20)
    torch.testing.assert_close(turned[0], image)
    upright = list(digits.ANGLES).index(90)
    torch.testing.assert_close(turned[upright], image.mT, atol=1e-5, rtol=0)
    assert turned.min() >= 0 and turned.max() <= 1 + 1e-6


def test_a_typical_digit_is_one_of_the_validation_images() -> None:
    task = digits.DigitsTask.of(load_digits_images(), seed=0)
    chosen = digits.typical(task, 1)
    images, labels = task.validation
    assert labels[(images == chosen).all((1, 2, 3))].tolist() == [1]
    mean = task.train[0][task.train[1] == 1].mean(0)
    others = (images[labels == 1] - mean).square().sum((1, 2, 3))
    assert (chosen - mean).square().sum() == others.min()


def test_top_classes_are_likely_somewhere() -> None:
    logits = torch.full((5, 2, 10), -9.0)
    logits[:, 0, 7] = logits[:, 1, 2] = 9.0
    predictive = CategoricalPredictive.from_logits(logits)
    assert digits_figure.top_classes(predictive) == [2, 7]


def test_the_report_is_that_of_the_test_images(tmp_path) -> None:
    """Error, log-likelihood and sizes, recomputed from the network."""
    effort = digits.DigitsEffort(n_steps=3)
    report = digits.run(tmp_path, effort, seed=0)
    task = digits.DigitsTask.of(load_digits_images(), seed=0)
    net = digits.train(task, effort, seed=0)
    drawn = MCDropout(net, seed=0).classify(task.test[0], n_draws=digits.N_DRAWS)
    wrong = (drawn.label != task.test[1]).double().mean().item()
    assert report.error == pytest.approx(100 * wrong)
    assert report.log_likelihood == pytest.approx(
        drawn.log_prob(task.test[1]).mean().item(), rel=1e-5
    )
    with torch.no_grad():
        plain = (net(task.test[0]).argmax(-1) != task.test[1]).double().mean().item()
    assert report.standard_error == pytest.approx(100 * plain)
    assert report.settings["test images"] == 450
    assert report.figure == tmp_path / "digits.png" and report.figure.exists()


def test_no_test_image_is_seen_in_training() -> None:
    task = digits.DigitsTask.of(load_digits_images(), seed=0)
    blank = tuple(torch.zeros_like(part) for part in task.test)
    other = dataclasses.replace(task, test=blank)
    effort = digits.DigitsEffort(n_steps=2)
    nets = [digits.train(t, effort, seed=0) for t in (task, other)]
    assert torch.equal(nets[0][0].weight, nets[1][0].weight)
    assert torch.equal(digits.typical(task, 1), digits.typical(other, 1))


def test_dropout_stands_before_every_weight_layer_but_the_first() -> None:
    """Before the last alone, half of the turned 1s are surely taken for a 4."""
    net = digits.make_net(torch.Generator().manual_seed(0))
    kinds = [type(layer).__name__ for layer in net]
    weights = [k for k, kind in enumerate(kinds) if kind in ("Conv2d", "Linear")]
    assert [kinds[k - 1] for k in weights[1:]] == ["Dropout"] * 3


def predictive_of(labels: list[int], *, sure: bool) -> CategoricalPredictive:
    logits = torch.zeros(4, len(labels), 10)
    for row, label in enumerate(labels):
        logits[: 4 if sure else 3, row, label] = 50.0
        logits[4 if sure else 3 :, row, 9 - label] = 50.0
    return CategoricalPredictive.from_logits(logits)


@pytest.mark.parametrize(("sure", "share"), [(True, 1.0), (False, 0.0)])
def test_the_share_of_sure_mistakes(sure: bool, share: float) -> None:
    labels = [1, 4, 7, 1]
    found = digits.Turned(torch.zeros(4, 1, 20, 20), predictive_of(labels, sure=sure))
    assert found.share_wrong == 0.5
    assert found.share_sure == share


def test_measures_are_averaged_over_images() -> None:
    n = len(digits.ANGLES)
    found = digits.Turned(torch.zeros(2 * n, 1, 20, 20), predictive_of([1], sure=True))
    values = torch.cat([torch.zeros(n), torch.arange(float(n))])
    torch.testing.assert_close(found.by_angle(values), torch.arange(float(n)) / 2)


def test_the_picture_has_a_line_for_each_angle() -> None:
    n = len(digits.ANGLES)
    lines = digits.picture(predictive_of([1] * (n - 1) + [4], sure=False)).splitlines()
    assert len(lines) == n + 1 and all(len(line) <= 80 for line in lines)
    assert lines[1].split()[:3] == ["0°", "1", "0.75"]
    assert lines[-1].split()[:3] == ["165°", "4", "0.75"]
