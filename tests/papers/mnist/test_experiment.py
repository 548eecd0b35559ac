"""The numbers of figure 4, its page, and the stored ones."""

from pathlib import Path

import pytest
import torch

from caveat.cli import main
from caveat.papers.mnist.experiment import (
    CERTAIN,
    DOUBTFUL,
    ERROR_BOUND,
    PAPER_CLASSES,
    WHOLE_SPACE,
    Mnist,
    Numbers,
    top_classes,
)
from caveat.papers.mnist.measures import (
    SHARES,
    SHOWN,
    STEPS,
    STRANGE,
    DrawnLogits,
    Number,
    angles,
)
from caveat.papers.mnist.scores import BY_DRAWS, BY_SOFTMAX, SCORES
from caveat.papers.records import read_records
from caveat.papers.runner import complete

RESULTS = Path(__file__).parents[3] / "docs" / "results" / "mnist.csv"


def test_wins_are_over_both_scores_of_the_softmax():
    values = {
        "entropy": (0.9, 0.7),
        BY_SOFTMAX[0]: (0.8, 0.6),
        BY_SOFTMAX[1]: (0.5, 0.8),
    }
    numbers = Numbers(
        [
            Number(seed, "AUROC", "x", name, value)
            for name, pair in values.items()
            for seed, value in enumerate(pair)
        ]
    )
    assert numbers.seeds == [0, 1] and numbers.mean("AUROC", "x", "entropy") == 0.8
    assert numbers.wins("AUROC", "x", "entropy") == 1


def test_the_three_classes_with_the_largest_inputs_are_shown():
    first = torch.tensor([[5.0, 0.0, 4.0, 3.0], [0.0, 9.0, 8.0, 7.0]])
    second = torch.tensor([[-5.0, 3.0, 4.0, 3.0], [0.0, 9.0, 8.0, 7.0]])
    assert top_classes(torch.stack([first, second])) == [[1, 2, 3], [1, 2, 3]]
    assert top_classes(first[None]) == [[0, 2, 3], [1, 2, 3]]


def drawn_probs(path):
    """Of all passes in a file; shape (draws, images, classes)."""
    stored = read_records(path, DrawnLogits)
    logits = [[float(v) for v in one.logits.split()] for one in stored]
    assert [one.angle for one in stored[:12]] == angles(SHOWN)
    return torch.tensor(logits).double().unflatten(0, (-1, 12)).softmax(-1)


def assert_passes_are_those_of_the_numbers(path, numbers):
    probs = drawn_probs(path)
    label = probs.mean(0).argmax(-1)
    assert label.tolist() == numbers.turning("class")
    own = probs[:, range(12), label]
    found = {
        "probability": own.mean(0),
        "lowest drawn": own.amin(0),
        "highest drawn": own.amax(0),
    }
    for name, values in found.items():
        expected = pytest.approx(numbers.turning(name), abs=2e-5)  # six digits
        assert values.tolist() == expected


def test_command_line_without_data(tmp_path, no_data):
    args = ["reproduce", "mnist", "--quick", "--workers", "1"]
    assert main([*args, "--output", str(tmp_path)]) == 0
    (page,) = (path.read_text() for path in tmp_path.glob("*.md"))
    assert "digits, 1,347 images to train on" in page
    assert "The other images are absent" in page
    assert (tmp_path / "mnist_quick.png").stat().st_size > 10_000
    assert (tmp_path / "mnist_quick_uses.png").stat().st_size > 10_000
    numbers = Numbers(read_records(tmp_path / "mnist_quick.csv", Number))
    assert numbers.cases("set aside") == [f"{share:g}" for share in SHARES]
    assert len(numbers.classes(SHOWN, 0)) == len(PAPER_CLASSES)
    assert len(list((tmp_path / "lenet").glob("*.safetensors"))) == 1
    experiment = Mnist(tmp_path, quick=True)
    assert_passes_are_those_of_the_numbers(experiment.rotation, numbers)
    assert complete(experiment, n_workers=1) == 0
    experiment.rotation.unlink()  # a job whose file is lost is run again
    assert complete(experiment, n_workers=1) == 1


def test_stored_passes_are_those_of_the_numbers(stored):
    path = Mnist(RESULTS.parent).rotation
    assert_passes_are_those_of_the_numbers(path, stored)


@pytest.fixture(scope="module")
def stored():
    if not RESULTS.exists():
        pytest.skip(f"{RESULTS.name} is absent: run caveat reproduce mnist")
    return Numbers(read_records(RESULTS, Number))


def test_stored_error_is_at_most_one_percent(stored):
    for way in ("MC", "standard"):
        assert max(stored.values("test", way, "error")) <= ERROR_BOUND
        assert min(stored.values("test", way, "log-likelihood")) > -0.04


def test_stored_rotation_is_certain_first_and_doubtful_later(stored):
    cases = stored.cases(f"rotation by {SHOWN}")
    assert cases == [str(angle) for angle in angles(SHOWN)]
    ratios = stored.turning("variation ratio")
    ends = stored.turning("lowest drawn"), stored.turning("highest drawn")
    widths = [high - low for low, high in zip(*ends, strict=True)]
    assert ratios[0] < CERTAIN and max(ratios) > DOUBTFUL
    assert max(widths) > WHOLE_SPACE
    for step in STEPS:
        assert stored.classes(step, 0)[0] == 1


def test_stored_errors_are_caught_by_every_score(stored):
    for name in SCORES:
        caught = [stored.mean("set aside", f"{share:g}", name) for share in SHARES]
        assert caught == sorted(caught)
        assert stored.mean("set aside", "0.02", name) > 0.5
        assert stored.mean("set aside", "0.05", name) > 0.75


def test_stored_strange_images_stand_out(stored):
    assert stored.cases("AUROC") == list(STRANGE)
    for data in STRANGE:
        for name in SCORES:
            assert 0.85 < min(stored.values("AUROC", data, name)) <= 1.0
        assert set(BY_DRAWS) < set(SCORES)
