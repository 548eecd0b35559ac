"""Seeds from random states of all kinds."""

import numpy as np
import pytest

from caveat.estimators.seeds import seed_of


def test_seeds():
    assert seed_of(5) == seed_of(np.random.RandomState(5)) != seed_of(6)
    assert seed_of(np.random.default_rng(1)) == seed_of(np.random.default_rng(1))
    assert seed_of(None) != seed_of(None)
    with pytest.raises(ValueError, match="cannot be used to seed"):
        seed_of("today")
