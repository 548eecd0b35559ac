"""Pictures of the world."""

import numpy as np

from caveat.rl import EyesEnv, EyesVectorEnv
from caveat.rl.eyes.rendering import picture


def test_shapes():
    one, many = EyesEnv(render_mode="rgb_array"), EyesVectorEnv(2, render_mode=None)
    one.reset(seed=0)
    frame = one.render()
    assert frame.shape == (500, 700, 3) and frame.dtype == np.uint8
    many.reset(seed=0)
    assert many.render() is None
    shown = EyesVectorEnv(2, render_mode="rgb_array")
    shown.reset(seed=0)
    frames = shown.render()
    assert len(frames) == 2
    np.testing.assert_array_equal(frames[0], frame)
    assert (frames[0] != frames[1]).any()


def test_things_are_where_they_are():
    env = EyesVectorEnv(1)
    env.reset(seed=0)
    worlds = env.worlds
    state = worlds.state()
    state["items"][:], state["kinds"][:] = np.nan, 0
    state["items"][0, :2] = (350.0, 60.0), (350.0, 440.0)
    state["kinds"][0, :2] = 1, 2
    worlds.load_state(state)
    image = picture(worlds).astype(int)
    food, poison, agent = image[60, 350], image[433, 350], image[50, 50]
    assert food[0] > 2 * max(food[1], food[2])
    assert poison[1] > 2 * max(poison[0], poison[2])
    assert agent[2] > agent[0]
    assert image[250, 10].max() < 60 and image[250, 300].max() < 60  # walls
    assert image[250, 100].min() == 255  # the open side of a box
