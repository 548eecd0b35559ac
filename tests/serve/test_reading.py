"""Malformed requests: an error in words, never a fault, and right answers after."""

import http.client
import json
import socket

import numpy as np
import pytest

from caveat.serve.reading import read_json
from caveat.serve.refusing import RefusedError
from tests.serve.malformed import requests
from tests.serve.running import CLIENT, ROW, ask


@pytest.mark.parametrize(
    "raw",
    [
        *(b"", b"[]", b"nul", b"{1:2}", b'{"a": NaN}', b'{"a": -Infinity}', b"\xff"),
        *(b'{"a":1,"a":1}', b"[" * 10**6, b'{"a":' * 10**5, b'{"a":' + b"1" * 10**4),
        b'{"a": {"b": 1, "b": 2}}',
    ],
)
def test_json_is_read_strictly(raw):
    with pytest.raises(RefusedError) as caught:
        read_json(raw)
    assert len(str(caught.value)) <= 600


def test_json_that_is_well_formed_is_read():
    assert read_json(b'{"a": [1, "\\u00e9", null]}') == {"a": [1, "é", None]}


def sent(connection, path, body, headers):
    connection.request("POST", path, body, headers)
    answer = connection.getresponse()
    return answer.status, answer.read()


def fuzzed(address, seed, number):
    """Sends malformed requests; codes that came, and how often."""
    before = ask(address, "prices", {"rows": [ROW], "n_draws": 16}).json()
    codes = {}
    connection = http.client.HTTPConnection(address, timeout=20)
    for path, body, headers in requests(seed, number):
        path = path.encode("ascii", "ignore").decode()
        status, content = sent(connection, path, body, headers)
        codes[status] = codes.get(status, 0) + 1
        assert status < 500, (path, body[:500], headers, content)
        if status >= 400:
            error = json.loads(content)["error"]
            assert error and len(error) <= 600
    connection.close()
    after = ask(address, "prices", {"rows": [ROW], "n_draws": 16}).json()
    assert after == before
    return codes


def test_a_few_hundred_malformed_requests(address):
    codes = fuzzed(address, 0, 600)
    assert codes[400] > 300 and 404 in codes and 415 in codes


@pytest.mark.slow
def test_ten_thousand_malformed_requests(address):
    assert fuzzed(address, 1, 10_000)[400] > 5000


@pytest.mark.parametrize(
    "raw",
    [
        b"POST /v2/models/net/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x00\x01\x02\r\n\r\n",
        b"POST /v2/models/net/infer HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_bodies_that_end_early_harm_nobody(address, raw):
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), timeout=5) as own:
        own.sendall(raw)
        own.shutdown(socket.SHUT_WR)
        found = own.recv(1000)
    assert b" 500 " not in found
    assert ask(address, "prices", {"rows": [ROW]}).status_code == 200


def test_bodies_rows_and_draws_have_limits(served_models):
    from caveat.serve import Limits
    from tests.serve.running import serving

    limits = Limits(max_rows=5, max_draws=50, max_work=100, max_body=2000)
    with serving({"net": served_models["net"]}, limits) as address:

        def code(n, **more):
            rows = np.zeros((n, 3)).tolist()
            return ask(address, "net", {"rows": rows, **more}).status_code

        assert code(2, n_draws=50) == 200
        assert code(1) == 400  # the model's own 100 draws are too many
        assert code(6, n_draws=2) == code(1, n_draws=51) == 400
        assert code(3, n_draws=50) == 400  # rows times draws
        assert code(1000, n_draws=2) == 413
        url = f"http://{address}/v1/models/net/predict"
        pieces = (b" " * 500 for _ in range(10))  # without a length told
        assert CLIENT.post(url, content=pieces).status_code == 413
        assert code(5, tolerance=1e-9) == 200  # as many as are allowed
