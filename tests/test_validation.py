"""Each rule: what passes and as what, what is refused and how that is said."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from caveat import _validation as check
from caveat import noise, theory
from caveat.errors import InputTypeError, ParameterError, RowIndexError, ShapeError
from caveat.estimators import Prior
from caveat.predictive import GaussianPredictive

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("rule", "value", "expected"),
    [
        (lambda v: check.positive_int("n", v), np.int64(3), 3),
        (check.draw_number, 0, 0),
        (lambda v: check.several("n", v), 2, 2),
        (lambda v: check.unit_interval("q", v), np.float32(0.5), 0.5),
        (lambda v: check.positive("l", v), 2, 2.0),
        (lambda v: check.keep_prob("p", v), 1, 1.0),
        (lambda v: check.drop_rate(v, where="here"), 0, 0.0),
        (lambda v: check.one_of("kind", v, {"a": 1, "b": 2}), "b", "b"),
        (check.quantile_levels, torch.tensor(0.5), [0.5]),
        (check.quantile_levels, (0.1, 0.9), [0.1, 0.9]),
    ],
)
def test_values_come_back_in_the_type_that_is_worked_with(rule, value, expected):
    found = rule(value)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("rule", "bad", "error", "message"),
    [
        (lambda v: check.positive_int("n", v), (0, -1), ParameterError, "n must be at"),
        (lambda v: check.positive_int("n", v), (1.0, True, "2", None), InputTypeError,
         "n must be a whole number of at least 1. Got .* of type"),
        (check.draw_number, (-1,), ParameterError, "draw number must be at least 0"),
        (check.draw_number, (0.0, False), InputTypeError, "whole number of at least 0"),
        (lambda v: check.several("n", v), (1,), ParameterError, "at least 2"),
        (lambda v: check.unit_interval("q", v), (0, 1.0, NAN), ParameterError,
         "q must lie strictly between 0 and 1"),
        (lambda v: check.unit_interval("q", v), ("a", True, torch.tensor(0.5)),
         InputTypeError, "q must be a number between 0 and 1. Got"),
        (lambda v: check.positive("l", v), (0.0, -1, INF, NAN), ParameterError,
         "l must be finite and above 0"),
        (lambda v: check.keep_prob("p", v), (1.1,), ParameterError,
         "one minus the drop rate"),
        (lambda v: check.drop_rate(v, where="here"), (1.0, -0.1, NAN), ParameterError,
         "Got .* at here"),
        (lambda v: check.drop_rate(v, where="here"), ("0.1", None, True),
         InputTypeError, r"at here must be a number in \[0, 1\). Got"),
        (lambda v: check.one_of("kind", v, ("a", "b")), ("c", None, 1), ParameterError,
         "kind must be one of 'a', 'b'. Got"),
        (check.quantile_levels, ([],), ParameterError, "at least one level"),
        (check.quantile_levels, ("0.5", None), InputTypeError, "sequence of them"),
        (check.precision, (0.0, -1.0, INF, []), ParameterError, "precision=1/v"),
        (check.precision, ("high", 1j, True), InputTypeError, "precision must be"),
        (lambda v: check.module("model", v), (nn.Linear, None), InputTypeError,
         "torch.nn.Module"),
        (lambda v: check.floating("x", v), ([1.0], torch.tensor([1])), InputTypeError,
         "x must"),
        (lambda v: check.scalar("kl", v), (torch.ones(2),), ShapeError, "sum it first"),
        (lambda v: check.finite("x", v), (torch.tensor([1.0, NAN]),), ParameterError,
         "1 of 2 values"),
        (lambda v: check.rows_of_weights("w", v), (torch.tensor(1.0),), ShapeError,
         "weights of a unit last"),
        (check.log_likelihoods, (torch.ones(2, 3, 4),), ShapeError, "sum it over"),
        (check.logits, (torch.ones(2, 3, 1), torch.ones(2, 3)), ShapeError, "stack"),
    ],
)  # fmt: skip
def test_what_is_refused_and_how(rule, bad, error, message):
    for value in bad:
        with pytest.raises(error, match=message):
            rule(value)


def test_tensors_of_numbers_are_checked_all():
    two = torch.tensor([0.5, 1.0])
    assert check.keep_probs("p", two) is two
    with pytest.raises(ParameterError, match=r"p must lie in \(0, 1\]"):
        check.keep_probs("p", torch.tensor([0.5, 1.2]))
    with pytest.raises(ParameterError, match="s must be finite and above 0"):
        check.positive_values("s", torch.tensor([1.0, 0.0]))
    with pytest.raises(ParameterError, match="above 0"):
        check.positive_tensor("s", torch.empty(0))


def test_shapes_that_must_fit():
    check.per_row("p", (), (3,))
    check.per_row("p", (3,), (3,))
    with pytest.raises(ShapeError, match="one per row"):
        check.per_row("p", (1,), (3,))
    check.same_shape("y", (2, 1), [2, 1])
    with pytest.raises(ShapeError, match="nothing broadcasts by accident"):
        check.same_shape("y", (2,), (2, 1))


def test_targets_are_never_broadcast():
    mean = torch.zeros(3, 1)
    assert check.target(torch.zeros(3, 1).double(), mean).dtype == mean.dtype
    with pytest.raises(ShapeError, match=r"pass y.reshape\(3, 1\)"):
        check.target(torch.zeros(3), mean)
    with pytest.raises(ShapeError, match="one value per row and output"):
        check.target(torch.zeros(4), mean)
    with pytest.raises(ParameterError, match="1 of 3"):
        check.target(torch.tensor([[0.0], [NAN], [1.0]]), mean)


@pytest.mark.parametrize("value", [0.1, [0.1, 0.3], (0.1,), np.float64(0.1)])
def test_a_python_float_is_not_rounded_to_single_precision(value):
    found = check.precision(value)
    assert found.dtype == torch.float64
    assert found.tolist() == (list(value) if isinstance(value, list | tuple) else value)
    draws = torch.zeros(2, 3, 1, dtype=torch.float64)
    predictive = GaussianPredictive.from_draws(draws, precision=0.1)
    assert predictive.precision.unique().tolist() == [0.1]
    assert predictive.with_precision(0.7).noise_variance[0].item() == 1.0 / 0.7


@pytest.mark.parametrize(
    ("rate", "message"),
    [
        (-0.1, r"Got -0\.1 at here: it is the probability that a unit is dropped\.$"),
        (1.0, "Got 1.0 at here: a unit that is always dropped carries nothing"),
        (5, "Got 5 at here; if that is a percentage, pass 0.05"),
        (float("nan"), "Got nan at here: it is the probability"),
    ],
)
def test_a_drop_rate_out_of_range_is_told_why(rate, message):
    with pytest.raises(ParameterError, match=message):
        check.drop_rate(rate, where="here")


@pytest.mark.parametrize("length", [1e200, 1e-200, 0.0, float("inf")])
def test_a_lengthscale_has_a_square(length):
    known = {"precision": 1.0, "keep_prob": 0.9, "n_train": 9}
    noisy = noise.Bernoulli(0.1).wrap(nn.Linear(2, 1))
    makers = (
        check.lengthscale,
        lambda one: theory.l2_penalty(lengthscale=one, **known),
        Prior,
        partial(noise.kl, noisy),
    )
    for make in makers:
        with pytest.raises(ParameterError, match="lengthscale must"):
            make(length)


def test_a_result_that_is_no_number_is_not_returned():
    known = {"lengthscale": 1e140, "keep_prob": 0.9, "n_train": 9}
    with pytest.raises(ParameterError, match="precision that follows"):
        theory.model_precision(l2_penalty=1e-100, **known)
    with pytest.raises(ParameterError, match="l2_penalty that follows"):
        theory.l2_penalty(precision=1e-100, **known)
    with pytest.raises(ParameterError, match="precision in these units"):
        theory.precision_in_units_of_y(1.0, 1e200)


def test_a_precision_is_one_per_output_or_per_row():
    mean = torch.zeros(3, 2)
    for tau in (2.0, [1.0, 2.0], torch.ones(3, 1)):
        assert check.precision_for(tau, mean).shape == mean.shape
    with pytest.raises(ShapeError, match="batch first"):
        check.precision_for(torch.ones(3), mean)
    with pytest.raises(ParameterError, match="above 0"):
        check.precision_for(1e-60, mean)  # not 0, but so in single precision


def test_class_numbers():
    y = torch.tensor([0, 2], dtype=torch.int32)
    assert check.class_labels(y, (2,), 3).dtype == torch.int64
    for bad, error, message in (
        ([0, 2], InputTypeError, "torch.Tensor"),
        (torch.tensor([0.0, 2.0]), InputTypeError, r"y.long\(\)"),
        (torch.tensor([[0, 2]]), ShapeError, "one class number per prediction"),
        (torch.tensor([-100, 3]), ParameterError, "from 0 to 2. Got -100, 3"),
    ):
        with pytest.raises(error, match=message):
            check.class_labels(bad, (2,), 3)


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (1, [1]),
        (-1, [3]),
        (slice(1, None), [1, 2, 3]),
        (slice(None, None, -2), [3, 1]),
        ([2, -1], [2, 3]),
        (np.array([True, False, False, True]), [0, 3]),
        ([], []),
    ],
)
def test_rows_that_can_be_chosen(index, expected):
    assert torch.arange(4)[check.row_index(index, 4)].tolist() == expected


@pytest.mark.parametrize("index", [4, -5, [0, 4], torch.tensor([-5])])
def test_rows_that_are_not_there(index):
    with pytest.raises(RowIndexError, match=r"must lie in \[-4, 4\). Got (4|-5)"):
        check.row_index(index, 4)


def test_no_row_of_none_can_be_chosen():
    with pytest.raises(RowIndexError, match=r"\[-0, 0\)"):
        check.row_index(0, 0)


def test_draws_have_their_axis_and_are_not_empty():
    for shape, message in (((3,), "too few axes"), ((0, 2), "at least one draw"),
                           ((2, 0), "without rows")):  # fmt: skip
        with pytest.raises(ShapeError, match=message):
            check.draws(torch.empty(shape), axes="(draws, batch)", least=2)
    block = torch.ones(2, 3)
    assert check.continues(block, None) is check.continues(block, [3])
    with pytest.raises(ShapeError, match="one accumulator per batch"):
        check.continues(block, [4])


def test_bad_draws_are_counted_and_the_first_is_named():
    bad = torch.zeros(4, 3, 2, dtype=torch.bool)
    check.finite_draws("draws", bad)
    bad[2, 1, 0] = bad[3, 1, 1] = True
    with pytest.raises(
        ParameterError, match=r"2 of 4 draws and 1 of 3 .*draw 2, row 1"
    ):
        check.finite_draws("draws", bad)


def test_things_of_one_kind():
    assert check.instances("parts", (1, 2), int) == [1, 2]
    with pytest.raises(ParameterError, match="at least one int"):
        check.instances("parts", [], int)
    with pytest.raises(InputTypeError, match="Got str beside int"):
        check.instances("parts", [1, "2"], int)
    check.all_equal("precision", [1, 1])
    with pytest.raises(ShapeError, match=r"agree in the precision\. Got 1 and 2"):
        check.all_equal("precision", [1, 2])
