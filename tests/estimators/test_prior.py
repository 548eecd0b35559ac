"""Any two of precision, length-scale and weight decay."""

import pytest

from caveat.errors import ParameterError
from caveat.estimators.prior import Prior


def test_the_third_follows_from_two():
    """Eq. 12 of paper 001 for torch's dropout: tau = l² / (p N wd), restated."""
    both = Prior.of(0.1, 1e-3, drop_rate=0.2, precision=None)
    tau = both.precision_for(50)
    assert tau == pytest.approx(0.1**2 / (0.8 * 50 * 1e-3))
    decay = Prior.of(None, 1e-3, drop_rate=0.2, precision=tau)
    assert decay.lengthscale_for(tau, 50) == pytest.approx(0.1)
    length = Prior.of(0.1, None, drop_rate=0.2, precision=tau)
    assert length.lengthscale_for(tau, 50) == 0.1


@pytest.mark.parametrize(
    ("lengthscale", "weight_decay", "precision", "message"),
    [
        (None, None, 2.0, "lengthscale or weight_decay must be given"),
        (None, None, "validated", "lengthscale or weight_decay must be given"),
        (0.1, 1e-3, 2.0, "Got all three; set lengthscale=None"),
        (0.1, None, None, "Got lengthscale=0.1 and\nweight_decay=None; give both"),
        (-1.0, None, 2.0, "lengthscale must be finite and above 0"),
        (None, 0.0, 2.0, "weight_decay must be finite and above 0"),
    ],
)
def test_too_little_and_too_much(lengthscale, weight_decay, precision, message):
    with pytest.raises(ParameterError, match=message):
        Prior.of(lengthscale, weight_decay, drop_rate=0.1, precision=precision)
