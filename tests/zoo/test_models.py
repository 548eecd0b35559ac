"""The zoo keeps its promises: models run, quiet in eval and noisy in the oracle."""

import pytest
import torch

from tests.sampling.comparing import over_zoo
from tests.zoo.models import BY_NAME, ZOO
from tests.zoo.plain_loop import plain_loop


def eval_output(specimen):
    return specimen.tensors(specimen.evaluated())


def test_names_are_unique():
    assert len(BY_NAME) == len(ZOO) >= 35


@over_zoo()
def test_eval_mode_is_deterministic_unless_said_otherwise(specimen):
    first, second = eval_output(specimen), eval_output(specimen)
    assert all(map(torch.equal, first, second)) != specimen.fires_in_eval


@over_zoo()
def test_plain_loop_has_spread_and_is_reproducible(specimen):
    draws = plain_loop(specimen, 6)
    assert max(float(x.float().std(0).max()) for x in draws) > 1e-3
    again = plain_loop(specimen, 2)
    assert all(torch.equal(x[:2], y) for x, y in zip(draws, again, strict=True))


@over_zoo(where=lambda s: s.row_wise)
def test_row_wise_models_are_row_wise(specimen):
    """In eval mode the output of a row does not depend on its neighbours."""
    if specimen.fires_in_eval:
        pytest.skip("draws in eval mode")
    whole = eval_output(specimen)
    part = specimen.tensors(specimen.evaluated([2, 1]))
    for one, other in zip(part, whole, strict=True):
        assert torch.allclose(one, other[[2, 1]], atol=specimen.rounding * 10)
