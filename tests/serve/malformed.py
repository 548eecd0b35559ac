"""Requests that no server should be sent: by the thousand, from a seed."""

import json
import random
import struct
from copy import deepcopy

from tests.serve.running import ROW

HEADER = "Inference-Header-Content-Length"
SIZE = "binary_data_size"
STRANGE = [
    *(None, True, False, "", "x", "\ud800", "NaN", -1, 0, 2**31, 2**63, 2**64, 10**400),
    *(1e308, -1e308, 1.5, [], {}, [[]], [None], {"a": 1}, [1, [2]], "\x00", "é" * 500),
    *([[[[[[[[[[1]]]]]]]]]], [1e308] * 3, ["a", 1, None], -(10**30)),
]
RAW = [
    *(b"", b"{", b"[]", b"null", b"1e999", b'"', b"\xff\xfe", b"{}", b'{"a":1,"a":2}'),
    *(b"[" * 100_000, b'{"a":' * 50_000, b'{"rows": [NaN]}', b'{"rows": [Infinity]}'),
    *(b'{"rows": [[-Infinity,0,0]]}', b'{"rows": [[1e999,0,0]]}', b"\x00" * 100),
    b'{"rows": [[' + b"9" * 5000 + b",0,0]]}",
    b'{"rows": [[' + b"9" * 400 + b",0,0]]}",
    b'{"rows":' + b"[" * 900 + b"]" * 900 + b"}",
    b'{"inputs": [{"name":"x","shape":[1,3],"datatype":"FP32","data":[NaN,0,0]}]}',
]
MODELS = ["prices", "kinds", "matrix", "net", "numbers", "nobody", "..%2f..%2fetc", "é"]
ROUTES = ["/v2/models/{}/infer", "/v1/models/{}/predict", "/v2/models/{}/infer_stream"]


def good_infer(draw):
    plain = {"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [0.1, 0.2, 0.3]}
    table = [
        {"name": "size", "shape": [1], "datatype": "FP64", "data": [0.5]},
        {"name": "kind", "shape": [1], "datatype": "BYTES", "data": ["a"]},
        {"name": "flag", "shape": [1], "datatype": "BOOL", "data": [True]},
    ]
    found = {"inputs": draw.choice([[plain], table]), "parameters": {"n_draws": 8}}
    found["outputs"] = [{"name": draw.choice(["mean", "probs", "n_draws", "label"])}]
    return found


def good_rows(draw):
    rows = draw.choice([[ROW], [[0.1, 0.2, 0.3]], [[0.1, 0.2]]])
    return {"rows": rows, "n_draws": 8, "seed": 1, "level": 0.9}


def spoiled(draw, value):
    """Some place in a structure gets something strange, goes, or comes twice."""
    value = json.loads(json.dumps(value))
    for _ in range(draw.choice([1, 1, 2, 3])):
        spots = list(places(value))
        box, key = draw.choice(spots)
        way = draw.random()
        if way < 0.7:
            box[key] = deepcopy(draw.choice(STRANGE))
        elif way < 0.85:
            del box[key]
        elif isinstance(box, list):
            box.append(deepcopy(box[key]))
        else:
            box[str(key) + "2"] = deepcopy(box[key])
        if not list(places(value)):
            break
    return value


def places(value):
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(items):
        yield value, key
        if isinstance(inner, dict | list):
            yield from places(inner)


def binary(draw):
    """The binary extension with wrong sizes, types, shapes and ends."""
    kind = draw.choice(["FP32", "FP64", "BOOL", "BYTES", "INT8", "UINT64", "BF16", "?"])
    tail = draw.choice(
        [
            struct.pack("<3f", 1.0, float("nan"), float("inf")),
            struct.pack("<I", 2**32 - 1) + b"abc",
            struct.pack("<I", 1) + b"\xff",
            bytes(draw.randrange(256) for _ in range(draw.randrange(40))),
            b"",
        ]
    )
    size = draw.choice([len(tail), len(tail) - 1, len(tail) + 1, -1, 2**70, None, "3"])
    large = 2**31 - 1
    shapes = [
        [1, 3],
        [3],
        [0, 3],
        [large, large],
        [0, large, large, 4],
        [-1, 3],
        [],
        "x",
    ]
    shape = draw.choice(shapes)
    own = {"name": draw.choice(["x", "size", "kind"]), "shape": shape, "datatype": kind}
    head = json.dumps({"inputs": [own | {"parameters": {SIZE: size}}]}).encode()
    told = draw.choice([len(head), len(head) - 1, 10**9, "x", "", -5])
    return head + tail, {HEADER: str(told)}


def requests(seed, number):
    """(path, body, headers), ``number`` of them."""
    draw = random.Random(seed)
    for _ in range(number):
        path = draw.choice(ROUTES).format(draw.choice(MODELS))
        way, headers = draw.random(), {}
        if way < 0.15:
            body = draw.choice(RAW)
        elif way < 0.35:
            body, headers = binary(draw)
        else:
            good = good_infer if "infer" in path and draw.random() < 0.7 else good_rows
            body = json.dumps(spoiled(draw, good(draw))).encode()
            if draw.random() < 0.1:
                body = body[: draw.randrange(len(body) + 1)]
        if draw.random() < 0.03:
            headers["content-encoding"] = "gzip"
        yield path, body, headers
