"""A short film of a trained agent."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from caveat.rl import DQNFleet, QSettings
from caveat.rl.eyes.rendering import picture
from caveat.rl.eyes.worlds import N_ACTIONS, N_EYES, Worlds

_SEED = 2_000  # of a world that no agent was trained in
_SIZE = (350, 250)
_COLOURS = 24
_TICKS_PER_FRAME = 2
_MILLISECONDS = 50


def film(
    networks: Mapping[str, NDArray[Any]], path: Path, *, n_frames: int
) -> NDArray[np.uint8]:
    """Write a GIF of an agent that acts by Thompson sampling.

    Parameters
    ----------
    networks : mapping of str to array
        Weights and biases of one agent, as in ``Trained``.
    path : Path
        Of the GIF.
    n_frames : int
        Pictures, one for every second tick.

    Returns
    -------
    array of uint8, shape (500, 700, 3)
        The one in which the eyes see the most kinds of things.
    """
    fleet = _fleet(networks)
    worlds = Worlds([np.random.default_rng(_SEED)])
    frames, variety = [], []
    for _ in range(n_frames):
        for _ in range(_TICKS_PER_FRAME):
            worlds.step(fleet.exploit(worlds.readings.inputs()))
        frames.append(picture(worlds))
        variety.append(len(np.unique(worlds.readings.kind)))
    images = [_reduced(frame) for frame in frames]
    path.parent.mkdir(parents=True, exist_ok=True)
    images[0].save(
        path, save_all=True, append_images=images[1:], duration=_MILLISECONDS, loop=0
    )
    return frames[int(np.argmax(variety))]


def _fleet(networks: Mapping[str, NDArray[Any]]) -> DQNFleet:
    fleet = DQNFleet(
        3 * N_EYES, N_ACTIONS, settings=QSettings.thompson(capacity=1), seeds=[0]
    )
    layers = (*fleet.networks.weights, *fleet.networks.biases)
    for k, layer in enumerate(layers):
        layer[0] = networks[f"network_{k}"]
    return fleet


def _reduced(frame: NDArray[np.uint8]) -> Image.Image:
    return Image.fromarray(frame).resize(_SIZE).quantize(_COLOURS)
