"""A machine without data, a server on this machine, and the real data folder."""

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

FOLDER = os.environ.get("CAVEAT_DATA")


@dataclass
class Server:
    """Files served from ``root`` at ``url``; ``asked`` lists what was asked for.

    A file whose name ends in ``.cut`` is announced whole and sent in half.
    """

    root: Path
    url: str = ""
    asked: list[str] = field(default_factory=list)

    def put(self, path: str, content: bytes) -> str:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(content)
        return f"{self.url}/{path}"


class _Handler(SimpleHTTPRequestHandler):
    def __init__(self, server: Server, *args: object) -> None:
        self.log = server.asked
        super().__init__(*args, directory=str(server.root))  # type: ignore[misc,arg-type]

    def do_GET(self) -> None:
        self.log.append(self.path)
        if not self.path.endswith(".cut"):
            return super().do_GET()
        content = Path(self.translate_path(self.path)).read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2])

    def log_message(self, *_: object) -> None:
        """Not into the output of the tests."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    served = Server(tmp_path / "server")
    served.root.mkdir()
    http = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, served))
    served.url = f"http://127.0.0.1:{http.server_address[1]}"
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    yield served
    http.shutdown()
    http.server_close()
    thread.join()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any data: the empty cache, and no way to the net but ours."""
    for name in ("CAVEAT_DATA", "CAVEAT_MIRROR"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    folder = tmp_path / "cache"
    monkeypatch.setenv("CAVEAT_CACHE", str(folder))
    return folder


@pytest.fixture
def mirror(cache: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A machine without data whose downloads all go to the server."""
    monkeypatch.setenv("CAVEAT_MIRROR", server.url)
    return server


@pytest.fixture
def real_data() -> Path:
    """The folder with the papers' data."""
    if not FOLDER:
        pytest.skip("needs the papers' data: set CAVEAT_DATA to their folder")
    return Path(FOLDER)


def write(folder: Path, path: str, content: bytes) -> Path:
    """Put a file where it belongs in a data folder."""
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    return target
