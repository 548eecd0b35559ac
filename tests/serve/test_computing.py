"""Answers for rows: batches of few sizes, and no row sees another."""

import numpy as np
import pytest

from caveat.serve.asking import Settings
from caveat.serve.computing import SIZES, answer, padded
from caveat.serve.kinds import served


def rows(count):
    return np.random.default_rng(0).normal(size=(count, 3)).astype(np.float32)


@pytest.mark.parametrize("settings", [{"n_draws": 16}, {"tolerance": 0.2}])
@pytest.mark.parametrize("name", ["net", "numbers"])
def test_rows_put_in_are_not_seen(served_models, name, settings):
    model, x = served(served_models[name]), rows(5)
    wanted = [info.name for info in model.outputs]
    asked = Settings(**settings, most=128)
    together = answer(model, x, asked, wanted)
    for row in range(5):
        alone = answer(model, x[row : row + 1], asked, wanted)
        for output in wanted:
            own = together[output][row : row + 1]
            assert len(together[output]) == 5
            if own.dtype.kind == "f":
                np.testing.assert_allclose(own, alone[output], rtol=0, atol=1e-6)
            else:
                assert (own == alone[output]).all()


def test_only_networks_are_given_batches_of_few_sizes(served_models):
    network, table = served(served_models["net"]), served(served_models["matrix"])
    for count in (1, 3, 17, 64, 65, 1024, 1500):
        found = padded(network, rows(count))
        assert (found[:count] == rows(count)).all()
        assert len(found) in SIZES or (count == len(found) == 1500)
        assert len(found) <= 2 * count
        assert len(padded(table, rows(count))) == count
