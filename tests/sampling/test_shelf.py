"""Draws are kept once, however they come."""

import os
import subprocess
import sys

import pytest
import torch

from caveat.errors import ShapeError
from caveat.sampling.shelf import Shelf


def numbers(*shape: int) -> torch.Tensor:
    return torch.arange(float(torch.Size(shape).numel())).view(shape)


def filled(shelf: Shelf, parts: list[torch.Tensor]) -> Shelf:
    for batch, part in enumerate(parts):
        draw = 0
        for block in part.split(1 + batch % 7):
            shelf.put(batch, draw, block)
            draw += len(block)
    return shelf


@pytest.mark.parametrize("n_draws", [1, 5, 40, 333])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("sizes", [(4,), (3, 1, 5), (2,) * 40])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.bool])
def test_batches_are_joined(n_draws, known, sizes, dtype):
    whole = (numbers(n_draws, sum(sizes), 3) % 255).to(dtype)
    shelf = filled(Shelf(0, n_draws if known else None), list(whole.split(sizes, 1)))
    found = shelf.whole(n_draws)
    assert torch.equal(found, whole)
    assert found.is_contiguous()


def test_rows_may_lie_on_another_axis():
    whole = numbers(20, 3, 7, 2)
    shelf = filled(Shelf(axis=1), list(whole.split([4, 3], 2)))
    assert torch.equal(shelf.whole(20), whole)


def test_a_single_batch_is_put_where_it_stays():
    whole = numbers(20, 3)
    assert torch.equal(filled(Shelf(0, 20, several=False), [whole]).whole(20), whole)


def test_draws_may_come_later_and_twice():
    whole = numbers(100, 5, 1)
    left, right = whole.split([2, 3], 1)
    shelf = filled(Shelf(), [left[:32], right])
    shelf.put(0, 0, left[:40])
    shelf.put(0, 40, left[40:])
    assert torch.equal(shelf.whole(100), whole)


def test_outputs_must_be_alike():
    with pytest.raises(ShapeError, match=r"Batch 1 gives outputs of shape \(2, 4\)"):
        filled(Shelf(), [numbers(3, 2, 3), numbers(3, 2, 4)])
    with pytest.raises(ShapeError, match="batches of it cannot be joined"):
        filled(Shelf(), [numbers(3), numbers(3)])


MEMORY = """
import sys
import torch
from torch import nn
from benchmarks.memory import peak, reset_peak
import caveat

torch.set_num_threads(1)
torch.manual_seed(0)
call, n_rows = sys.argv[1], int(sys.argv[2])
outputs = 2 if call == "summed" else 16
last = nn.Linear(8, outputs)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), last).eval()
mc = caveat.MCDropout(net, seed=0, analytic=False)
CALLS = {
    "draws": lambda x: mc.draws(x, n_draws=100),
    "regress": lambda x: mc.regress(x, n_draws=100, precision=1.0),
    "classify": lambda x: mc.classify(x, n_draws=100),
    "tolerance": lambda x: mc.regress(x, tolerance=0.01, precision=1.0, max_draws=80),
    "summed": lambda x: mc.regress(
        x, tolerance=0.2, precision=1e3, max_draws=64, keep_draws=False
    ),
}
rows = lambda n: (torch.randn(2000, 4) for _ in range(n // 2000))


def measured(n):
    reset_peak()
    found = CALLS[call](rows(n))
    if call == "summed":
        return peak(), found.mean.numel() * 4
    draws = found if call == "draws" else found.draws
    return peak(), draws.numel() * draws.element_size()


measured(4000)  # what is loaded and made once
short, long = measured(4000), measured(n_rows)
print(long[0] - short[0], long[1] - short[1])
"""


def grown(call: str, n_rows: int) -> tuple[int, int]:
    """How much more memory a long stream takes than a short one, and its result."""
    code = [sys.executable, "-c", MEMORY, call, str(n_rows)]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(code, capture_output=True, text=True, env=env, check=True)
    more, kept = map(int, done.stdout.split())
    return more, kept


linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


@linux
@pytest.mark.parametrize("call", ["draws", "regress", "classify", "tolerance"])
def test_draws_are_in_memory_once(call):
    more, kept = grown(call, 44_000)
    assert kept > 150e6
    # With a tolerance batches are begun again, and the heap is less tidy.
    assert more < (1.4 if call == "tolerance" else 1.2) * kept


@linux
def test_streams_leave_nothing_behind():
    """Mean, variance, precision, error and 2 covariances, twice while being joined."""
    more, means = grown("summed", 200_000)
    # The activations would be 350 MB; how untidy the heap is differs between machines.
    assert more < 2 * 6 * means + 60e6
