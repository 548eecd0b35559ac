"""Random modules that were introduced."""

import pytest
from torch import nn

from caveat.errors import InputTypeError
from caveat.noise import ConcreteNoise
from caveat.sampling.registry import register_noise, registered, registry_version


class Base(nn.Module):
    """Registered by the tests here."""


class Child(Base):
    """Not registered."""


def test_the_nearest_base_counts():
    register_noise(Base, kind="base", rate=lambda module: 0.1)
    assert registered(Child()).kind == "base"
    register_noise(Child, kind="child", rate=lambda module: 0.2)
    assert registered(Child()).kind == "child"
    assert registered(Base()).kind == "base"
    assert registered(nn.Linear(1, 1)) is None


def test_every_registration_counts():
    before = registry_version()
    for count in (1, 2):
        register_noise(Base, kind="base", rate=lambda module: 0.1)
        assert registry_version() == before + count


def test_by_default_the_flag_is_set():
    register_noise(Base, kind="base", rate=lambda module: 0.1)
    module = Base().eval()
    registered(module).switch(module)
    assert module.training


def test_learned_rates_are_known_from_the_start():
    assert registered(ConcreteNoise(0.3)).kind == "concrete dropout"


@pytest.mark.parametrize("thing", [int, "Dropout", nn.Dropout(0.1), None])
def test_only_classes_of_modules(thing):
    with pytest.raises(InputTypeError, match=r"torch\.nn\.Module"):
        register_noise(thing, kind="x", rate=lambda module: 0.1)
