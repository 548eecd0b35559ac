"""Connections: one write for an answer, and none that lasts for ever."""

import asyncio
import contextlib
import socket
import threading
import time
from contextlib import contextmanager

import pytest

from caveat.serve import app, connections
from caveat.serve.connections import GatheredWrites
from caveat.serve.running import server_of

GET = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n"


class Written:
    """A transport that remembers."""

    def __init__(self):
        self.pieces, self.is_closed = [], False

    def write(self, data):
        self.pieces.append(data)

    def close(self):
        self.is_closed = True

    def get_write_buffer_size(self):
        return 7


def test_what_a_turn_writes_goes_in_one_piece():
    async def written():
        own = Written()
        gathered = GatheredWrites(own, asyncio.get_running_loop())
        for piece in (b"head ", b"body", b""):
            gathered.write(piece)
        assert own.pieces == []
        await asyncio.sleep(0)
        assert own.pieces == [b"head body"]
        gathered.write(b"x" * 70_000)  # is not held back
        assert len(own.pieces) == 2
        await asyncio.sleep(0)
        gathered.write(b"last")
        gathered.close()
        assert own.pieces[2:] == [b"last"] and own.is_closed
        await asyncio.sleep(0)
        assert len(own.pieces) == 3 and gathered.get_write_buffer_size() == 7

    asyncio.run(written())


@contextmanager
def served(web):
    """As ``caveat serve`` does it."""
    server = server_of(web, "127.0.0.1", 0)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(20)
    assert not thread.is_alive(), "it waits for somebody"


@pytest.fixture
def port(served_models, monkeypatch):
    monkeypatch.setattr(connections, "PATIENCE", 0.3)
    with served(app({"net": served_models["net"]})) as found:
        yield found


def connected(port):
    own = socket.create_connection(("127.0.0.1", port), timeout=20)
    own.settimeout(20)
    return own


def test_a_head_that_comes_byte_by_byte_is_given_up(port):
    with connected(port) as mute, connected(port) as slow, connected(port) as good:
        start = time.monotonic()
        with pytest.raises(OSError):  # it cannot be sent any more
            for byte in GET * 100:
                slow.sendall(bytes([byte]))
                time.sleep(0.02)
        assert time.monotonic() - start < 10.0
        assert mute.recv(10) == b""
        with connected(port) as own:
            own.sendall(GET)
            assert b" 200 " in own.recv(1000)
        del good


def test_answers_are_whole_and_in_order_on_one_connection(port):
    with connected(port) as own:
        own.sendall(GET * 5)
        found = b""
        while found.count(b'{"live": true}') < 5:
            found += own.recv(10_000)
        assert found.count(b"HTTP/1.1 200") == 5


def test_a_client_that_does_not_read_does_not_keep_a_server_from_stopping(
    served_models, monkeypatch
):
    monkeypatch.setattr(connections, "PATIENCE", 0.3)
    body = b'{"rows": [' + b",".join([b"[1,2,3]"] * 9000) + b'], "n_draws": 8}'
    head = b"POST /v1/models/net/predict HTTP/1.1\r\nHost: x\r\nContent-Length: "
    request = head + str(len(body)).encode() + b"\r\n\r\n" + body
    with socket.socket() as own:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with served(app({"net": served_models["net"]})) as port:
            own.connect(("127.0.0.1", port))
            threading.Thread(target=_sent, args=(own, request * 9)).start()
            time.sleep(1.0)


def _sent(own, data):
    with contextlib.suppress(OSError):  # it is closed, which is what is wanted
        own.sendall(data)
