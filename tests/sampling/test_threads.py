"""Many threads, one process: answers equal the serial ones, eval calls stay quiet."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import nn

import caveat
from tests.sampling.comparing import BY_NAME, SEED, assert_close
from tests.sampling.snapshot import Snapshot
from tests.zoo.specimen import Specimen

WORKERS = 6
MIX = [
    BY_NAME[name]
    for name in [
        "mlp_batchnorm",
        "functional",
        "lstm",
        "gru_packed_bidirectional",
        "encoder",
        "sdpa",
        "branches",
        "counts_steps",
        "hooked",
        "gradient_inside",
        "aux_when_training",
        "layer_drop_torch",
        "bert_sdpa",
    ]
]


def draw(specimen: Specimen, model: nn.Module, seed: int) -> list[torch.Tensor]:
    args, kwargs = specimen.rows()
    draws = caveat.MCDropout(model, seed=seed).draws(*args, n_draws=6, **kwargs)
    return specimen.tensors(draws)


def in_threads(tasks: list[Callable[[], Any]]) -> list[Any]:
    """Results of all tasks, run by six threads that start together."""
    with ThreadPoolExecutor(WORKERS) as pool:
        return [future.result() for future in [pool.submit(task) for task in tasks]]


def test_many_models_at_once_give_the_serial_draws():
    models = [specimen.build() for specimen in MIX]
    jobs = [
        (s, m, SEED + k) for k in range(3) for s, m in zip(MIX, models, strict=True)
    ]
    serial = [draw(*job) for job in jobs]
    threaded = in_threads([lambda job=job: draw(*job) for job in jobs])
    for (specimen, _, seed), found, expected in zip(
        jobs, threaded, serial, strict=True
    ):
        assert_close(found, expected, 1e-6, f"{specimen} with seed {seed}")


@pytest.mark.parametrize("specimen", MIX, ids=repr)
def test_one_model_in_many_threads_gives_the_serial_draws(specimen):
    model = specimen.build()
    before = Snapshot(model, specimen.rows())
    seeds = range(2 * WORKERS)
    serial = [draw(specimen, model, seed) for seed in seeds]
    threaded = in_threads([lambda s=s: draw(specimen, model, s) for s in seeds])
    for seed, found, expected in zip(seeds, threaded, serial, strict=True):
        assert_close(found, expected, 1e-6, f"seed {seed}")
    before.assert_unchanged("after many threads")


def test_one_sampler_in_many_threads_gives_the_serial_draws():
    specimen = BY_NAME["encoder"]
    mc = caveat.MCDropout(specimen.build(), seed=SEED)
    x = specimen.rows()[0][0]
    serial = mc.draws(x, n_draws=5)
    for found in in_threads([lambda: mc.draws(x, n_draws=5)] * WORKERS):
        assert_close([found], [serial], 1e-6)


QUIET = [s for s in MIX if s.name not in ("counts_steps", "hooked")]


@pytest.mark.parametrize("specimen", QUIET, ids=repr)
def test_plain_calls_beside_our_threads_stay_deterministic(specimen):
    """A plain eval call in another thread must never see a mask of ours."""
    model = specimen.build()
    args, kwargs = specimen.rows()
    with torch.no_grad():
        expected = specimen.tensors(model(*args, **kwargs))
    done = threading.Event()

    def call_until_done() -> int:
        count = 0
        with torch.no_grad():
            while not done.is_set() or count == 0:
                found = specimen.tensors(model(*args, **kwargs))
                assert_close(found, expected, 1e-5, f"plain call {count}")
                count += 1
        return count

    with ThreadPoolExecutor(WORKERS) as pool:
        plain = [pool.submit(call_until_done) for _ in range(2)]
        try:
            for job in [pool.submit(draw, specimen, model, s) for s in range(8)]:
                job.result()
        finally:
            done.set()
        assert all(job.result() > 0 for job in plain)


def test_a_sampling_block_belongs_to_its_thread():
    """Another thread's plain calls of the same model stay plain during a block."""
    specimen = BY_NAME["mlp"]
    model = specimen.build()
    x = specimen.rows()[0][0]
    with torch.no_grad():
        expected = model(x)
        with caveat.stochastic(model, seed=SEED):
            (elsewhere,) = in_threads([torch.no_grad()(lambda: model(x))])
            here = model(x)
    assert torch.equal(elsewhere, expected)
    assert not torch.equal(here, expected)
