"""The Open Inference Protocol v2, with the client that everybody has."""

import json
import struct

import numpy as np
import pytest

from tests.serve.running import CLIENT, ROW, ask

triton = pytest.importorskip("tritonclient.http", reason="the extra [dev] brings it")


@pytest.fixture(scope="module")
def client(address):
    found = triton.InferenceServerClient(address)
    yield found
    found.close()


def tensor(name, values, kind):
    values = np.asarray(values, dtype=object if kind == "BYTES" else None)
    found = triton.InferInput(name, list(values.shape), kind)
    found.set_data_from_numpy(values)
    return found


def table_inputs(n=2):
    return [
        tensor("size", np.linspace(-1.0, 1.0, n), "FP64"),
        tensor("kind", ["a", "b"] * (n // 2), "BYTES"),
        tensor("flag", [True, False] * (n // 2), "BOOL"),
    ]


def test_server_and_models_say_what_they_are(client):
    assert client.is_server_live() and client.is_server_ready()
    assert client.is_model_ready("prices") and client.is_model_ready("prices", "1")
    assert not client.is_model_ready("nobody")
    assert client.get_server_metadata()["extensions"] == ["binary_tensor_data"]
    found = client.get_model_metadata("prices")
    kinds = {i["name"]: (i["datatype"], i["shape"]) for i in found["inputs"]}
    assert kinds == {
        "size": ("FP64", [-1]),
        "kind": ("BYTES", [-1]),
        "flag": ("BOOL", [-1]),
    }
    names = [o["name"] for o in found["outputs"]]
    assert names[:5] == ["mean", "std", "lower", "upper", "epistemic"]
    assert names[5:] == ["mc_error", "n_draws", "deferred"]
    classes = client.get_model_metadata("kinds")["outputs"]
    assert {"probs", "entropy", "mutual_information"} <= {o["name"] for o in classes}


def test_tables_are_answered_as_in_python(client, served_models):
    model = served_models["prices"]
    asked = {"n_draws": 48, "seed": 5, "level": 0.8}
    found = client.infer("prices", table_inputs(), parameters=asked)
    rows = {"size": [-1.0, 1.0], "kind": ["a", "b"], "flag": [True, False]}
    own = model.predict_table(rows, n_draws=48, seed=5, level=0.8)
    for name in ("mean", "std", "lower", "upper", "epistemic"):
        expected = own.column(f"y_{name}").to_numpy()
        np.testing.assert_allclose(found.as_numpy(name), expected, rtol=1e-6)
    assert found.as_numpy("n_draws").tolist() == [48, 48]
    assert found.as_numpy("deferred").tolist() == [False, False]
    other = client.infer("prices", table_inputs(), parameters={"n_draws": 48})
    assert abs(other.as_numpy("mean") - found.as_numpy("mean")).max() > 1e-6


def test_outputs_are_chosen_in_bytes_or_not(client):
    wanted = [
        triton.InferRequestedOutput("label"),
        triton.InferRequestedOutput("probs", binary_data=False),
    ]
    found = client.infer("kinds", table_inputs(), outputs=wanted, request_id="7")
    assert set(found.as_numpy("label").tolist()) <= {b"yes", b"no"}
    np.testing.assert_allclose(found.as_numpy("probs").sum(1), 1.0)
    assert found.as_numpy("entropy") is None
    assert found.get_response()["id"] == "7"


@pytest.mark.parametrize("kind", ["FP16", "FP32", "FP64", "INT8", "INT64", "UINT16"])
@pytest.mark.parametrize("binary", [True, False])
def test_numbers_of_all_kinds_give_the_same(client, kind, binary):
    x = np.array([[1, 0, 2], [3, 1, 0]])
    dtype = triton.triton_to_np_dtype(kind)
    own = triton.InferInput("x", [2, 3], kind)
    if kind == "FP16" and not binary:
        pytest.skip("the client sends FP16 in bytes only")
    own.set_data_from_numpy(x.astype(dtype), binary_data=binary)
    found = client.infer("numbers", [own], parameters={"n_draws": 16})
    plain = tensor("x", x.astype(np.float32), "FP32")
    same = client.infer("numbers", [plain], parameters={"n_draws": 16})
    assert (found.as_numpy("mean") == same.as_numpy("mean")).all()
    assert found.as_numpy("mean").shape == (2, 2)


def test_both_routes_and_the_network_agree(client, address, served_models):
    x = np.array([[0.1, 0.2, 0.3]], np.float32)
    found = client.infer("net", [tensor("x", x, "FP32")], parameters={"n_draws": 32})
    plain = ask(address, "net", {"rows": x.tolist(), "n_draws": 32}).json()
    probs = list(plain["predictions"][0]["probs"].values())
    np.testing.assert_allclose(found.as_numpy("probs")[0], probs, atol=1e-7)
    own = served_models["net"].predictive(x, 32, 0)
    np.testing.assert_allclose(own.probs[0].numpy(), probs, atol=1e-6)


def test_a_tolerance_is_kept_by_each_row(client):
    asked = {"tolerance": 0.02}
    x = tensor("x", np.array([[0.0, 0.0, 0.0], [9, -9, 9]], np.float32), "FP32")
    found = client.infer("numbers", [x], parameters=asked)
    error = found.as_numpy("mc_error") / found.as_numpy("std")
    assert (error <= 0.02).all()
    draws = found.as_numpy("n_draws")
    assert draws[1] > draws[0]
    alone = tensor("x", np.zeros((1, 3), np.float32), "FP32")
    same = client.infer("numbers", [alone], parameters=asked)
    np.testing.assert_allclose(
        same.as_numpy("mean")[0], found.as_numpy("mean")[0], atol=1e-6
    )


def test_what_is_wrong_is_said(client):
    wrong = {
        "nobody": table_inputs(),
        "net": [tensor("x", np.zeros((1, 4), np.float32), "FP32")],
        "prices": table_inputs()[:2],
    }
    for name, inputs in wrong.items():
        with pytest.raises(triton.InferenceServerException):
            client.infer(name, inputs)
    infinite = tensor("x", np.full((1, 3), np.inf, np.float32), "FP32")
    with pytest.raises(triton.InferenceServerException, match="finite"):
        client.infer("net", [infinite])
    with pytest.raises(triton.InferenceServerException, match="There is no parameter"):
        client.infer("prices", table_inputs(), parameters={"draws": 3})


def test_bytes_must_be_exactly_those_told(address):
    own = {"name": "x", "shape": [1, 3], "datatype": "FP32"}
    url, raw = f"http://{address}/v2/models/net/infer", struct.pack("<3f", 1, 2, 3)

    def sent(size, tail, header=None):
        plain = {"inputs": [own | {"parameters": {"binary_data_size": size}}]}
        head = json.dumps(plain).encode()
        name = "Inference-Header-Content-Length"
        headers = {name: str(len(head) if header is None else header)}
        return CLIENT.post(url, content=head + tail, headers=headers).status_code

    assert sent(12, raw) == 200
    for size, tail in ((12, raw[:-1]), (8, raw), (12, raw + b"x"), (-1, raw), (8, b"")):
        assert sent(size, tail) == 400
    for header in (5, 10**6, "x", "-1", "1" * 30):
        assert sent(12, raw, header) == 400


def test_rows_by_name(address):
    found = ask(address, "prices", {"rows": [ROW, ROW | {"kind": "b"}]}).json()
    first, second = found["predictions"]
    assert first["mean"] != second["mean"] and first["n_draws"] == 64
    wrong = ask(address, "prices", {"rows": [ROW, ROW | {"size": "many"}]})
    assert wrong.status_code == 400
    assert "row 2" in wrong.json()["error"] and "'size'" in wrong.json()["error"]
    gone = ask(address, "prices", {"rows": [ROW, {"size": 1.0, "kind": "a"}]})
    assert "Row 2: column 'flag' is not there" in gone.json()["error"]
    unseen = ask(address, "prices", {"rows": [ROW | {"kind": "z"}]}).json()["error"]
    assert "'z'" in unseen and "--unseen" not in unseen
    noted = ask(address, "prices", {"rows": [ROW | {"size": None}]}).json()
    assert "was missing" in noted["notes"][0]
    extra = ask(address, "prices", {"rows": [ROW | {"colour": 1}, ROW]}).json()
    assert extra["predictions"][0] == first
    assert extra["notes"] == ["'colour' is no column of the model"]
    wrong = ask(address, "prices", {"rows": [ROW | {"size": True}]}).json()["error"]
    assert wrong == "Row 1: column 'size' must hold numbers. Got True."


@pytest.mark.parametrize("place", ["request", "input", "output", "address"])
def test_what_nobody_reads_is_refused(address, place):
    """n_draws beside the parameters would be taken for heard."""
    more = {"n_draws": 8}
    own = {"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}
    body = {
        "inputs": [own | (more if place == "input" else {})],
        "outputs": [{"name": "probs"} | (more if place == "output" else {})],
    } | (more if place == "request" else {})
    url = f"http://{address}/v2/models/net/infer"
    url += "?n_draws=8" if place == "address" else ""
    found = CLIENT.post(url, json=body)
    assert found.status_code == 400, found.text
    assert "arameters" in found.json()["error"]


@pytest.mark.parametrize("kind", ["FP32", "BYTES"])
@pytest.mark.parametrize(
    "shape", [[0, *[2**31 - 1] * 7], [2**31 - 1] * 8, [2**31 - 1, 0]]
)
def test_shapes_of_nothing_are_not_larger_than_others(address, kind, shape):
    """Found by schemathesis: numpy refuses them, which was our fault then."""
    own = {"name": "x", "shape": shape, "datatype": kind, "data": []}
    url = f"http://{address}/v2/models/net/infer"
    found = CLIENT.post(url, json={"inputs": [own]})
    assert found.status_code == 400 and "at most" in found.json()["error"]
