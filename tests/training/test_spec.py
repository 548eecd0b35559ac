"""NetworkSpec: checked, varied by name, told apart in files."""

import numpy as np
import pytest
from torch import nn

from caveat import noise
from caveat.errors import InputTypeError, ParameterError
from caveat.training import EarlyStopping, NetworkSpec, Schedule, SoftmaxCrossEntropy

SPEC = NetworkSpec()


def test_drop_rates_are_one_per_weight_layer():
    spec = NetworkSpec((5, 6), drop_rate=0.2, input_drop_rate=0.1)
    assert spec.drop_rates == (0.1, 0.2, 0.2)
    assert NetworkSpec((), input_drop_rate=0.3).drop_rates == (0.3,)


def test_fields_and_those_of_the_schedule_are_varied_by_name():
    spec = SPEC.vary(drop_rate=0.3, epochs=7, learning_rate=0.1)
    assert spec.drop_rate == 0.3 and spec.hidden == SPEC.hidden
    assert spec.schedule == Schedule(epochs=7, learning_rate=0.1)
    both = SPEC.vary(schedule=Schedule(batch_size=5), epochs=9)
    assert both.schedule == Schedule(epochs=9, batch_size=5)
    with pytest.raises(ParameterError, match=r"'drop_rate', .* Got 'rate'"):
        SPEC.vary(rate=0.1)


OTHERS = {
    "hidden": (50, 50),
    "activation": "tanh",
    "noise": "gaussian",
    "objective": SoftmaxCrossEntropy(2),
    "batch_size": 8,
    "decay": "constant",
    "keep_last": True,
    "early_stopping": EarlyStopping(),
}
OWN = {
    "drop_rate": 0.3,
    "input_drop_rate": 0.3,
    "lengthscale": 1.0,
    "precision": 2.0,
    "epochs": 3,
    "learning_rate": 1e-3,
    "n_members": 2,
    "n_draws": 3,
}


def test_what_a_fleet_must_share():
    for name, value in OTHERS.items():
        assert SPEC.vary(**{name: value}).shared != SPEC.shared, name
    for name, value in OWN.items():
        assert SPEC.vary(**{name: value}).shared == SPEC.shared, name


def test_every_other_spec_is_described_otherwise():
    changed = [SPEC.vary(**{n: v}) for n, v in (OTHERS | OWN).items()]
    families = [noise.Bernoulli(0.1), noise.DropConnect(0.1), noise.DropConnect(0.2)]
    changed += [SPEC.vary(noise=family) for family in families]
    texts = {spec.described() for spec in (SPEC, *changed)}
    assert len(texts) == len(changed) + 1


def test_numbers_of_numpy_are_described_as_those_of_python():
    spec = NetworkSpec(
        [np.int64(5)],
        drop_rate=np.float64(0.1),
        schedule=Schedule(epochs=np.int64(7), learning_rate=np.float64(0.1)),
    )
    plain = NetworkSpec(
        (5,), drop_rate=0.1, schedule=Schedule(epochs=7, learning_rate=0.1)
    )
    assert spec == plain and spec.described() == plain.described()


class Nameless(noise.Noise):
    """Printed by its place in memory, which another may have in the next run."""

    def _wrapped(self, layer):
        raise AssertionError


def test_noise_that_cannot_be_told_from_others_is_not_described():
    with pytest.raises(InputTypeError, match="Nameless"):
        SPEC.vary(noise=Nameless()).described()


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"hidden": 50}, InputTypeError, r"hidden must be a tuple.*Got 50"),
        ({"hidden": (50, 0)}, ParameterError, "A width in hidden must be at least 1"),
        ({"activation": "relo"}, ParameterError, "activation must be one of 'relu'"),
        ({"activation": nn.ReLU()}, InputTypeError, "activation must be a name"),
        ({"noise": "poisson"}, ParameterError, "noise must be 'bernoulli', 'gau"),
        ({"noise": 3}, ParameterError, "noise must be 'bernoulli', 'gau"),
        ({"drop_rate": 1.0}, ParameterError, r"lie in \[0, 1\). Got 1.0: a unit"),
        ({"drop_rate": "0.1"}, InputTypeError, r"drop_rate must be a number in \[0, 1"),
        ({"lengthscale": 0.0}, ParameterError, "lengthscale must be finite and above"),
        ({"precision": -1.0}, ParameterError, "precision must be finite and above 0"),
        ({"n_members": 0}, ParameterError, "n_members must be at least 1"),
        ({"n_draws": 1}, ParameterError, "n_draws must be at least 2"),
        ({"schedule": "cosine"}, InputTypeError, r"schedule must be a Schedule, such"),
        ({"objective": nn.MSELoss()}, InputTypeError, "objective must be a Likelihood"),
    ],
)
def test_bad_values_are_refused(values, error, message):
    with pytest.raises(error, match=message):
        NetworkSpec(**values)
