"""Predictives of parts of the rows as one."""

import pytest
import torch

from caveat.errors import ParameterError
from caveat.predictive import (
    CategoricalPredictive,
    GaussianAccumulator,
    GaussianPredictive,
    joining,
)
from caveat.predictive.joining import by_rows, together

DRAWS = torch.linspace(-1, 1, 20 * 30 * 3).sin().view(20, 30, 3)


def gaussian(rows: slice) -> GaussianPredictive:
    return GaussianPredictive.from_draws(DRAWS[:, rows], precision=2.0)


def categorical(rows: slice) -> CategoricalPredictive:
    return CategoricalPredictive.from_logits(DRAWS[:, rows], seed=0)


@pytest.mark.parametrize("make", [gaussian, categorical])
@pytest.mark.parametrize("at_once", [1, 500, 10**6])
def test_slices_change_nothing(make, at_once, monkeypatch):
    monkeypatch.setattr(joining, "_AT_ONCE", at_once)
    found, expected = by_rows(DRAWS, make), make(slice(None))
    assert found.draws.data_ptr() == DRAWS.data_ptr()
    assert found.n_draws == 20
    for name, array in expected.to_numpy().items():
        torch.testing.assert_close(
            torch.from_numpy(found.to_numpy()[name]), torch.from_numpy(array)
        )


def test_errors_speak_of_all_rows(monkeypatch):
    monkeypatch.setattr(joining, "_AT_ONCE", 100)
    bad = DRAWS.clone()
    bad[3, 25] = torch.nan

    def make(rows: slice) -> GaussianPredictive:
        return GaussianPredictive.from_draws(bad[:, rows], precision=2.0)

    with pytest.raises(ParameterError, match=r"of 30 rows.*row 25"):
        by_rows(bad, make)


def test_parts_may_have_numbers_of_their_own():
    parts = []
    for count, rows in ((5, slice(0, 10)), (20, slice(10, 30))):
        gathered = GaussianAccumulator(2.0, False)
        gathered.add(DRAWS[:count, rows])
        parts.append(gathered.result())
    found = together(parts)
    assert found.n_draws == 5
    assert len(found) == 30
    errors = torch.cat([part.mean_error for part in parts])
    torch.testing.assert_close(found.mean_error, errors)
    assert together(parts[:1]).n_draws == 5
