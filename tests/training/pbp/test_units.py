"""Networks on rows in any units."""

import numpy as np
import pytest
import torch

from caveat.errors import ShapeError
from caveat.training.pbp.units import fit_pbp

SETTINGS = {"hidden": (6,), "n_epochs": 3}


def some_rows(seed, n_rows=40):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(n_rows, 2))
    return x, x[:, 0] + 0.1 * generator.normal(size=n_rows)


def test_other_units_of_x_and_y_change_only_the_units_of_the_answer():
    (x, y), new = some_rows(0), some_rows(1)[0]
    plain = fit_pbp([x], [y], seeds=[3], **SETTINGS)
    other = fit_pbp([x * [10.0, 0.1] - 5.0], [50.0 * y + 7.0], seeds=[3], **SETTINGS)
    a, b = plain.predictive(new), other.predictive(new * [10.0, 0.1] - 5.0)
    torch.testing.assert_close(b.mean, 50.0 * a.mean + 7.0)
    torch.testing.assert_close(b.std, 50.0 * a.std)
    torch.testing.assert_close(b.epistemic_variance, 2500.0 * a.epistemic_variance)
    np.testing.assert_allclose(
        other.at_means(new * [10.0, 0.1] - 5.0), 50.0 * plain.at_means(new) + 7.0
    )


def test_each_network_has_the_units_of_its_own_rows():
    rows = [some_rows(0), some_rows(1)]
    rows[1] = (rows[1][0] + 9.0, 100.0 * rows[1][1])
    xs, ys = zip(*rows, strict=True)
    both = fit_pbp(xs, ys, seeds=[3, 4], **SETTINGS)
    alone = fit_pbp(xs[1:], ys[1:], seeds=[4], **SETTINGS)
    torch.testing.assert_close(
        both.predictive(xs[1], 1).mean, alone.predictive(xs[1]).mean
    )
    torch.testing.assert_close(
        both.predictive(xs[1], 1).std, alone.predictive(xs[1]).std
    )


def test_sets_of_other_sizes_are_refused():
    rows = [some_rows(0), some_rows(1, 41)]
    xs, ys = zip(*rows, strict=True)
    with pytest.raises(ShapeError, match="equally many rows and columns"):
        fit_pbp(xs, ys, seeds=[0, 1], **SETTINGS)
