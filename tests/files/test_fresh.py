"""A model file of every kind, opened in a process that has seen nothing else."""

import copy
import hashlib
import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import caveat
from caveat import decisions, evaluation
from caveat.estimators import DropoutClassifier, DropoutRegressor
from tests.files.test_saving import ALL
from tests.frames.data import linear_model, mixed, quick_labels, quick_model

NEW = mixed(40, seed=3).drop(columns=["y", "label"])
INPUT = torch.linspace(-1.0, 1.0, 12).reshape(3, 4)


def network():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2))


def with_policies(model):
    held_out = mixed(200, seed=4)
    predictive, y = model.predictive(held_out), model.targets(held_out)
    found = model.attach(evaluation.calibrate(predictive, y))
    conformal = decisions.conformal(found.predictive(held_out), y, level=0.9)
    deferral = decisions.defer(
        found.predictive(held_out), y, target=decisions.Coverage(0.8)
    )
    return found.attach(conformal, deferral)


def models():
    """By name, fitted."""
    found = {}
    for number, (model, x, y) in enumerate(ALL):
        found[f"estimator{number}"] = copy.deepcopy(model).fit(x, y)
    from tests.estimators.test_search_cv import a_search, some_rows

    found["search"] = a_search().fit(*some_rows())
    found["table"] = with_policies(quick_model())
    found["labels"] = with_policies(quick_labels())
    found["line"] = linear_model()
    fast = {"preset": "fast", "random_state": 0}
    found["pool"] = quick_model(estimator=DropoutRegressor(**fast))
    found["class pool"] = quick_model(
        target="label",
        classify=True,
        drop=["y"],
        estimator=DropoutClassifier(**fast),
    )
    return found


def inputs_of(model):
    for kind, x, _ in ALL:
        if type(kind) is type(model) and x.shape[1] == model.n_features_in_:
            return x
    from tests.estimators.test_search_cv import some_rows

    return some_rows()[0]


def digest(model):
    """Of all bits of its answers."""
    if hasattr(model, "predict_table"):
        table = model.predict_table(NEW)
        parts = [repr(table[name].to_pylist()).encode() for name in table.schema.names]
    elif isinstance(model, nn.Module):
        drawn = caveat.MCDropout(model, seed=1).draws(INPUT, n_draws=5)
        parts = [drawn.numpy().tobytes()]
    else:
        x, is_class = inputs_of(model), hasattr(model, "classes_")
        found = model.predict_proba(x) if is_class else model.predict(x, True)
        parts = [repr([part.tolist() for part in found]).encode()]
    return hashlib.sha256(b"".join(parts)).hexdigest()


def digests(folder):
    found = {p.stem: digest(caveat.load(p)) for p in sorted(folder.glob("*.caveat"))}
    other = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2))
    return {**found, "network": digest(caveat.load(folder / "network", model=other))}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_answers_of_a_fresh_process_are_the_same_bits(tmp_path):
    fitted = models()
    for name, model in fitted.items():
        caveat.save(model, tmp_path / f"{name}.caveat")
    caveat.save(network(), tmp_path / "network")
    expected = {name: digest(model) for name, model in fitted.items()}
    expected["network"] = digest(network())
    code = (
        "import json, sys, torch; torch.set_num_threads(1); from pathlib import Path; "
        "from tests.files.test_fresh import digests; "
        "print(json.dumps(digests(Path(sys.argv[1]))))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout.splitlines()[-1]) == expected
    for name, model in fitted.items():
        for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
            assert digest(again) == expected[name], name
