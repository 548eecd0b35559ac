"""Tokens."""

import pytest

from caveat.errors import DataError
from caveat.serve.tokens import is_allowed, read_tokens
from tests.serve.running import CLIENT, serving

TOKEN = "0123456789abcdef" * 2


def test_tokens_are_read_from_a_file(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(f"# ours\n\n {TOKEN} \nanother-token-of-ours\n")
    assert read_tokens(path) == (TOKEN, "another-token-of-ours")
    for text in ("", "# none\n", "short\n", "é" * 20):
        path.write_text(text)
        with pytest.raises(DataError):
            read_tokens(path)
    with pytest.raises(DataError):
        read_tokens(tmp_path / "nothing")


@pytest.mark.parametrize("header", [f"Bearer {TOKEN}", f"bearer  {TOKEN} "])
def test_a_token_opens(header):
    assert is_allowed(header, [TOKEN, "b" * 32])


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer ", TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN}x", "é é"],
)
def test_anything_else_does_not(header):
    assert not is_allowed(header, [TOKEN])


def test_all_but_health_and_the_page_ask_for_one(served_models):
    with serving({"net": served_models["net"]}, tokens=[TOKEN]) as address:

        def code(path, **headers):
            return CLIENT.get(f"http://{address}{path}", headers=headers).status_code

        for path in ("/", "/v2/health/live", "/v2/health/ready"):
            assert code(path) == 200
        closed = ("/v2", "/v2/models/net", "/metrics", "/docs", "/openapi.json", "/x")
        for path in (*closed, "/v1/models", "//", "/v2/health/live/"):
            assert code(path) in (401, 307) and code(path) != 200
        for path in closed[:-1]:
            assert code(path, authorization=f"Bearer {TOKEN}") == 200
        assert code("/v2", authorization="Bearer wrong") == 401
        url = f"http://{address}/v1/models/net/predict"
        own = {"rows": [[0, 0, 0]], "n_draws": 8}
        assert CLIENT.post(url, json=own).status_code == 401
        good = {"authorization": f"Bearer {TOKEN}"}
        assert CLIENT.post(url, json=own, headers=good).status_code == 200
