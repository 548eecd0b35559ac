"""Files are found, downloaded and checked; and failures say what to do."""

import gzip
import hashlib
import logging
import math
from pathlib import Path
from typing import ClassVar

import pooch
import pytest

from caveat.data import storage
from caveat.data.storage import DataFile, Dataset, Edition
from caveat.errors import CaveatError, DataError
from tests.data.conftest import Server, write

CONTENT = b"1 2 3\n" * 5000
MD5 = f"md5:{hashlib.md5(CONTENT).hexdigest()}"
PATH = "set/file.txt"


def test_own_folder_comes_before_the_cache(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert storage.find(PATH) is None
    cached = write(cache, PATH, b"cached")
    assert storage.find(PATH) == cached
    monkeypatch.setenv("CAVEAT_DATA", str(tmp_path / "own"))
    own = write(tmp_path / "own", PATH, b"own")
    assert storage.obtain(DataFile(PATH)) == own
    own.unlink()
    assert storage.obtain(DataFile(PATH)) == cached


def test_default_cache_is_that_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CAVEAT_CACHE", raising=False)
    assert storage.cache_folder() == pooch.os_cache("caveat")


def test_folder_that_is_none(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAVEAT_DATA", str(cache / "typo"))
    with pytest.raises(DataError, match=r"CAVEAT_DATA must name a folder.*typo"):
        storage.find(PATH)


def test_download_goes_to_the_cache_once(cache: Path, server: Server) -> None:
    file = DataFile(PATH, (server.put("a.txt", CONTENT),), MD5)
    for _ in range(2):
        assert storage.obtain(file) == cache / PATH
        assert (cache / PATH).read_bytes() == CONTENT
    assert server.asked == ["/a.txt"]


def test_second_address_if_the_first_fails(cache: Path, server: Server) -> None:
    urls = (f"{server.url}/absent", server.put("a.txt", CONTENT))
    assert storage.obtain(DataFile(PATH, urls, MD5)).read_bytes() == CONTENT
    assert server.asked == ["/absent", "/a.txt"]


def test_mirror_replaces_the_addresses(mirror: Server) -> None:
    mirror.put(PATH, CONTENT)
    storage.obtain(DataFile(PATH, ("http://127.0.0.1:9/other",)))
    assert mirror.asked == [f"/{PATH}"]


def assert_refused(file: DataFile, cache: Path, why: str) -> None:
    with pytest.raises(DataError, match=why) as caught:
        storage.obtain(file)
    message = str(caught.value)
    assert str(cache / file.path) in message and "CAVEAT_DATA" in message
    assert all(url in message for url in file.urls)
    assert not [path for path in cache.rglob("*") if path.is_file()]


def test_wrong_checksum_of_a_download(cache: Path, server: Server) -> None:
    url = server.put("a.txt", CONTENT + b"!")
    assert_refused(DataFile(PATH, (url,), MD5), cache, "hash of downloaded file")


def test_download_that_breaks_off(cache: Path, server: Server) -> None:
    url = server.put("a.txt.cut", CONTENT)
    assert_refused(DataFile(PATH, (url,)), cache, "could not be downloaded")


def test_address_that_is_gone(cache: Path, server: Server) -> None:
    url = f"{server.url}/gone"
    assert_refused(DataFile(PATH, (url,)), cache, "HTTPError: 404")


def test_no_connection(cache: Path, server: Server) -> None:
    nobody = "http://127.0.0.1:9/a.txt"  # the discard port: nothing listens
    assert_refused(DataFile(PATH, (nobody,)), cache, "ConnectionError")


def test_error_is_ours_and_an_os_error(cache: Path) -> None:
    with pytest.raises(OSError) as caught:
        storage.obtain(DataFile(PATH))
    assert isinstance(caught.value, CaveatError)


def test_file_without_address(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DataError, match="no address") as caught:
        storage.obtain(DataFile(PATH))
    assert f"set CAVEAT_DATA to a folder that holds {PATH}" in str(caught.value)
    monkeypatch.setenv("CAVEAT_DATA", str(tmp_path))
    with pytest.raises(DataError, match="no address") as caught:
        storage.obtain(DataFile(PATH))
    assert f"\n  {tmp_path / PATH}\n  {cache / PATH}" in str(caught.value)


def test_wrong_checksum_of_a_file_that_is_here(cache: Path) -> None:
    write(cache, PATH, CONTENT)
    assert storage.obtain(DataFile(PATH, (), MD5)).is_file()
    write(cache, PATH, CONTENT[:-1])
    with pytest.raises(DataError, match=f"(?s){PATH}.*{MD5}.*Replace it"):
        storage.obtain(DataFile(PATH, (), MD5))


def test_broken_gzip(cache: Path) -> None:
    whole = gzip.compress(CONTENT)
    assert storage.read_bytes(write(cache, "a.gz", whole)) == CONTENT
    for content in (whole[:-20], b"text", whole[:30] + b"\0" * 30 + whole[60:]):
        path = write(cache, "a.gz", content)
        with pytest.raises(DataError, match=str(path)):
            storage.read_bytes(path)


def test_choice_of_edition(cache: Path) -> None:
    own = Edition("own", (DataFile("a"), DataFile("b")))
    net = Edition("net", (DataFile("c", ("http://127.0.0.1:9/c",)),))
    both = Dataset("both", "", "", (own, net))
    assert storage.choose(both) is net
    write(cache, "a", b"")
    assert storage.choose(both) is net
    write(cache, "b", b"")
    assert storage.choose(both) is own
    (cache / "b").unlink()
    with pytest.raises(DataError, match=r"(?s)mine: b is not on this machine.*/b"):
        storage.choose(Dataset("mine", "", "", (own,)))


def test_pooch_is_quiet_and_its_level_restored(
    cache: Path, server: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    pooch.get_logger().setLevel(logging.INFO)
    storage.obtain(DataFile(PATH, (server.put("a.txt", CONTENT),)))
    assert pooch.get_logger().level == logging.INFO
    assert "SHA256" not in capfd.readouterr().err


class FakeBar:
    """Records what it was told."""

    made: ClassVar[list["FakeBar"]] = []

    def __init__(self, what: str, total: int | None, show: bool | None) -> None:
        self.what, self.total, self.show = what, total, show
        self.done, self.closed = 0, False
        self.made.append(self)

    def advance(self, by: int) -> None:
        self.done += by

    def __exit__(self, *_: object) -> None:
        self.closed = True


def test_progress_counts_kilobytes(
    cache: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "ProgressBar", FakeBar)
    monkeypatch.setattr(FakeBar, "made", [])
    file = DataFile(PATH, (server.put("a.txt", CONTENT),))
    storage.obtain(file, progress=True)
    bar = FakeBar.made[0]
    assert bar.what == "file.txt (kB)" and bar.show is True
    assert bar.done == bar.total == math.ceil(len(CONTENT) / 1024)
    assert all(bar.closed for bar in FakeBar.made)
