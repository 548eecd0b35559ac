"""NoiseHead: a value among others."""

import pytest

from caveat.errors import InputTypeError
from caveat.estimators import NoiseHead


def test_it_is_a_value():
    assert NoiseHead() == NoiseHead(calibrate=True) != NoiseHead(calibrate=False)
    with pytest.raises(InputTypeError, match="calibrate must be True or False"):
        NoiseHead("yes")
