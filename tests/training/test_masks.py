"""Factors of stacked networks, and the memory of them."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from caveat.sampling.factors import unit_factors
from caveat.training import Member, NetworkSpec
from caveat.training import masks as module
from caveat.training.masks import Address, FactorMemory, factors_of
from caveat.training.members import Architecture
from caveat.training.networks import noise_sites

SPEC = NetworkSpec((4,), drop_rate=0.3, input_drop_rate=0.2)


def test_factors_are_those_of_the_sites_of_each_member():
    members = [
        Member("both", SPEC, (0.0, 0.0)),
        Member("hidden only", SPEC.vary(input_drop_rate=0.0), (0.0, 0.0)),
    ]
    shape = Architecture.of(SPEC, 3, 1)
    found = factors_of(members, [7, 8], shape, range(2, 9), torch.float64)
    assert [f.shape for f in found] == [(2, 7, 3), (2, 7, 4)]
    assert torch.equal(found[0][1], torch.ones(7, 3, dtype=torch.float64))
    for index, (member, seed) in enumerate(zip(members, [7, 8], strict=True)):
        site = noise_sites(member.spec)[1]
        expected = unit_factors(
            site.module,
            site.path,
            4,
            seed=seed,
            draws=range(2, 9),
            dtype=torch.float64,
        )
        assert torch.equal(found[1][index], expected)


def test_a_layer_without_noise_has_none():
    quiet = Member("quiet", SPEC.vary(input_drop_rate=0.0), (0.0, 0.0))
    shape = Architecture.of(SPEC, 3, 1)
    first, second = factors_of([quiet], [1], shape, range(2), torch.float32)
    assert first is None and second is not None


def an_address(seed=0, stop=5, dtype=torch.float32):
    return Address(seed, range(stop), dtype)


def test_the_last_seed_is_remembered():
    memory, factors = FactorMemory(), [None, torch.ones(2)]
    memory.put(an_address(), factors)
    memory.put(an_address(stop=6), factors)
    assert memory.get(an_address()) is factors
    assert memory.get(an_address(stop=6)) is factors
    assert memory.get(an_address(seed=1)) is None
    assert memory.get(an_address(dtype=torch.float64)) is None
    memory.put(an_address(seed=1), factors)
    assert memory.get(an_address()) is None


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(module, "_KEPT", 100)
    memory = FactorMemory()
    for stop in range(1, 10):
        memory.put(an_address(stop=stop), [torch.ones(10)])
    kept = [stop for stop in range(1, 10) if memory.get(an_address(stop=stop))]
    assert kept == [1, 2]


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))]
)
def test_a_copy_remembers_nothing(copied):
    memory = FactorMemory()
    memory.put(an_address(), [torch.ones(2)])
    assert copied(memory).get(an_address()) is None


def test_threads_do_not_meet_each_others_factors():
    memory = FactorMemory()

    def work(seed):
        address = an_address(seed=seed % 3)
        found = memory.get(address)
        memory.put(address, [torch.full((2,), float(seed % 3))])
        return found is None or float(found[0][0]) == seed % 3

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(600)))
