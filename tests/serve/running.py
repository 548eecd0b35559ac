"""A real server on a free port of 127.0.0.1, in a thread of the test."""

import threading
import time
from contextlib import contextmanager

import httpx
import numpy as np
import torch
import uvicorn
from torch import nn

import caveat
from caveat.frames import FrameModel
from caveat.serve import Limits, NetworkModel, app


def table(n=120):
    rng = np.random.default_rng(0)
    size, kind = rng.normal(size=n), rng.choice(["a", "b"], n)
    y = size + (kind == "a") + 0.1 * rng.normal(size=n)
    flag = rng.random(n) > 0.5
    return {"size": size, "kind": kind, "flag": flag, "y": y}


def small(kind=caveat.DropoutRegressor):
    schedule = caveat.training.Schedule(epochs=5)
    return kind(hidden=(8,), schedule=schedule, random_state=0, n_draws=64)


def models():
    """One of each kind, in a second."""
    rows = table()
    y = rows["y"]
    classes = {**rows, "y": np.where(y > 0.5, "yes", "no")}
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 2))
    mc = caveat.MCDropout(net, seed=0)
    x = np.stack([rows["size"], y], 1)
    return {
        "prices": FrameModel.fit(rows, target="y", estimator=small()),
        "kinds": FrameModel.fit(
            classes,
            target="y",
            classify=True,
            estimator=small(caveat.DropoutClassifier),
        ),
        "matrix": caveat.BayesianDropoutRegression(0.2).fit(x, y),
        "net": NetworkModel(mc, torch.zeros(1, 3)),
        "numbers": NetworkModel(mc, torch.zeros(1, 3), precision=4.0),
    }


CLIENT = httpx.Client(timeout=30)  # a new one each time would read certificates
ROW = {"size": 0.5, "kind": "a", "flag": True}


@contextmanager
def serving(own, limits=None, tokens=()):
    """The address of a server that runs meanwhile."""
    web = app(own, limits=limits or Limits(), tokens=tokens)
    config = uvicorn.Config(web, host="127.0.0.1", port=0, log_level="warning")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


def ask(address, model, body, **more):
    """A POST to the friendly route."""
    url = f"http://{address}/v1/models/{model}/predict"
    return CLIENT.post(url, json=body, **more)
