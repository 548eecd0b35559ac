"""docs/serving.md: its blocks and its request, against a server that runs."""

import json
import re
import shutil
import subprocess

import pytest

import caveat
from tests.pages import ROOT, run_page

triton = pytest.importorskip("tritonclient.http", reason="the extra [dev] brings it")


def test_the_page_runs(address, served_models, tmp_path, monkeypatch):
    """Only the port is another."""
    monkeypatch.chdir(tmp_path)
    caveat.save(served_models["prices"], "prices.caveat")
    client = triton.InferenceServerClient

    def connected(given):
        assert given == "127.0.0.1:8080"
        return client(address)

    monkeypatch.setattr(triton, "InferenceServerClient", connected)
    names = run_page("docs/serving.md")
    assert names["found"].as_numpy("mean").shape == (2,)
    names["client"].close()
    assert callable(names["web"])


def test_the_request_is_answered(address):
    command = re.search(
        r"curl -s .*?\n```", (ROOT / "docs/serving.md").read_text(), re.S
    )
    said = command[0].removesuffix("```").replace("localhost:8080", address)
    if shutil.which("curl") is None:
        pytest.skip("there is no curl")
    done = subprocess.run(
        ["sh", "-c", said], capture_output=True, text=True, check=True
    )
    (found,) = json.loads(done.stdout)["predictions"]
    assert found["n_draws"] == 200 and found["lower"] < found["mean"]
