"""Streams, metrics, and what is said of the routes."""

import json

import httpx
import pytest

import caveat
from caveat.errors import InputTypeError, ParameterError
from caveat.serve import NetworkModel, app
from tests.serve.running import CLIENT, ROW, ask, serving


def stream(address, model, body):
    url = f"http://{address}/v2/models/{model}/infer_stream"
    with CLIENT.stream("POST", url, json=body) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = [x for x in answer.iter_lines() if x.startswith("data: ")]
    return [json.loads(line[6:]) for line in lines]


def test_a_stream_draws_until_it_is_good_enough(address):
    events = stream(address, "net", {"rows": [[0.1, 0.2, 0.3]], "tolerance": 0.01})
    draws = [event["draws"] for event in events]
    assert draws == [8 * 2**n for n in range(len(draws))] and len(draws) >= 2
    assert [event["done"] for event in events] == [False] * (len(events) - 1) + [True]
    assert events[-1]["reason"] == "good enough"
    assert events[-1]["error"] <= 0.01 < events[-2]["error"]
    last = events[-1]["predictions"][0]["probs"]
    body = {"rows": [[0.1, 0.2, 0.3]], "n_draws": draws[-1]}
    found = ask(address, "net", body).json()["predictions"][0]
    assert found["probs"] == pytest.approx(last)


def test_a_stream_ends_with_its_draws_and_takes_tensors(address):
    own = {"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}
    body = {"inputs": [own], "parameters": {"n_draws": 20, "tolerance": 1e-6}}
    events = stream(address, "numbers", body)
    assert [event["draws"] for event in events] == [8, 16, 20]
    assert events[-1]["reason"] == "draws"


def test_a_stream_of_an_exact_model_has_one_event(address):
    events = stream(address, "matrix", {"rows": [[1, 2]], "quantiles": True})
    assert len(events) == 1 and events[0]["error"] == 0.0
    levels, values = zip(*events[0]["predictions"][0]["quantiles"], strict=True)
    assert list(values) == sorted(values) and levels[20] == 0.5


def test_a_stream_that_is_wrong_is_refused_before_it_begins(address):
    url = f"http://{address}/v2/models/net/infer_stream"
    row = {"rows": [[1, 2, 3]]}
    for own in (
        {"rows": [[1]]},
        row | {"n_draws": 1},
        row | {"quantiles": 1},
        {"x": 1},
    ):
        assert CLIENT.post(url, json=own).status_code == 400


def test_the_budget_of_a_server_does_not_cut_a_stream_that_says_when_to_end(
    served_models,
):
    limits = caveat.serve.Limits(budget=1e-6)
    with serving({"net": served_models["net"]}, limits) as address:

        def ended(**more):
            return stream(address, "net", {"rows": [[1, 2, 3]], **more})[-1]["reason"]

        assert ended() == "budget"
        assert ended(tolerance=1e-9, n_draws=16) == ended(n_draws=9) == "draws"
        assert ended(tolerance=1e-9, budget_ms=1e-3) == "budget"


def test_metrics_count(address):
    def count(text, name):
        return sum(
            float(line.split()[-1]) for line in text.splitlines() if name in line
        )

    url, name = f"http://{address}/metrics", 'caveat_rows_total{model="prices"}'
    before = CLIENT.get(url).text
    ask(address, "prices", {"rows": [ROW] * 7})
    ask(address, "prices", {"rows": [{}]})
    after = CLIENT.get(url).text
    assert count(after, name) - count(before, name) == 7
    assert 'route="/v1/models/{model}/predict",code="400"' in after
    for line in after.splitlines():
        assert line.startswith("#") or len(line.rsplit(" ", 1)) == 2


def test_routes_are_described_with_examples_that_work(address):
    found = CLIENT.get(f"http://{address}/openapi.json").json()
    for path, methods in found["paths"].items():
        body = methods.get("post", {}).get("requestBody")
        if body is None:
            continue
        example = body["content"]["application/json"]["example"]
        url = f"http://{address}{path.replace('{model}', 'prices')}"
        assert CLIENT.post(url, json=example).status_code == 200
    page = CLIENT.get(f"http://{address}/docs")
    assert "/v2/models/{model}/infer" in page.text
    for text in (page.text, CLIENT.get(f"http://{address}/").text):
        assert "http://" not in text.replace("http://127.0.0.1:8080", "").replace(
            "http://www.w3.org/2000/svg", ""
        )
        assert "https://" not in text and "src=" not in text


def test_unknown_addresses_are_json_too(address):
    paths = ("/nothing", "/v2/models/none", "/v2/models/../../etc/passwd", "/docs/")
    for path in paths:
        answer = CLIENT.get(f"http://{address}{path}")
        assert answer.status_code == 404 and "error" in answer.json()
    wrong = CLIENT.get(f"http://{address}/v2/models/net/infer")
    assert wrong.status_code == 405 and wrong.headers["allow"] == "POST"
    both = CLIENT.delete(f"http://{address}/v2/health/live")
    assert both.status_code == 405 and both.headers["allow"] == "GET, HEAD"


def test_models_must_be_such_as_can_be_served(served_models):
    with pytest.raises(ParameterError, match="empty"):
        app({})
    with pytest.raises(ParameterError, match="name"):
        app({"a/b": served_models["net"]})
    mc = served_models["net"]._mc
    with pytest.raises(InputTypeError, match="NetworkModel"):
        app({"a": mc})
    with pytest.raises(InputTypeError, match="FrameModel"):
        app({"a": object()})
    rowwise = caveat.MCDropout(mc.model, shared=False)
    with pytest.raises(ParameterError, match="shared"):
        NetworkModel(rowwise, [[0.0, 0.0, 0.0]])


def test_without_a_life_nothing_is_answered_and_nothing_hangs(served_models):
    import asyncio

    async def asked():
        transport = httpx.ASGITransport(app({"net": served_models["net"]}))
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as own:
            ready = await own.get("/v2/health/ready")
            body = {"rows": [[0, 0, 0]], "n_draws": 8}
            return ready, await own.post("/v1/models/net/predict", json=body)

    ready, answer = asyncio.run(asked())
    assert ready.status_code == answer.status_code == 503


def test_head_is_answered_where_balancers_ask(address):
    for path in ("/", "/v2/health/live", "/v2/health/ready"):
        found = CLIENT.head(f"http://{address}{path}")
        assert found.status_code == 200 and not found.content


@pytest.mark.parametrize("row", [["1", 2, 3], [True, 2, 3], [[1], 2, 3], [{}, 2, 3]])
def test_rows_of_a_network_hold_numbers_only(address, row):
    found = ask(address, "net", {"rows": [[1, 2, 3], row]})
    assert found.status_code == 400, found.text
    assert "numbers" in found.json()["error"]


@pytest.mark.parametrize("level", [0, 1, 95, "0.9", True])
def test_a_level_lies_between_0_and_1(address, level):
    found = ask(address, "net", {"rows": [[1, 2, 3]], "level": level})
    assert "above 0 and below 1" in found.json()["error"]


def test_a_constant_that_json_lacks_is_named_once(address):
    raw = b'{"rows": [[NaN, 1, 2]]}'
    found = CLIENT.post(f"http://{address}/v1/models/net/predict", content=raw)
    assert found.json()["error"] == "The body must be JSON, which has no NaN."
