"""Ten Keras models, trained a little and saved by whatever backend runs this file.

``KERAS_BACKEND=jax python -m tests.sampling.keras_files FOLDER [NAME …]`` writes for
each name NAME.keras, and NAME.npz with inputs, the answers without noise and some with.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

FLAT, STEPS, IMAGE, TOKENS = (5,), (4, 3), (6, 6, 2), (4,)
N_ROWS, N_DRAWS = 4, 200


def models(keras: Any) -> dict[str, tuple[Callable[[], Any], tuple[int, ...]]]:
    """How each is made, and the shape of a row."""
    layers = keras.layers

    def chain(shape: tuple[int, ...], *parts: Any) -> Any:
        return keras.Sequential([layers.Input(shape), *parts, layers.Dense(2)])

    def flat(*noise: Any) -> Callable[[], Any]:
        dense = layers.Dense(8, activation="relu")
        return lambda: chain(FLAT, dense, *noise, layers.BatchNormalization())

    def branches() -> Any:
        x = inputs = keras.Input(FLAT)
        x = layers.Dense(8, activation="gelu")(x)
        y = layers.Dense(8)(layers.Dropout(0.2, name="inner")(x))
        y = layers.BatchNormalization()(layers.Add()([x, y]))
        return keras.Model(inputs, layers.Dense(2)(layers.Dropout(0.4)(y)))

    def attention() -> Any:
        inputs = keras.Input(STEPS)
        x = layers.MultiHeadAttention(2, 4, dropout=0.3)(inputs, inputs)
        x = layers.LayerNormalization()(layers.Dropout(0.1)(x))
        return keras.Model(inputs, layers.Dense(2)(layers.GlobalAveragePooling1D()(x)))

    def images() -> Any:
        return chain(
            IMAGE,
            layers.Conv2D(4, 3, activation="relu"),
            layers.BatchNormalization(),
            layers.SpatialDropout2D(0.3),
            layers.GlobalAveragePooling2D(),
        )

    def words() -> Any:
        embed, pool = layers.Embedding(7, 5), layers.GlobalAveragePooling1D()
        return chain(TOKENS, embed, layers.SpatialDropout1D(0.3), pool)

    return {
        "dropout": (flat(layers.Dropout(0.3, name="own")), FLAT),
        "gaussian_dropout": (flat(layers.GaussianDropout(0.3)), FLAT),
        "gaussian_noise": (flat(layers.GaussianNoise(0.5)), FLAT),
        "alpha_dropout": (flat(layers.AlphaDropout(0.3)), FLAT),
        "branches": (branches, FLAT),
        "images": (images, IMAGE),
        "lstm": (
            lambda: chain(STEPS, layers.LSTM(4, dropout=0.3, recurrent_dropout=0.2)),
            STEPS,
        ),
        "attention": (attention, STEPS),
        "words": (words, TOKENS),
        "subclassed": (subclassed(keras), FLAT),
    }


def subclassed(keras: Any) -> type:
    """A registered class of one's own, with layers in a list, and a seed."""
    layers = keras.layers

    @keras.saving.register_keras_serializable("caveat")
    class InPieces(keras.Model):  # type: ignore[misc, name-defined]
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.blocks = [
                layers.Dense(8, activation="relu"),
                layers.Dropout(0.3, seed=1),
            ]
            self.norm, self.last = layers.BatchNormalization(), layers.Dense(2)

        def call(self, x: Any, training: bool | None = None) -> Any:
            for block in self.blocks:
                x = block(x, training=training)
            return self.last(self.norm(x, training=training))

    return InPieces


def write(folder: Path, names: list[str]) -> None:
    """Train, save, and store what the backend itself says."""
    import keras

    own = models(keras)
    for name in names:
        make, shape = own[name]
        keras.utils.set_random_seed(0)
        rng = np.random.default_rng(0)
        x = rng.normal(size=(32, *shape)).astype(np.float32)
        if name == "words":
            x = np.abs(x * 2).astype(np.int32) % 7
        model = make()
        model.compile("adam", "mse")
        y = rng.normal(size=(32, 2)).astype(np.float32)
        model.fit(x, y, epochs=2, batch_size=8, verbose=0)
        model.save(folder / f"{name}.keras")
        x = x[:N_ROWS]
        quiet = np.asarray(model(x, training=False))
        for part in model._flatten_layers():
            if isinstance(part, keras.layers.BatchNormalization):
                part.trainable = False  # Keras then keeps it in inference mode
        # Every row has noise of its own, so one pass over many copies is a loop.
        many = np.asarray(model(np.concatenate([x] * N_DRAWS), training=True))
        noisy = many.reshape(N_DRAWS, *quiet.shape)
        np.savez(folder / f"{name}.npz", x=x, quiet=quiet, noisy=noisy)


if __name__ == "__main__":
    write(Path(sys.argv[1]), sys.argv[2:])
