"""Keras 3 on its torch backend, against a loop of ``model(x, training=True)``."""

import os
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import caveat
from caveat.errors import NoStochasticSiteError, UnsupportedModelError
from tests.sampling.comparing import assert_same_distribution
from tests.zoo.specimen import normal

os.environ.setdefault("KERAS_BACKEND", "torch")
keras = pytest.importorskip("keras")
if keras.backend.backend() != "torch":
    pytest.skip("Keras runs on another backend here", allow_module_level=True)
layers = keras.layers

FLAT, STEPS, IMAGE = (5,), (4, 3), (6, 6, 2)
N_DRAWS = 64


def chain(shape: tuple[int, ...], *parts: Any) -> Any:
    return keras.Sequential([layers.Input(shape), *parts])


def perceptron(*parts: Any) -> Any:
    return chain(
        FLAT,
        layers.Dense(8, activation="relu"),
        *parts,
        layers.BatchNormalization(name="norm"),
        layers.Dense(2),
    )


def recurrent(kind: Any, **options: Any) -> Any:
    return chain(STEPS, kind(4, **options), layers.Dense(2))


@keras.saving.register_keras_serializable("caveat")
class Gated(keras.layers.Layer):
    """Asks for the flag itself, and draws from all of Keras' generators."""

    def __init__(self, seed: int | None = None) -> None:
        super().__init__()
        self.seeds = keras.random.SeedGenerator(seed)
        self.norm = layers.BatchNormalization()
        self.off = layers.Dropout(0.9)

    def call(self, x: Any, training: bool | None = None) -> Any:
        x = self.norm(self.off(x, training=False), training=training)
        if not training:
            return x
        x = x * keras.random.uniform(x.shape, 0.5, 1.5, seed=self.seeds)
        return x + 0.3 * keras.random.normal(x.shape)


class Subclassed(keras.Model):
    """Layers in lists and dicts, and no argument ``training``."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = [layers.Dense(8, activation="relu"), layers.Dropout(0.3)]
        self.ends = {"norm": layers.BatchNormalization(), "last": layers.Dense(2)}

    def call(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return self.ends["last"](self.ends["norm"](x))


class HandsDown(Subclassed):
    """Hands the flag to its layers by hand, and one of them is never on."""

    def call(self, x: Any, training: bool | None = None) -> Any:
        x = self.blocks[1](self.blocks[0](x), training=training)
        x = self.blocks[1](x, training=False)
        return self.ends["last"](self.ends["norm"](x, training=training))


def functional() -> Any:
    """A graph with a branch, a layer used twice and a graph inside."""
    x = inputs = keras.Input(FLAT)
    inner_inputs = keras.Input((8,))
    inner = keras.Model(
        inner_inputs,
        layers.Dense(8)(layers.Dropout(0.4, seed=3)(inner_inputs)),
        name="inner",
    )
    x = layers.Dense(8, activation="relu")(x)
    twice = layers.Dropout(0.2, name="twice")
    y = twice(inner(twice(x)))
    y = layers.BatchNormalization()(layers.Add()([x, y]))
    return keras.Model(inputs, layers.Dense(2)(y))


def attention() -> Any:
    inputs = keras.Input(STEPS)
    x = layers.MultiHeadAttention(2, 4, dropout=0.3, name="attention")(inputs, inputs)
    x = layers.LayerNormalization()(layers.Dropout(0.1)(x))
    return keras.Model(inputs, layers.Dense(2)(x))


MODELS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "dropout": (lambda: perceptron(layers.Dropout(0.3)), FLAT),
    "seeded": (lambda: perceptron(layers.Dropout(0.3, seed=1)), FLAT),
    "gaussian_dropout": (lambda: perceptron(layers.GaussianDropout(0.3)), FLAT),
    "gaussian_noise": (lambda: perceptron(layers.GaussianNoise(0.5, seed=2)), FLAT),
    "alpha_dropout": (lambda: perceptron(layers.AlphaDropout(0.3)), FLAT),
    "gated": (lambda: perceptron(Gated()), FLAT),
    "gated_seeded": (lambda: perceptron(Gated(4)), FLAT),
    "subclassed": (Subclassed, FLAT),
    "hands_down": (HandsDown, FLAT),
    "functional": (functional, FLAT),
    "nested": (
        lambda: chain(FLAT, functional(), layers.Dropout(0.2), Subclassed()),
        FLAT,
    ),
    "spatial": (
        lambda: chain(STEPS, layers.SpatialDropout1D(0.3), layers.Dense(2)),
        STEPS,
    ),
    "convolutions": (
        lambda: chain(
            IMAGE,
            layers.Conv2D(4, 3, activation="relu"),
            layers.BatchNormalization(),
            layers.SpatialDropout2D(0.3),
            layers.GlobalAveragePooling2D(),
            layers.Dense(2),
        ),
        IMAGE,
    ),
    "attention": (attention, STEPS),
    "lstm": (
        lambda: recurrent(layers.LSTM, dropout=0.3, recurrent_dropout=0.2),
        STEPS,
    ),
    "lstm_inputs_only": (lambda: recurrent(layers.LSTM, dropout=0.3), STEPS),
    "gru": (lambda: recurrent(layers.GRU, dropout=0.3, recurrent_dropout=0.2), STEPS),
    "simple_rnn": (lambda: recurrent(layers.SimpleRNN, dropout=0.3), STEPS),
    "bidirectional": (
        lambda: chain(
            STEPS,
            layers.Bidirectional(layers.LSTM(3, recurrent_dropout=0.3)),
            layers.Dense(2),
        ),
        STEPS,
    ),
    "time_distributed": (
        lambda: chain(
            STEPS, layers.TimeDistributed(layers.Dropout(0.3)), layers.Dense(2)
        ),
        STEPS,
    ),
}


def built(name: str) -> tuple[Any, Tensor]:
    """A model whose norms have statistics unlike those of a batch, and its input."""
    make, shape = MODELS[name]
    with torch.random.fork_rng(devices=[]):
        keras.utils.set_random_seed(0)
        model, x = make(), normal(4, *shape)
        model(x)
        for part in model._flatten_layers():
            if isinstance(part, layers.BatchNormalization):
                part.moving_mean.assign(normal(*part.moving_mean.shape, seed=1))
                part.moving_variance.assign(0.5 + part.moving_mean.value.abs())
    return model, x


def norms_off(model: Any) -> None:
    for part in model._flatten_layers():
        if isinstance(part, layers.BatchNormalization):
            part.trainable = False  # Keras then keeps it in inference mode


def values(model: Any) -> list[Tensor]:
    """All that belongs to a model: weights, statistics, states of seeds."""
    return [variable.value.detach().clone() for variable in model.variables]


@pytest.mark.parametrize("name", MODELS)
def test_draws_are_those_of_the_loop(name):
    model, x = built(name)
    before = values(model)
    shared = caveat.MCDropout(model, seed=1)
    ours = shared.draws(x, n_draws=N_DRAWS)
    with torch.no_grad():
        third = shared.function(3)(x)
        with caveat.stochastic(model, seed=1):
            first = model(x)
    torch.testing.assert_close(third, ours[3])
    torch.testing.assert_close(first, ours[0])
    assert all(map(torch.equal, values(model), before)), "something was changed"
    norms_off(model)
    with torch.no_grad():
        plain = torch.stack([model(x, training=True) for _ in range(N_DRAWS)])
    assert_same_distribution([ours], [plain])


@pytest.mark.parametrize("name", ["dropout", "functional", "lstm", "attention"])
def test_rows_share_their_masks(name):
    model, x = built(name)
    mc = caveat.MCDropout(model, seed=1)
    whole = mc.draws(x, n_draws=3)
    torch.testing.assert_close(mc.draws(x[2:], n_draws=3), whole[:, 2:])


def test_the_audit_shows_names_and_rates():
    found = {
        name: [(site.path, site.rate) for site in caveat.audit(*built(name))]
        for name in ("nested", "seeded", "attention", "spatial")
    }
    paths = [path for path, _ in found["nested"]]
    assert any(path.endswith("twice") for path in paths)
    assert any(".inner." in path for path in paths)
    assert sorted(rate for _, rate in found["nested"]) == [0.2, 0.2, 0.2, 0.3, 0.4]
    assert [rate for _, rate in found["seeded"]] == [0.3]
    path, rate = found["attention"][0]
    assert path.startswith("attention.")
    assert rate == 0.3
    assert [rate for _, rate in found["spatial"]] == [0.3]


def test_gradients_flow():
    model, x = built("dropout")
    draw = caveat.MCDropout(model, seed=1).function(2)
    above = draw(x)
    with torch.no_grad():
        below = draw(x)
    torch.testing.assert_close(above, below)
    above.sum().backward()
    assert all(w.value.grad is not None for w in model.trainable_variables)


def test_the_flag_may_be_given():
    model, x = built("hands_down")
    mc = caveat.MCDropout(model, seed=1)
    given = mc.draws(x, n_draws=3, training=True)
    torch.testing.assert_close(given, mc.draws(x, n_draws=3))
    with pytest.raises(NoStochasticSiteError):
        mc.draws(x, n_draws=3, training=False)


def test_other_passes_of_keras_are_left_alone():
    model, x = built("gated_seeded")
    keras.utils.set_random_seed(5)
    expected = [model(x, training=True) for _ in range(2)][1]
    model, x = built("gated_seeded")
    keras.utils.set_random_seed(5)
    model(x, training=True)
    caveat.MCDropout(model, seed=0).draws(x, n_draws=2)
    torch.testing.assert_close(model(x, training=True), expected)


def test_a_model_without_weights_yet_is_refused():
    class Late(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = layers.Dense(2), layers.Dropout(0.5)

        def call(self, x: Any) -> Any:
            return self.last(self.first(x))

    class Holds(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before, self.inside = nn.Linear(3, 3), Late()

        def forward(self, x: Tensor) -> Any:
            return self.inside(self.before(x))

    model = Holds()
    with pytest.raises(UnsupportedModelError, match="no weights yet"):
        caveat.MCDropout(model).draws(normal(2, 3))
    assert not model.inside.trainable_variables
