"""Files that are damaged, forged or from another time: an error, and nothing else."""

import hashlib
import io
import json
import random
import shutil
import struct
import zipfile

import numpy as np
import pytest
import torch
from safetensors.torch import save as bytes_of

import caveat
from caveat.errors import DataError
from caveat.files.archive import DESCRIPTION, TENSORS, Archive, write_archive
from tests.estimators.dropout_data import quick_regressor, rows

X, Y = rows()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A small model file and its predictions."""
    path = tmp_path_factory.mktemp("model") / "m.caveat"
    model = quick_regressor(hidden=(2,), n_draws=4).fit(X, Y)
    caveat.save(model, path)
    return path, model.predict(X[:2])


def members(path):
    with zipfile.ZipFile(path) as file:
        return file.read(DESCRIPTION), file.read(TENSORS)


def forged(path, text, numbers, *, more=(), kind=zipfile.ZIP_STORED):
    """A file with all its digests right."""
    if isinstance(text, dict):
        digest = hashlib.sha256(numbers).hexdigest()
        text["tensors"] = {"bytes": len(numbers), "sha256": digest}
        text = json.dumps(text).encode()
    with zipfile.ZipFile(path, "w", kind) as file:
        for name, data in ((DESCRIPTION, text), (TENSORS, numbers), *more):
            file.writestr(name, data)
        file.comment = hashlib.sha256(text).hexdigest().encode()
    return path


def refused(path, match):
    with pytest.raises(DataError, match=match):
        caveat.load(path)


def mutated(data: bytes, rng: random.Random) -> bytes:
    """Bits flipped, bytes changed, cut, doubled or moved."""
    found, way = bytearray(data), rng.randrange(7)
    at = rng.randrange(len(found))
    if way == 0:
        found[at] ^= 1 << rng.randrange(8)
    elif way == 1:
        found[at] = rng.randrange(256)
    elif way == 2:
        del found[at:]
    elif way == 3:
        del found[at : at + rng.randrange(1, 9)]
    elif way == 4:
        found[at:at] = rng.randbytes(rng.randrange(1, 9))
    elif way == 5:
        stop = at + rng.randrange(1, 65)
        found[at:stop] = rng.randbytes(len(found[at:stop]))
    else:  # the directory of the archive, where sizes and places stand
        at = max(0, len(found) - rng.randrange(1, 250))
        found[at : at + 4] = struct.pack("<I", rng.choice([0, 1, 2**31, 2**32 - 1]))
    return bytes(found)


def test_2000_mutated_files(whole, tmp_path):
    path, expected = whole
    data, rng, loaded = path.read_bytes(), random.Random(0), 0
    for _ in range(2000):
        (tmp_path / "m").write_bytes(mutated(data, rng))
        try:
            model = caveat.load(tmp_path / "m")
        except DataError:
            continue
        loaded += 1  # a date, or a byte that nobody reads
        assert np.array_equal(model.predict(X[:2]), expected)
    assert loaded < 400


def values_of(content, path=()):
    """Places of all values of some JSON."""
    yield path
    if isinstance(content, dict):
        for key, value in content.items():
            yield from values_of(value, (*path, key))
    elif isinstance(content, list):
        for key, value in enumerate(content):
            yield from values_of(value, (*path, key))


STRANGE = [
    *(None, True, -1, 0, 10**30, 1e300, "", "x", [], {}, [[]], {"kind": "Popen"}),
    *({"float": "nan"}, {"float": "x"}, {"tuple": 3}, {"pairs": [[[], 1]]}),
    *({"tensor": "no"}, {"array": "no", "transposed": True}),
    {"values": ["a"], "dtype": "<U999999999", "shape": [1]},
    {"values": [1], "dtype": "O", "shape": [10**12]},
    {"kind": "Ridge", "fields": {}},
    {"kind": "Scaling", "fields": {"x_mean": 1, "x_std": 1, "y_mean": 1, "y_std": 1}},
]


def test_forged_descriptions(whole, tmp_path):
    """With digests that are right: an error, or a model that still answers as it did.

    What a value says is the writer's business; what comes back must have passed its
    trial, so that its predictions are those of the file.
    """
    path, _ = whole
    text, numbers = members(path)
    places = list(values_of(json.loads(text)["content"]))
    rng, loaded = random.Random(0), 0
    for number in range(400):
        description = json.loads(text)
        place = places[number % len(places)] if number < len(places) else None
        place = rng.choice(places[1:]) if place in (None, ()) else place
        inner = description["content"]
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = rng.choice(STRANGE)
        forged(tmp_path / "m", description, numbers)
        try:
            caveat.load(tmp_path / "m")
        except DataError:
            continue
        loaded += 1
    assert loaded < 200


def test_a_newer_format(whole, tmp_path):
    text, numbers = members(whole[0])
    later = json.loads(text) | {"format": 2, "version": "9.1"}
    refused(forged(tmp_path / "m", later, numbers), r"of format 1(.|\n)*'9\.1'")
    refused(
        forged(tmp_path / "m", json.loads(text) | {"format": True}, numbers), "True"
    )


def test_cut_and_empty_files(whole, tmp_path):
    data = whole[0].read_bytes()
    for size in (0, 10, len(data) // 2, len(data) - 1):
        (tmp_path / "m").write_bytes(data[:size])
        refused(tmp_path / "m", "not a whole model file")
    refused(tmp_path / "none", "does not exist")
    refused(tmp_path, "cannot be read")


def test_a_member_too_many_outside_or_twice(whole, tmp_path):
    text, numbers = members(whole[0])
    for name in ("../evil", "/etc/passwd", "more.json"):
        refused(
            forged(tmp_path / "m", text, numbers, more=[(name, b"")]), "nothing else"
        )
    with pytest.warns(UserWarning, match="Duplicate"):
        forged(tmp_path / "m", text, numbers, more=[(DESCRIPTION, b"{}")])
    refused(tmp_path / "m", "nothing else")
    with zipfile.ZipFile(tmp_path / "m", "w") as file:
        file.writestr(DESCRIPTION, text)
    refused(tmp_path / "m", "nothing else")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m"]


def test_a_zip_bomb_is_not_unpacked(whole, tmp_path):
    text, _ = members(whole[0])
    bomb = bytes(50_000_000)
    forged(tmp_path / "m", text, bomb, kind=zipfile.ZIP_DEFLATED)
    assert (tmp_path / "m").stat().st_size < 200_000
    refused(tmp_path / "m", "is compressed")


def test_sizes_that_lie(whole, tmp_path):
    """The directory says that a member is as large as the file, and they overlap."""
    data = bytearray(whole[0].read_bytes())
    at = data.rfind(b"PK\x01\x02")
    struct.pack_into("<II", data, at + 20, len(data) - 1, len(data) - 1)
    (tmp_path / "m").write_bytes(data)
    refused(tmp_path / "m", "larger than its")
    struct.pack_into("<II", data, at + 20, 3, 4)
    (tmp_path / "m").write_bytes(data)
    refused(tmp_path / "m", "contradict")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"[" * 200_000, "cannot|can be read"),
        (b'{"format": 1, "format": 1}', "twice"),
        (b'{"format": NaN}', "NaN"),
        (b"[]", "does not describe"),
        (b'{"format": 1}', "does not describe"),
        (b"\xff\xfe", "JSON"),
        (b'{"format": ' + b"9" * 5000 + b"}", "JSON"),
    ],
    ids=["deep", "twins", "nan", "list", "poor", "bytes", "long number"],
)
def test_json_that_is_none_of_ours(text, why, whole, tmp_path):
    _, numbers = members(whole[0])
    refused(forged(tmp_path / "m", text, numbers), why)


def test_tensors_that_do_not_fit(whole, tmp_path):
    text, numbers = members(whole[0])
    (tmp_path / "m").write_bytes(whole[0].read_bytes())
    from safetensors.torch import load as tensors_of

    tensors = tensors_of(numbers)
    name = next(n for n in tensors if "networks" in n and tensors[n].ndim == 2)
    for wrong in (
        torch.zeros(3, 3),
        tensors[name].to(torch.int64),
        torch.full_like(tensors[name], torch.nan),
        torch.zeros_like(tensors[name]),
    ):
        other = bytes_of(tensors | {name: wrong})
        refused(forged(tmp_path / "m", json.loads(text), other), "damaged, or was not")
    refused(forged(tmp_path / "m", json.loads(text), b"junk"), "cannot be read")
    refused(forged(tmp_path / "m", text, numbers + b"x"), "is not what")


def test_nothing_in_a_file_is_run(whole, tmp_path):
    text, numbers = members(whole[0])
    for kind in ("os.system", "Popen", "builtins.eval", "__class__"):
        evil = json.loads(text)
        evil["content"] = {"kind": kind, "fields": {"args": "touch evil"}}
        refused(forged(tmp_path / "m", evil, numbers), "damaged, or was not")
        refused(forged(tmp_path / "m", evil | {"kind": kind}, numbers), "damaged")
    inner = json.loads(text) | {"kind": "Scaling"}
    inner["content"] = {"kind": "Prior", "fields": {"lengthscale": 1.0}}
    refused(forged(tmp_path / "m", inner, numbers), "damaged")


def test_a_pickle_is_not_read(tmp_path):
    buffer = io.BytesIO()
    torch.save({"a": torch.ones(1)}, buffer)
    (tmp_path / "m").write_bytes(buffer.getvalue())
    refused(tmp_path / "m", "not a whole model file")


def test_an_archive_is_moved_and_linked(whole, tmp_path):
    shutil.copy(whole[0], tmp_path / "copy")
    (tmp_path / "link").symlink_to(tmp_path / "copy")
    assert np.array_equal(caveat.load(tmp_path / "link").predict(X[:2]), whole[1])
    write_archive(tmp_path / "link", Archive("network", {}, {}))
    assert (tmp_path / "link").is_symlink()
    refused(tmp_path / "link", "damaged")


def test_settings_of_a_network_are_checked_before_it_is_filled(tmp_path):
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.5))
    caveat.save(caveat.MCDropout(net, seed=1), tmp_path / "m")
    text, numbers = members(tmp_path / "m")
    for wrong in (None, {"pairs": []}, {"pairs": [["seed", "x"]]}):
        evil = json.loads(text)
        evil["content"]["pairs"][0][1] = wrong
        forged(tmp_path / "m", evil, numbers)
        other = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.5))
        before = other[0].weight.clone()
        with pytest.raises(DataError, match="damaged, or was not"):
            caveat.load(tmp_path / "m", model=other)
        assert torch.equal(other[0].weight, before)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("m.onnx", "ONNX Runtime"), ("m.pt", "MCDropout"), ("m.pkl", "caveat.save")],
)
def test_files_of_other_kinds_are_told_apart(tmp_path, name, remedy):
    (tmp_path / name).write_bytes(b"something else")
    with pytest.raises(DataError, match=remedy):
        caveat.load(tmp_path / name)
