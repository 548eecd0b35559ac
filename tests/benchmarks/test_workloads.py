"""The workloads are what measured figures refer to: check that they build."""

import copy
from collections.abc import Iterator

import pytest
import torch

from benchmarks.floors import deterministic_pass
from benchmarks.naive import naive_moments
from benchmarks.tasks import Case
from benchmarks.workloads import WORKLOADS, Workload, select

ROWS = 2
EVENTS = {"W1": 10, "W2": 10, "W3": 1, "W3b": 1, "W4": 1, "W5": 256, "W6": 10}


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Small inputs on a busy machine: threads would only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module", params=WORKLOADS, ids=lambda workload: workload.name)
def workload(request: pytest.FixtureRequest) -> Workload:
    found: Workload = request.param
    return found


@pytest.fixture(scope="module")
def case(workload: Workload) -> Case:
    return workload.make(ROWS)


def test_a_deterministic_pass_has_the_right_shape(
    workload: Workload, case: Case
) -> None:
    found = workload.task.read(deterministic_pass(case)())
    assert found.shape == (ROWS, EVENTS[workload.name])
    assert not any(module.training for module in case.model.modules())


def test_weights_and_inputs_are_always_the_same(workload: Workload, case: Case) -> None:
    first, second = (
        workload.task.read(deterministic_pass(one)())
        for one in (case, workload.make(ROWS))
    )
    torch.testing.assert_close(first, second, rtol=0, atol=0)


def test_the_naive_loop_has_a_spread(workload: Workload, case: Case) -> None:
    switched_on = copy.deepcopy(case)
    workload.switch_on(switched_on.model)
    found = naive_moments(switched_on, workload.task.read, n_draws=2)
    assert bool((found.variance > 0).any())  # few draws: a row may be lucky


def test_selection_by_name() -> None:
    assert [workload.name for workload in select(["W3", "W1"])] == ["W1", "W3", "W3b"]
    with pytest.raises(ValueError, match="W9"):
        select(["W9"])
