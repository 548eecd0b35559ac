"""Requests that schemathesis makes of the OpenAPI: what is described is done."""

import time

import pytest

from tests.serve.running import ROW, ask

hypothesis = pytest.importorskip("hypothesis", reason="hypothesis is not installed")
schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is missing")

from schemathesis.specs.openapi.checks import positive_data_acceptance  # noqa: E402

OPERATIONS = {
    "/v2": "GET",
    "/v2/health/live": "GET",
    "/v2/health/ready": "GET",
    "/v2/models/{model}": "GET",
    "/v2/models/{model}/ready": "GET",
    "/v2/models/{model}/infer": "POST",
    "/v1/models/{model}/predict": "POST",
    "/v2/models/{model}/infer_stream": "POST",
    "/metrics": "GET",
    "/v1/models": "GET",
}
CASES = [
    (path, mode)
    for path in OPERATIONS
    for mode in schemathesis.GenerationMode
    if mode.is_positive or "{" in path  # else there is nothing to be wrong
]
LONGEST = 10.0  # seconds for an answer: the machine may be busy


@pytest.fixture(scope="module")
def described(address):
    return schemathesis.openapi.from_url(f"http://{address}/openapi.json")


def sent(described, path, mode, number):
    """How often each status came, of so many requests; all answers are checked."""
    codes = {}

    @hypothesis.seed(0)
    @hypothesis.settings(
        max_examples=number,
        deadline=None,
        database=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(
        case=described[path][OPERATIONS[path]].as_strategy(generation_mode=mode)
    )
    def one(case):
        start = time.monotonic()
        # What one model takes another may refuse: an address names its model freely.
        answer = case.call_and_validate(
            excluded_checks=[positive_data_acceptance], timeout=LONGEST
        )
        assert answer.status_code < 500 and time.monotonic() - start < LONGEST
        codes[answer.status_code] = codes.get(answer.status_code, 0) + 1

    one()
    return codes


def test_all_operations_are_met(described):
    found = [result.ok() for result in described.get_all_operations()]
    assert {o.path: o.method.upper() for o in found} == OPERATIONS


@pytest.mark.parametrize(("path", "mode"), CASES)
def test_a_few_generated_requests(described, path, mode):
    sent(described, path, mode, 8)


@pytest.mark.slow
@pytest.mark.parametrize(("path", "mode"), CASES)
def test_many_generated_requests(address, described, path, mode):
    before = ask(address, "prices", {"rows": [ROW], "n_draws": 16}).json()
    codes = sent(described, path, mode, 500 if OPERATIONS[path] == "POST" else 50)
    if OPERATIONS[path] == "POST" and not mode.is_positive:
        assert codes[400] > 50
    elif OPERATIONS[path] == "POST" and not path.endswith("infer"):
        # There by chance data has as many values as its shape says.
        assert codes.get(200, 0) > 5
    assert ask(address, "prices", {"rows": [ROW], "n_draws": 16}).json() == before
