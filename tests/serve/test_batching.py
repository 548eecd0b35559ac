"""Requests that arrive together: the same answers, and nobody suffers for another."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy

import numpy as np
import pytest

from caveat.serve import Limits
from caveat.serve.asking import Settings
from caveat.serve.batching import Batcher, QueuedJob
from caveat.serve.kinds import served
from caveat.serve.refusing import RefusedError
from tests.serve.running import CLIENT, ROW, ask, serving


def numbers_of(answer):
    own = answer.json()["predictions"][0]
    flat = []
    for value in own.values():
        values = value.values() if isinstance(value, dict) else np.ravel(value)
        flat += [float(v) for v in values if not isinstance(v, str)]
    return np.array(flat)


def rows_of(name, n):
    values = np.linspace(-2.0, 2.0, n)
    if name in ("prices", "kinds"):
        return [ROW | {"size": float(v)} for v in values]
    width = 2 if name == "matrix" else 3
    return [[float(v)] * width for v in values]


class Gate:
    """Models that, while it is closed, wait before they answer."""

    def __init__(self, models):
        self.sizes, self._is_open = [], threading.Event()
        self._is_open.set()
        self.models = {name: self._held(served(own)) for name, own in models.items()}

    def _held(self, model):
        def predictive(x, n_draws, seed):
            self.sizes.append(len(x))
            assert self._is_open.wait(60)
            return model.predictive(x, n_draws, seed)

        return acting(model, predictive)

    @contextmanager
    def closed(self):
        self.sizes.clear()
        self._is_open.clear()
        try:
            yield
        finally:
            self._is_open.set()


def acting(model, predictive):
    """The same model as a server takes it, with another way to answer."""
    found = copy(model)
    found.predictive = predictive
    return found


@pytest.fixture(scope="module")
def gate(served_models):
    return Gate(served_models)


@pytest.fixture(scope="module")
def address(gate):
    with serving(gate.models) as found:
        yield found


def until(is_true):
    end = time.monotonic() + 30
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.005)


def waiting(address):
    text = CLIENT.get(f"http://{address}/metrics").text
    (line,) = (x for x in text.splitlines() if x.startswith("caveat_queue "))
    return int(float(line.split()[1]))


@pytest.mark.parametrize("name", ["prices", "kinds", "matrix", "net", "numbers"])
def test_an_answer_is_the_same_alone_and_among_64(address, gate, name):
    rows = rows_of(name, 64)

    def one(row):
        body = {"rows": [row], "n_draws": 40, "seed": 3}
        answer = ask(address, name, body)
        assert answer.status_code == 200, answer.text
        return numbers_of(answer)

    some = [0, 31, 63]
    alone = {i: one(rows[i]) for i in some}
    with ThreadPoolExecutor(65) as pool:
        with gate.closed():
            first = pool.submit(one, rows[0])
            until(lambda: gate.sizes)  # it is being answered, and keeps the others
            asked = [pool.submit(one, row) for row in rows]
            until(lambda: waiting(address) == 64)
        together = [future.result() for future in asked]
    assert gate.sizes == [1, 64]
    np.testing.assert_array_equal(first.result(), alone[0])
    for i in some:
        # labels are texts; all numbers are there
        np.testing.assert_allclose(alone[i], together[i], rtol=1e-6, atol=1e-6)


class Slow:
    """A model that waits, and fails for some rows."""

    def __init__(self, model):
        self.model, self.gate, self.sizes = model, None, []

    def __getattr__(self, name):
        return getattr(self.model, name)

    def predictive(self, x, n_draws, seed):
        self.sizes.append(len(x))
        if self.gate is not None:
            assert self.gate.wait(10)
        if (np.asarray(x) == 666).any():
            raise RuntimeError("poisoned")
        return self.model.predictive(x, n_draws, seed)


def batcher_of(model, limits=None):
    found = Batcher({"m": model}, limits or Limits())
    found.start()
    return found


def job(value, n_draws=8, **more):
    x = np.full((1, 3), value, np.float32)
    return QueuedJob("m", x, Settings(n_draws=n_draws, **more), ("mean", "n_draws"))


def met(batcher, model, jobs):
    """Futures of jobs that all wait when the first of them is looked at."""
    model.sizes.clear()
    model.gate = threading.Event()
    batcher.submit(job(0.0, seed=9))
    until(lambda: model.sizes)  # it is being answered
    model.sizes.clear()
    found = [batcher.submit(j) for j in jobs]
    model.gate.set()
    return found


def test_a_poisoned_request_fails_alone(served_models):
    model = Slow(served_models["numbers"])
    batcher = batcher_of(model)
    try:
        jobs = met(batcher, model, [job(v) for v in (1.0, 666, 2.0, 3.0)])
        with pytest.raises(RefusedError, match="poisoned"):
            jobs[1].result(10)
        alone = batcher.submit(job(2.0)).result(10)
        assert np.allclose(jobs[2].result(10)["mean"], alone["mean"])
        assert model.sizes[:5] == [4, 1, 1, 1, 1]  # together, then one by one
    finally:
        batcher.stop()


def test_only_equal_settings_are_computed_together(served_models):
    model = Slow(served_models["numbers"])
    batcher = batcher_of(model)
    try:
        own = [job(1.0), job(2.0, seed=1), job(3.0), job(4.0, n_draws=9), job(5.0)]
        found = [f.result(10) for f in met(batcher, model, own)]
        assert sorted(model.sizes) == [1, 1, 4]  # three, and one to make it four
        assert [int(f["n_draws"][0]) for f in found] == [8, 8, 8, 9, 8]
    finally:
        batcher.stop()


def test_a_full_queue_refuses_and_stopping_answers_what_waits(served_models):
    gate = threading.Event()
    model = Slow(served_models["numbers"])
    batcher = batcher_of(model, Limits(max_waiting=3, batch_rows=1, window=0.0))
    model.gate = gate
    jobs = [batcher.submit(job(0.0))]
    while batcher.waiting:
        time.sleep(0.001)
    jobs += [batcher.submit(job(float(v))) for v in range(3)]
    with pytest.raises(RefusedError) as caught:
        batcher.submit(job(9.0))
    assert caught.value.status == 503
    stopper = threading.Thread(target=batcher.stop)
    stopper.start()
    gate.set()
    stopper.join(10)
    assert all(len(f.result(0)["mean"]) == 1 for f in jobs)
    with pytest.raises(RefusedError, match="stopping"):
        batcher.submit(job(1.0))


def test_a_wait_has_an_end(served_models):
    gate = threading.Event()
    model = Slow(served_models["numbers"])
    batcher = batcher_of(model, Limits(max_wait=0.5, batch_rows=1, window=0.0))
    model.gate = gate
    try:
        first, second = batcher.submit(job(1.0)), batcher.submit(job(2.0))
        time.sleep(0.6)
        gate.set()
        assert len(first.result(10)["mean"]) == 1
        with pytest.raises(RefusedError, match="waited"):
            second.result(10)
    finally:
        gate.set()
        batcher.stop()


def test_overload_is_503_with_retry_after(served_models):
    gate = Gate({"m": served_models["numbers"]})
    limits = Limits(max_waiting=2, batch_rows=1)
    with serving(gate.models, limits) as address, ThreadPoolExecutor(16) as pool:

        def one(v):
            return ask(address, "m", {"rows": [[v, 0, 0]], "n_draws": 8})

        with gate.closed():
            asked = [pool.submit(one, 0)]
            until(lambda: gate.sizes)  # it is being answered
            asked += [pool.submit(one, v) for v in range(1, 16)]
            until(lambda: sum(a.done() for a in asked) == 13)
        answers = [a.result() for a in asked]
        codes = [a.status_code for a in answers]
        assert codes.count(200) == 3 and codes.count(503) == 13
        busy = next(a for a in answers if a.status_code == 503)
        assert int(busy.headers["retry-after"]) >= 1 and "error" in busy.json()
        assert one(1).status_code == 200  # and then it goes on


def test_numbers_too_large_for_a_model_fail_alone(address, served_models):
    for name, row in (("numbers", [3e38] * 3), ("matrix", [1e308] * 2)):
        found = ask(address, name, {"rows": [row]})
        assert found.status_code == 400 and found.json()["error"]


class Infinite(Slow):
    def predictive(self, x, n_draws, seed):
        found = super().predictive(x, n_draws, seed)
        return found.rescale(1.0, shift=0.0) if not (x == 9).any() else Unlimited(found)


class Unlimited:
    """A predictive whose means are not finite in rows of 9."""

    def __init__(self, found):
        self.found = found

    def __len__(self):
        return len(self.found)

    def __getattr__(self, name):
        return getattr(self.found, name)

    @property
    def mean(self):
        found = self.found.mean.clone()
        found[1] = float("inf")
        return found


def test_an_answer_that_is_not_finite_fails_alone(served_models):
    model = Infinite(served_models["numbers"])
    batcher = batcher_of(model)
    try:
        good, bad = met(batcher, model, [job(1.0), job(9.0)])
        assert np.isfinite(good.result(10)["mean"]).all()
        with pytest.raises(RefusedError, match="Row 1: mean is not a finite"):
            bad.result(10)
    finally:
        batcher.stop()
