"""Any two of precision, length-scale and weight decay."""

import pytest

from caveat.errors import InputTypeError, ParameterError
from caveat.estimators.prior import Prior, checked_prior

ROWS = {"keep_prob": 0.8, "n_train": 50}


def test_the_third_follows_from_two():
    """Eq. 12 of paper 001 for torch's dropout: tau = l² / (p N wd), restated."""
    tau = Prior(0.1, 1e-3).precision_for(**ROWS)
    assert tau == pytest.approx(0.1**2 / (0.8 * 50 * 1e-3))
    assert Prior(weight_decay=1e-3).lengthscale_for(tau, **ROWS) == pytest.approx(0.1)
    assert Prior(0.1).lengthscale_for(tau, **ROWS) == 0.1


def test_both_values_leave_no_room_for_a_precision():
    assert checked_prior(None, 2.0) == Prior(1e-2)
    both = Prior(0.1, 1e-3)
    assert both.gives_precision and checked_prior(both, None) is both
    with pytest.raises(ParameterError, match=r"(?s)Got all three.*2\.0.*leave\none"):
        checked_prior(both, 2.0)
    with pytest.raises(InputTypeError, match=r"Got 0\.1"):
        checked_prior(0.1, None)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "Prior needs a lengthscale or a weight_decay"),
        ({"lengthscale": -1.0}, "lengthscale must be finite and above 0"),
        ({"weight_decay": 0.0}, "weight_decay must be finite and above 0"),
    ],
)
def test_bad_values_are_refused(values, message):
    with pytest.raises(ParameterError, match=message):
        Prior(**values)
