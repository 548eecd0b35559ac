"""A latency budget is kept by fewer draws, and the answer says how many."""

import time

from caveat.serve.costs import CostModel
from tests.serve.running import ask


def test_draws_fit_into_the_time_that_is_left():
    costs = CostModel()
    assert costs.draws(1, 1.0, 1000) == 64  # nothing known yet
    costs.start((8, 0.011), (1008, 0.111))  # 10 ms, and 0.1 ms for a row and draw
    assert abs(costs.seconds(1, 100) - 0.0202) < 2e-3
    number = costs.draws(1, 0.1, 10_000)
    assert 448 <= number <= 704 and number % 64 == 0
    assert costs.draws(10, 0.1, 10_000) in (32, 64)
    assert costs.draws(1, 0.1, 100) == 64
    assert costs.draws(1, 0.001, 10_000) == costs.draws(1, -1.0, 10_000) == 8


def test_slow_batches_are_learned_at_once_and_fast_ones_slowly():
    costs = CostModel()
    costs.start((8, 0.01), (1008, 0.11))
    before = costs.seconds(10, 100)
    costs.learn(10, 100, 3 * before)
    assert costs.seconds(10, 100) > 1.5 * before
    risen = costs.seconds(10, 100)
    costs.learn(10, 100, before)
    assert 0.8 * risen < costs.seconds(10, 100) < risen


def test_more_time_means_more_draws(address):
    def draws(budget):
        body = {"rows": [[0.1, 0.2, 0.3]], "budget_ms": budget}
        found = ask(address, "net", body).json()["predictions"][0]
        return found["n_draws"]

    draws(50)
    start = time.monotonic()
    few, many = draws(6), draws(400)
    assert time.monotonic() - start < 5.0
    assert 8 <= few < many
    capped = {"rows": [[0.1, 0.2, 0.3]], "budget_ms": 5000, "n_draws": 24}
    assert ask(address, "net", capped).json()["predictions"][0]["n_draws"] in (16, 24)
