"""Numbers by address: normal, shared by nobody, the same in longer runs."""

import numpy as np
import torch

import caveat
from caveat.estimators.tables.normals import AddressedNormals


def test_they_are_standard_normal():
    found = AddressedNormals(3, 5).standard_normal((6400, 7))
    assert found.shape == (6400, 7)
    assert abs(found.mean(0)).max() < 0.05 and abs(found.std(0) - 1).max() < 0.05
    apart = np.corrcoef(found.reshape(-1, 5 * 7).T) - np.eye(35)
    assert abs(apart).max() < 5 / np.sqrt(6400 / 5)


def test_each_question_seed_and_place_has_its_own():
    source = AddressedNormals(0)
    first, second = source.standard_normal((4, 3)), source.standard_normal((4, 3))
    other = AddressedNormals(1).standard_normal((4, 3))
    assert len(np.unique([first, second, other])) == 36
    again = AddressedNormals(0).standard_normal((9, 3))
    np.testing.assert_array_equal(again[:4], first)  # a longer run begins with it


def test_they_are_those_of_a_site():
    """So that a module that asks torch.randn has the same, and so has its graph."""

    class Draws(torch.nn.Linear):
        def forward(self, x):
            normal = torch.randn(x.shape[0], 2, 3, dtype=torch.float64)
            return normal + torch.randn(x.shape[0], 2, 3, dtype=torch.float64)

    mc = caveat.MCDropout(Draws(1, 1), seed=7, analytic=False)
    drawn = mc.draws(torch.zeros(5, 1, dtype=torch.float64), n_draws=6)
    source = AddressedNormals(7, 2)
    own = source.standard_normal((12, 3)) + source.standard_normal((12, 3))
    np.testing.assert_array_equal(drawn[:, 4].reshape(12, 3), own)
