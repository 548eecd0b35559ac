"""A trained agent on its way: a short film, and one picture of its world."""

from collections.abc import Iterator
from pathlib import Path

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


def write_film(path: Path, network: Path, n_frames: int) -> None:
    """A GIF of an agent that acts by Thompson sampling."""
    first, *others = (_reduced(picture(worlds)) for worlds in _walk(network, n_frames))
    first.save(
        path, save_all=True, append_images=others, duration=_MILLISECONDS, loop=0
    )


def richest_view(network: Path, n_frames: int) -> NDArray[np.uint8]:
    """The first picture of the film, (500, 700, 3), whose eyes see the most kinds."""
    most = 0
    for worlds in _walk(network, n_frames):
        variety = len(np.unique(worlds.readings.kind))
        if variety > most:
            most, found = variety, picture(worlds)
    return found


def _walk(network: Path, n_frames: int) -> Iterator[Worlds]:
    """The world of one agent at each picture; the file holds its weights."""
    settings = QSettings.thompson(capacity=1)
    fleet = DQNFleet(3 * N_EYES, N_ACTIONS, settings=settings, seeds=[0])
    with np.load(network) as stored:
        for k, layer in enumerate((*fleet.networks.weights, *fleet.networks.biases)):
            layer[0] = stored[f"network_{k}"]
    worlds = Worlds([np.random.default_rng(_SEED)])
    for _ in range(n_frames):
        for _ in range(_TICKS_PER_FRAME):
            worlds.step(fleet.exploit(worlds.readings.inputs()))
        yield worlds


def _reduced(frame: NDArray[np.uint8]) -> Image.Image:
    return Image.fromarray(frame).resize(_SIZE).quantize(_COLOURS)
