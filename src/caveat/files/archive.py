"""The container: one zip of a JSON member and one of tensors, neither compressed.

Everything is checked before anything is read: two members of known names, stored as
they are (so that no member is larger than the file), with digests of both. What is read
is parsed by JSON and safetensors; nothing in it is run.
"""

import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from safetensors import SafetensorError
from safetensors.torch import load as tensors_of
from safetensors.torch import save as bytes_of
from torch import Tensor

from caveat._drafts import whole_file
from caveat._version import __version__
from caveat.errors import DataError, ParameterError

FORMAT = 1
DESCRIPTION, TENSORS = "caveat.json", "tensors.safetensors"
_LONGEST_JSON = 1 << 28  # bytes; parsing takes many times as much memory
_WHEN = (1980, 1, 1, 0, 0, 0)  # the same model is the same bytes


class Archive(NamedTuple):
    """What a file holds.

    Attributes
    ----------
    kind : str
        Of the object.
    content : object
        Plain values, in which tensors are named.
    tensors : dict of str to Tensor
    """

    kind: str
    content: Any
    tensors: dict[str, Tensor]


def write_archive(path: Any, archive: Archive) -> None:
    """Write a file, which appears only when it is complete.

    Parameters
    ----------
    path : str or Path
        Where.
    archive : Archive
        What it is to hold.
    """
    packed = {n: t.detach().cpu().contiguous() for n, t in archive.tensors.items()}
    numbers = bytes_of(packed)
    description = {
        "format": FORMAT,
        "version": __version__,
        "kind": archive.kind,
        "tensors": {"bytes": len(numbers), "sha256": _digest(numbers)},
        "content": archive.content,
    }
    text = json.dumps(description, indent=1, allow_nan=False).encode()
    with whole_file(path) as draft, zipfile.ZipFile(draft, "w") as file:
        for name, data in ((DESCRIPTION, text), (TENSORS, numbers)):
            info = zipfile.ZipInfo(name, _WHEN)
            info.external_attr = 0o644 << 16
            file.writestr(info, data, zipfile.ZIP_STORED)
        file.comment = _digest(text).encode()


def read_archive(path: Any) -> Archive:
    """Read a file that :func:`write_archive` wrote.

    Parameters
    ----------
    path : str or Path
        Where it is.

    Returns
    -------
    Archive
        Whatever is wrong with the file is a :class:`~caveat.errors.DataError`.
    """
    where = Path(path).expanduser()
    text, numbers = _members(where)
    description = _description(where, text)
    found = description["tensors"]
    if found != {"bytes": len(numbers), "sha256": _digest(numbers)}:
        _damaged(where, f"{TENSORS} is not what {DESCRIPTION} says it is")
    try:
        tensors = tensors_of(numbers)
    except (SafetensorError, ValueError, KeyError, RuntimeError) as error:
        _damaged(where, f"{TENSORS} cannot be read ({error})", error)
    return Archive(description["kind"], description["content"], tensors)


# Files that people have instead, by their endings, and what to do.
_OTHERS = (
    (
        (".onnx", ".pt2"),
        " It is an exported graph: run it with ONNX Runtime or torch.export.load. "
        "Caveat takes the module or estimator that it was made from; save that with "
        "caveat.save.",
    ),
    (
        (".pt", ".pth", ".ckpt", ".bin", ".safetensors"),
        " It is of torch: load its weights into the module, and give that to "
        "caveat.MCDropout.",
    ),
    (
        (".pkl", ".pickle", ".joblib"),
        " Pickles run code when they are read: load it where it is trusted, and write "
        "the estimator with caveat.save.",
    ),
)


def _members(where: Path) -> tuple[bytes, bytes]:
    try:
        size = where.stat().st_size
        with zipfile.ZipFile(where) as file:
            _check_members(where, file.infolist(), size)
            text, numbers = file.read(DESCRIPTION), file.read(TENSORS)
            comment = file.comment
    except FileNotFoundError as error:
        raise DataError(f"{where} does not exist; expected a model file.") from error
    except OSError as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{where} cannot be read: {error}.") from error
    except (
        *(zipfile.BadZipFile, EOFError, ValueError, KeyError),
        *(NotImplementedError, RuntimeError, OverflowError, MemoryError),
    ) as error:
        _damaged(where, f"it is not a zip file that can be read ({error})", error)
    if comment != _digest(text).encode():
        _damaged(where, f"{DESCRIPTION} was changed after it was written")
    return text, numbers


def _check_members(where: Path, members: list[zipfile.ZipInfo], size: int) -> None:
    """Names, number and sizes, before a byte of them is read."""
    names = sorted(member.filename for member in members)
    if names != sorted((DESCRIPTION, TENSORS)):
        _damaged(
            where,
            f"it must hold {DESCRIPTION} and {TENSORS} and nothing else, not "
            f"{', '.join(map(repr, names[:5])) or 'nothing'}",
        )
    for member in members:
        if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1:
            _damaged(
                where,
                f"{member.filename} is compressed or encrypted, which "
                f"caveat.save never does; do not unpack and pack model files",
            )
        if member.file_size != member.compress_size or member.file_size < 0:
            _damaged(where, f"the sizes of {member.filename} contradict each other")
    if sum(member.file_size for member in members) > size:
        _damaged(where, f"its members are larger than its {size} bytes")
    if max(m.file_size for m in members if m.filename == DESCRIPTION) > _LONGEST_JSON:
        _damaged(where, f"{DESCRIPTION} is longer than {_LONGEST_JSON} bytes")


def _description(where: Path, text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(
            text, parse_constant=_no_constant, object_pairs_hook=_no_twins
        )
    except (ValueError, RecursionError, MemoryError) as error:
        _damaged(where, f"{DESCRIPTION} is not JSON that can be read ({error})", error)
    wanted = {"format", "version", "kind", "tensors", "content"}
    if not isinstance(found, dict) or "format" not in found:
        _damaged(where, f"{DESCRIPTION} does not describe a model")
    if type(found["format"]) is not int or found["format"] != FORMAT:
        raise DataError(
            f"{where} must be of format {FORMAT}. Got format {found['format']!r}, "
            f"written by caveat {found.get('version')!r}; this is caveat "
            f"{__version__}: install a newer one."
        )
    if set(found) != wanted or not isinstance(found["kind"], str):
        _damaged(where, f"{DESCRIPTION} does not describe a model")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ParameterError(f"{name} is no JSON")


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ParameterError("a name stands twice in one object")
    return found


def _damaged(where: Path, why: str, cause: BaseException | None = None) -> NoReturn:
    remedy = next((own for ends, own in _OTHERS if where.suffix in ends), "")
    raise DataError(
        f"{where} is not a whole model file of caveat.save: {why}.{remedy}"
    ) from cause


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
