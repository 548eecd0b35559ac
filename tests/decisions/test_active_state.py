"""What a learner remembers, on disk and back."""

import json

import numpy as np
import pytest

from caveat.decisions.active.state import LearnerState, read_state, write_state
from caveat.errors import DataError, ParameterError

SETTINGS = {"n_pool": 9, "seed": 1, "n_candidates": None}


def test_state_survives_the_file(tmp_path):
    path = tmp_path / "new" / "state.json"
    assert read_state(path, SETTINGS) == LearnerState()
    state = LearnerState().told(np.array([4, 2]), np.array(["b", "a"])).scored(0.5)
    state = state.asked(np.array([7, 8]))
    write_state(path, SETTINGS, state)
    assert read_state(path, SETTINGS) == state
    assert [p.name for p in path.parent.iterdir()] == ["state.json"]


def test_told_rows_are_no_longer_asked_for():
    state = LearnerState().asked(np.array([3, 5])).told(np.array([5]), np.array([1.5]))
    assert state.pending == (3,)
    assert (state.rows, state.labels) == ((5,), (1.5,))


def test_other_settings_are_refused(tmp_path):
    path = tmp_path / "state.json"
    write_state(path, SETTINGS, LearnerState())
    with pytest.raises(ParameterError, match="seed=1, and this one has seed=2"):
        read_state(path, SETTINGS | {"seed": 2})


@pytest.mark.parametrize("text", ["{", "[]", json.dumps({"settings": {}})])
def test_other_files_are_refused(tmp_path, text):
    path = tmp_path / "state.json"
    path.write_text(text)
    with pytest.raises(DataError, match="not the file of an ActiveLearner"):
        read_state(path, SETTINGS)
