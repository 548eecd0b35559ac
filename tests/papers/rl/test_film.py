"""The film of an agent and the picture in the figure."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from caveat.papers.rl import film
from caveat.papers.rl.film import richest_view, write_film

NETWORK = Path(__file__).parents[3] / "docs" / "results" / "rl.npz"


@pytest.fixture(autouse=True)
def network():
    if not NETWORK.exists():
        pytest.skip("docs/results/rl.npz is not there; made by `caveat reproduce rl`")


def test_a_film_is_the_same_again(tmp_path):
    for name in ("one.gif", "two.gif"):
        write_film(tmp_path / name, NETWORK, 5)
    first, second = (tmp_path / name for name in ("one.gif", "two.gif"))
    assert first.read_bytes() == second.read_bytes()
    with Image.open(first) as gif:
        assert gif.n_frames == 5 and gif.size == (350, 250)


def test_the_view_is_the_first_with_the_most_kinds(monkeypatch):
    kinds = {0: [0, 0], 1: [0, 2, 2], 2: [0, 1], 3: [0, 1, 2], 4: [2, 1, 0]}

    def walk(*_):
        for place, kind in kinds.items():
            yield SimpleNamespace(place=place, readings=SimpleNamespace(kind=kind))

    monkeypatch.setattr(film, "_walk", walk)
    monkeypatch.setattr(film, "picture", lambda worlds: worlds.place)
    assert richest_view(NETWORK, 5) == 3


def test_a_view_is_a_picture_of_the_world():
    view = richest_view(NETWORK, 1)
    assert view.shape == (500, 700, 3) and view.dtype == np.uint8
