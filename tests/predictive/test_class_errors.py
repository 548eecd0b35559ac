"""Errors of entropies and of information, against their spread over seeds."""

import pytest
import torch
from scipy import stats

from caveat.predictive import CategoricalAccumulator, CategoricalPredictive
from caveat.predictive.strata import Stratification
from tests.predictive.test_strata import outputs

MEASURES = ["entropy", "expected_entropy", "mutual_information"]


def predictive(seed, n_draws, design):
    if design is None:
        generator = torch.Generator().manual_seed(seed)
        logits = torch.randn(n_draws, 4, 3, generator=generator).double()
    else:
        logits = outputs(seed, n_draws).view(n_draws, 2, 3) / 4
    # Off the largest entropy, where it has no slope.
    logits += torch.tensor([0.0, 1.0, 2.0], dtype=torch.float64)
    return CategoricalPredictive.from_logits(logits, design=design)


@pytest.mark.parametrize(
    "design", [None, Stratification((0.25,))], ids=["plain", "stratified"]
)
@pytest.mark.parametrize("measure", MEASURES)
def test_standardised_errors_have_unit_variance_or_less(measure, design):
    n_seeds, n_draws = 150, 100
    # Both kinds of entropy are averages of functions of draws but for 1/T of bias.
    truth = torch.stack(
        [getattr(predictive(10_000 + s, 512, design), measure) for s in range(60)]
    ).mean(0)
    found = [predictive(seed, n_draws, design) for seed in range(n_seeds)]
    scores = torch.stack(
        [(getattr(p, measure) - truth) / getattr(p, f"{measure}_error") for p in found]
    )
    low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], n_seeds) / n_seeds
    if measure == "entropy":
        low = 0.3  # its slope is that of the first draws, which makes it larger
    assert low < float((scores - scores.mean(0)).square().mean()) < high


def nearly_even(seed, n_draws):
    """Logits of probabilities of 0.4 and 0.6 on average, each draw sure of one."""
    generator = torch.Generator().manual_seed(seed)
    logits = 4 * torch.randn(n_draws, 1, 2, generator=generator).double()
    return logits + torch.tensor([0.0, 1.4], dtype=torch.float64)


def test_the_slope_of_an_entropy_is_not_that_of_the_first_draws():
    """Near the largest entropy it is small, and of 16 draws it may be 0 by chance."""
    truth = CategoricalPredictive.from_logits(nearly_even(10_000, 200_000)).entropy
    assert 0.66 < float(truth) < 0.68
    found = [CategoricalPredictive.from_logits(nearly_even(s, 128)) for s in range(200)]
    scores = torch.cat([(p.entropy - truth) / p.entropy_error for p in found])
    assert float(scores.square().mean()) < 3  # 20 by the first 16 draws


@pytest.mark.parametrize("n_draws", [9, 16, 100])
@pytest.mark.parametrize("size", [1, 7, 40])
def test_errors_do_not_depend_on_how_draws_are_cut_into_blocks(size, n_draws):
    """Nor on whether somebody has looked before all were there."""
    whole = CategoricalPredictive.from_logits(nearly_even(0, n_draws))
    accumulator = CategoricalAccumulator(seed=0, keep_draws=False)
    for block in nearly_even(0, n_draws).split(size):
        accumulator.add(block)
        assert len(accumulator.result()) == 1
    cut = accumulator.result()
    for measure in MEASURES:
        error = f"{measure}_error"
        torch.testing.assert_close(getattr(cut, error), getattr(whole, error))


@pytest.mark.parametrize("n_draws", [32, 64, 100])
def test_errors_of_probabilities_near_0_are_not_far_too_small(n_draws):
    """Made by a few rare draws; the share of all nets would give 3 to 20."""
    design, shift = Stratification((0.25,)), torch.tensor([4.0, 0.0, 1.0]).double()

    def found(seed, number):
        logits = outputs(seed, number).view(number, 2, 3) / 5 + shift
        return CategoricalPredictive.from_logits(logits, design=design)

    truth = torch.stack([found(10_000 + s, 512).probs for s in range(100)]).mean(0)
    assert bool((truth[:, 1:] < 0.1).any())
    scores = [
        (p.probs - truth) / p.mean_error
        for p in (found(s, n_draws) for s in range(150))
    ]
    squares = torch.stack(scores).square().mean(0)
    assert 0.1 < float(squares.min()) and float(squares.max()) < 2.0


def test_independent_draws_keep_the_textbook_error():
    logits = torch.randn(50, 3, 4, generator=torch.Generator().manual_seed(0)) * 4
    found = CategoricalPredictive.from_logits(logits)
    expected = logits.softmax(-1).std(0) / 50**0.5
    torch.testing.assert_close(found.mean_error, expected)


def test_one_draw_has_no_error_and_a_point_has_none():
    one = CategoricalPredictive.from_logits(torch.zeros(1, 2, 3))
    assert bool(one.entropy_error.isinf().all())
    point = CategoricalPredictive.point(torch.zeros(2, 3))
    assert point.mutual_information_error.tolist() == [0.0, 0.0]
