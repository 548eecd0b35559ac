"""A few images."""

import pytest

from caveat.papers.lenet import Images
from caveat.papers.lenet.images import small_digits


@pytest.fixture
def few():
    digits = small_digits()
    return Images("digits", digits.train.first(200), digits.test.first(60))
