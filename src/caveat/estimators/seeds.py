"""Seeds from what scikit-learn calls a random state."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from caveat._random import as_seed

_LARGEST = 2**31 - 1


def seed_of(random_state: Any) -> int:
    """A seed from an int, a NumPy generator of either kind, or fresh entropy."""
    if random_state is None:
        return as_seed(None) % _LARGEST
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(_LARGEST))
    return int(check_random_state(random_state).randint(_LARGEST))
