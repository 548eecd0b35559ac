"""Work side by side."""

import threading

import pytest
import torch

from caveat.training.threads import side_by_side


def test_results_come_in_order_and_each_has_one_core():
    before = torch.get_num_threads()
    meeting = threading.Barrier(2, timeout=30)

    def work(item):
        meeting.wait()  # passes only if two run at the same time
        return item, torch.get_num_threads()

    assert side_by_side(work, [3, 1, 4, 2], 2) == [(3, 1), (1, 1), (4, 1), (2, 1)]
    assert torch.get_num_threads() == before


def test_an_error_leaves_torchs_threads_as_they_were():
    before = torch.get_num_threads()
    with pytest.raises(ZeroDivisionError):
        side_by_side(lambda item: 1 / item, [1, 0], 2)
    assert torch.get_num_threads() == before
