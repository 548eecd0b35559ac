"""`caveat serve` as a process: it starts, and stops without losing what it accepted."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

import caveat
from caveat.errors import DataError, ParameterError
from caveat.serve import run
from caveat.serve.running import milliseconds
from tests.serve.running import ROW


def test_a_latency_budget_has_a_unit():
    assert milliseconds("50ms") == milliseconds("0.05s") == milliseconds("50") == 0.05
    for text in ("", "ms", "-5ms", "0ms", "5m", "nan", "1e9"):
        with pytest.raises(ParameterError, match="latency budget"):
            milliseconds(text)


def test_what_cannot_be_served_is_said_before_anything_listens(tmp_path, served_models):
    with pytest.raises(DataError):
        run([tmp_path / "none.caveat"])
    first, second = tmp_path / "m.caveat", tmp_path / "o" / "m.caveat"
    second.parent.mkdir()
    for path in (first, second):
        caveat.save(served_models["matrix"], path)
    with pytest.raises(ParameterError, match="'m'"):
        run([first, second])
    with pytest.raises(DataError, match="token"):
        run([first], token_file=tmp_path / "none")


def started(path, *more):
    """A process, and the port it listens on."""
    command = [sys.executable, "-m", "caveat", "serve", str(path), "--port", "0"]
    own = subprocess.Popen(
        [*command, *more], stderr=subprocess.PIPE, text=True, env=os.environ.copy()
    )
    for line in own.stderr:
        found = re.search(r"running on http://127\.0\.0\.1:(\d+)", line)
        if found:
            return own, int(found[1])
    raise AssertionError(f"it ended with {own.wait()}")


def slow_request(port, seed, answers, sent):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    body = {"rows": [ROW] * 100, "n_draws": 500, "seed": seed}
    connection.connect()
    connection.request("POST", "/v1/models/prices/predict", json.dumps(body))
    sent.append(time.monotonic())
    answer = connection.getresponse()
    answers.append((answer.status, len(json.loads(answer.read())["predictions"])))
    connection.close()


def test_sigterm_under_load_loses_nothing_that_was_accepted(tmp_path, served_models):
    path = tmp_path / "prices.caveat"
    caveat.save(served_models["prices"], path)
    process, port = started(path, "--latency-budget", "50ms", "--max-rows", "500")
    answers, sent = [], []
    try:
        threads = [
            threading.Thread(target=slow_request, args=(port, seed, answers, sent))
            for seed in range(1, 9)  # other seeds: one after the other
        ]
        for thread in threads:
            thread.start()
        while len(sent) < len(threads):
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        waited = len(answers)
        for thread in threads:
            thread.join(60)
        process.wait(30)
    finally:
        process.kill()
        process.stderr.close()
    assert waited < len(threads), "they were too quick to tell"
    assert answers == [(200, 100)] * len(threads)
    assert process.returncode == 0
    with pytest.raises(OSError):
        http.client.HTTPConnection("127.0.0.1", port, timeout=2).request("GET", "/")


@pytest.mark.parametrize("host", ["127.0.0.1", "nowhere.invalid"])
def test_an_address_that_cannot_be_had_is_said_first(host, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ParameterError, match="cannot listen"):
            run([tmp_path / "none.caveat"], host=host, port=port)
