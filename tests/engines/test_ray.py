"""Jobs, units and reproductions on one Ray cluster, started once."""

import math
import os
import signal
import socket
import sys
import threading
import time

import numpy as np
import pytest

from caveat.engines import Engine, spread
from caveat.engines import ray as on_ray
from caveat.errors import MissingExtraError, ParameterError
from caveat.papers.runner import complete
from caveat.scoring import score
from tests.engines.test_local import killed_once
from tests.estimators.test_search_cv import a_search, some_rows
from tests.papers.squares import Squares
from tests.scoring.conftest import model, plain, tables  # noqa: F401, fixtures
from tests.scoring.data import N_UNITS, checksums


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"caveat\[scale\]"):
        list(spread(math.sqrt, [4.0], engine=Engine.ray))


def test_an_address_is_of_ray():
    with pytest.raises(ParameterError, match="pass engine ray"):
        list(spread(math.sqrt, [4.0], address="auto"))


def test_a_cluster_that_is_not_there_is_told_soon():
    pytest.importorskip("ray")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    start = time.monotonic()
    for address in (f"127.0.0.1:{port}", f"ray://127.0.0.1:{port}", "127.0.0.1:99999"):
        with pytest.raises(ParameterError, match="No Ray cluster could be reached at"):
            list(spread(math.sqrt, [4.0], engine=Engine.ray, address=address))
    assert time.monotonic() - start < 15.0


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", None])
def test_a_port_where_something_else_listens_is_told_soon(answer, monkeypatch):
    """Ray would go on trying for minutes; None is a port that never answers."""
    pytest.importorskip("ray")
    monkeypatch.setattr(on_ray, "_REACH", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            caller, _ = server.accept()
            if answer is None:
                done.wait(5.0)
            else:
                caller.sendall(answer)
            caller.close()

        done = threading.Event()
        other = threading.Thread(target=serve, daemon=True)
        other.start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(ParameterError, match="No Ray cluster could be reached at"):
            on_ray._check_reachable(address)
        done.set()
        other.join()


def test_a_cluster_that_does_not_start_is_told():
    """As on a machine that is too busy: Ray raises a plain Exception then."""

    class Busy:
        @staticmethod
        def is_initialized():
            return False

        @staticmethod
        def init(**_):
            raise Exception("The current node timed out during startup.\nMore.")

    with pytest.raises(ParameterError, match=r"on this machine: .*timed out.* local"):
        with on_ray._cluster(Busy, 2, None):
            pass


@pytest.mark.filterwarnings("ignore")  # Ray's own
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_cluster_answers_as_processes_do(model, tables, plain, tmp_path):  # noqa: F811
    """One test, as a cluster takes seconds to start."""
    ray = pytest.importorskip("ray")
    with on_ray._cluster(ray, 2, None):
        jobs = [16.0, 4.0, 9.0]
        assert dict(spread(math.sqrt, jobs, 2, engine=Engine.ray)) == {
            16.0: 4.0,
            4.0: 2.0,
            9.0: 3.0,
        }
        with pytest.raises(ValueError, match="math domain"):
            list(spread(math.sqrt, [4.0, -1.0], 2, engine=Engine.ray))
        assert dict(spread(killed_once, [tmp_path / "a"], engine=Engine.ray)) == {
            tmp_path / "a": 2
        }
        done = score(model, tables, tmp_path / "out", engine="ray", n_workers=2)
        assert done.n_new == N_UNITS
        assert checksums(tmp_path / "out") == checksums(plain)

        own, other = Squares(tmp_path / "ray"), Squares(tmp_path / "here")
        assert complete(own, n_workers=2, engine=Engine.ray) == complete(
            other, n_workers=1
        )
        assert own.path("csv").read_text() == other.path("csv").read_text()

        found = a_search(engine="ray", n_workers=2).fit(*some_rows())
        np.testing.assert_allclose(
            found.cv_results_["mean_test_score"],
            a_search().fit(*some_rows()).cv_results_["mean_test_score"],
        )
    assert not ray.is_initialized()


def killed(job):
    if job < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return job


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Ray's own
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_job_that_ends_its_process_is_given_up():
    """Here the cluster is started and ended by the call."""
    ray = pytest.importorskip("ray")
    own = {"engine": Engine.ray, "n_workers": 2}
    found = spread(killed, [1, -2], on_lost=lambda job: -job, **own)
    assert dict(found) == {1: 1, -2: 2}
    assert not ray.is_initialized()
