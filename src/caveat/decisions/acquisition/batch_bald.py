"""BatchBALD: the batch whose labels together tell most about the weights.

.. [Kirsch2019] A. Kirsch, J. van Amersfoort, Y. Gal. BatchBALD: efficient and diverse
   batch acquisition for deep Bayesian active learning. NeurIPS 2019.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from caveat import _validation as check
from caveat.decisions.acquisition.choices import checked_number
from caveat.decisions.acquisition.joint import (
    MAX_CONFIGURATIONS,
    Configurations,
    shared_probs,
)
from caveat.predictive import Predictive

Rows = NDArray[np.int64]
_BLOCK = 32  # candidates judged at a time


@final
@dataclass(frozen=True)
class BatchBALD:
    """Rows whose labels together tell most about the weights [Kirsch2019]_ (E122).

    Greedy: each row adds most to what the labels of those before would tell, which is
    at least 1 - 1/e of what the best batch would tell. A near duplicate of a chosen
    row adds next to nothing and is left.

    It needs draws in which one mask serves all rows, as ``MCDropout`` and the
    estimators make them, and that were kept.

    Attributes
    ----------
    max_configurations : int, default 1000
        Configurations of labels that are summed over. The choice is exactly greedy
        while classes to the power of chosen rows is at most this; later rows are
        judged on a sample of this size.

    Examples
    --------
    Rows 0 and 1 are duplicates, and BALD would take both:

    >>> import torch
    >>> from caveat.predictive import CategoricalPredictive
    >>> logits = torch.tensor(
    ...     [[[3.0, 0], [3, 0], [2, 0]], [[0, 3], [0, 3], [2, 0]],
    ...      [[3, 0], [3, 0], [0, 2]], [[0, 3], [0, 3], [0, 2]]]
    ... )  # 4 draws, 3 rows, 2 classes
    >>> predictive = CategoricalPredictive.from_logits(logits)
    >>> BatchBALD().choose(predictive, 2)
    array([0, 2])
    """

    max_configurations: int = MAX_CONFIGURATIONS

    def __post_init__(self) -> None:
        check.positive_int("max_configurations", self.max_configurations)

    def choose(self, predictive: Predictive, n_rows: int, *, seed: int = 0) -> Rows:
        """Rows in the order of choice; the seed is that of the sample.

        Raises
        ------
        DrawsNotKeptError
            If the predictive holds only what was counted from its draws.
        """
        number = checked_number(n_rows, predictive)
        probs = shared_probs(predictive)
        generator = np.random.default_rng(seed)
        expected = torch.special.entr(probs).sum(-1).mean(0)
        state = Configurations.empty(len(probs))
        bound = state.conditional_entropy(probs) - expected  # BALD of single rows
        chosen: list[int] = []
        for _ in range(number):
            bound, best = _next(state, probs, expected, bound)
            chosen.append(best)
            bound[best] = -torch.inf
            state = state.grow(
                probs[:, best], self.max_configurations, generator.random()
            )
        return np.array(chosen)


def _next(
    state: Configurations, probs: Tensor, expected: Tensor, bound: Tensor
) -> tuple[Tensor, int]:
    """The row that adds most, and tighter bounds on what each row would add.

    What a row adds never grows with the batch, so what it added before is a bound, and
    rows whose bound is below the best found need no look.
    """
    gain, found = torch.full_like(bound, -torch.inf), bound.clone()
    for rows in bound.argsort(descending=True, stable=True).split(_BLOCK):
        if float(gain.max()) >= float(bound[rows[0]]):
            break
        # E122: I(y; ω | batch) = H(y | batch) - (1/T) Σ_t H(p_t(y))
        added = state.conditional_entropy(probs[:, rows]) - expected[rows]
        gain[rows] = added.masked_fill(bound[rows] == -torch.inf, -torch.inf)
        found[rows] = gain[rows]
    return found, int(gain.argmax())
