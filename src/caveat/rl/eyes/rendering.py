"""A picture of the world as in fig. 5 of paper 001."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from caveat.rl.eyes.geometry import HEIGHT, WALLS, WIDTH
from caveat.rl.eyes.worlds import FOOD, OFFSETS, POISON, RADIUS, RANGE, WALL, Worlds

_SCALE = 2  # drawn larger and reduced: smooth edges
_COLOURS = {FOOD: (224, 60, 60), POISON: (70, 180, 70), WALL: (60, 60, 60)}
_PALE = (185, 185, 185)  # of eyes that see nothing
_AGENT = (90, 120, 220)
_INK = (0, 0, 0)


def picture(worlds: Worlds, number: int = 0) -> NDArray[np.uint8]:
    """Walls, food (red), poison (green, crossed), the agent and what its eyes see.

    Parameters
    ----------
    worlds : Worlds
        As they are now.
    number : int
        Which of them.

    Returns
    -------
    array of uint8, shape (500, 700, 3)
    """
    size = int(WIDTH), int(HEIGHT)
    image = Image.new("RGB", (_SCALE * size[0], _SCALE * size[1]), "white")
    pen = ImageDraw.Draw(image)
    for wall in WALLS:
        pen.line([_SCALE * float(v) for v in wall], fill=_INK, width=2 * _SCALE)
    _draw_items(pen, worlds, number)
    _draw_eyes(pen, worlds, number)
    _disc(pen, worlds.position[number], _AGENT)
    return np.asarray(image.resize(size, Image.Resampling.LANCZOS))


def _draw_items(pen: ImageDraw.ImageDraw, worlds: Worlds, number: int) -> None:
    for place, kind in zip(worlds.items[number], worlds.kinds[number], strict=True):
        if kind:
            _disc(pen, place, _COLOURS[int(kind)])
        if kind == POISON:
            arm = RADIUS / 2.0
            for slope in (1.0, -1.0):
                tip = np.array([arm, slope * arm])
                _line(pen, place - tip, place + tip, _INK)


def _draw_eyes(pen: ImageDraw.ImageDraw, worlds: Worlds, number: int) -> None:
    start = worlds.position[number]
    distance, kind = (reading[number] for reading in worlds.readings)
    angles = worlds.heading[number] + OFFSETS
    for angle, part, seen in zip(angles, distance, kind, strict=True):
        way = RANGE * part * np.array([np.sin(angle), np.cos(angle)])
        _line(pen, start, start + way, _COLOURS.get(int(seen), _PALE))


def _line(pen: ImageDraw.ImageDraw, start: Any, end: Any, colour: Any) -> None:
    pen.line([_SCALE * float(v) for v in (*start, *end)], fill=colour, width=_SCALE + 1)


def _disc(pen: ImageDraw.ImageDraw, centre: Any, colour: Any) -> None:
    x, y = (float(v) for v in centre)
    box = [_SCALE * v for v in (x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS)]
    pen.ellipse(box, fill=colour, outline=_INK, width=_SCALE)
