"""Schedules and settings."""

import pytest

from caveat.errors import ParameterError
from caveat.rl import Annealed, QSettings


def test_epsilon_is_that_of_the_paper():
    epsilon = Annealed()
    assert epsilon(0) == epsilon(3_000) == 1.0
    assert epsilon(100_000) == pytest.approx(0.507614213198, abs=1e-12)
    assert epsilon(38_000) == pytest.approx(1 - 35_000 / 197_000)
    assert epsilon(200_000) == epsilon(10**6) == 0.05


def test_defaults_are_those_of_the_paper():
    settings = QSettings.thompson()
    assert settings == QSettings(
        hidden=(50, 50),
        drop_rates=(0.0, 0.1, 0.1),
        discount=0.7,
        learning_rate=0.001,
        l2_coefficient=0.001,
        batch_size=64,
        capacity=30_000,
        learning_starts=1_000,
        random_steps=5_000,
    )
    assert settings.epsilon(5_000) == 0.0


def test_greedy_settings_have_no_dropout():
    assert QSettings.epsilon_greedy().drop_rates == (0.0, 0.0, 0.0)
    one_layer = QSettings.epsilon_greedy(hidden=(20,), epsilon=Annealed(0, 100))
    assert one_layer.drop_rates == (0.0, 0.0)
    assert one_layer.epsilon(50) == 0.5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"drop_rates": (0.1, 0.1)}, "one rate for each of the 3 weight layers"),
        ({"drop_rates": (0.0, 0.1, 1.0)}, "Got 1.0 at weight layer 2"),
        ({"discount": 1.5}, "discount must lie strictly between 0 and 1"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
        ({"learning_rate": -1.0}, "learning_rate must be finite and above 0"),
    ],
)
def test_wrong_settings_are_told(changes, message):
    with pytest.raises(ParameterError, match=message):
        QSettings(**changes)
