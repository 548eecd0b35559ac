"""Files that ONNX Runtime runs: the numbers of Caveat, for any rows, seeds and draws.

Goes through building, splitting, tracing, chunks, drawing and onnx_graph.
"""

import json

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

import caveat
from caveat.exporting.summaries import DRAWS
from tests.exporting.models import MODELS, Case

# One of each mechanism: several draws at a time and one by one, clean parts, classes on
# an axis, noise of all laws, several inputs. The others are slow to export.
QUICK = ("perceptron", "lenet", "unet", "dropconnect", "other_noise", "many_inputs")


def arguments(example) -> tuple[tuple, dict]:
    if isinstance(example, dict):
        return (), example
    return (example if isinstance(example, tuple) else (example,)), {}


def some_rows(case: Case, count: int):
    """Another batch: rows over and over, in another order."""
    args, kwargs = arguments(case.example)
    tensors = [*args, *kwargs.values()]
    axis = case.batch_dim
    rows = tensors[0].shape[axis]
    chosen = torch.arange(count).mul(7).add(1) % rows
    found = [
        t.index_select(axis, chosen) if t.dim() > axis and t.shape[axis] == rows else t
        for t in tensors
    ]
    if kwargs:
        return dict(zip(kwargs, found, strict=True))
    return tuple(found)


def truth(case: Case, example, seed: int, n_draws: int, **how) -> dict[str, Tensor]:
    mc = caveat.MCDropout(
        case.model, seed=seed, batch_dim=case.batch_dim, analytic=False, **how
    )
    args, kwargs = arguments(example)
    asked = {k: v for k, v in case.asked.items() if k in ("output", "class_dim")}
    names = case.asked.get("outputs", ("mean", "std"))
    if {"mean", "std", "variance"} & set(names):
        tau = case.asked.get("precision", 1.0)
        found = mc.regress(*args, **kwargs, **asked, n_draws=n_draws, precision=tau)
        answers = {name: getattr(found, name) for name in names}
        if "precision" not in case.asked:
            answers |= {"std": found.epistemic_variance.sqrt()}
            answers |= {"variance": found.epistemic_variance}
        return {name: answers[name] for name in names}
    found = mc.classify(*args, **kwargs, **asked, n_draws=n_draws)
    return {name: getattr(found, name) for name in names}


def exported(case: Case, path, **how):
    """A session; nothing but the file is changed."""
    mc = caveat.MCDropout(case.model, seed=3, batch_dim=case.batch_dim, **how)
    args, kwargs = arguments(case.example)
    before, state = mc.draws(*args, **kwargs, n_draws=2), torch.get_rng_state()
    case.model.train()
    assert caveat.export(mc, case.example, path, **case.asked) == path
    assert case.model.training and torch.equal(torch.get_rng_state(), state)
    assert torch.backends.mkldnn.enabled
    case.model.eval()
    after = mc.draws(*args, **kwargs, n_draws=2)
    if isinstance(before, Tensor):
        assert torch.equal(after, before)
    return onnxruntime.InferenceSession(path)


@pytest.fixture(scope="module")
def session_of(tmp_path_factory):
    """Exports a model when it is first asked for; its session and its file."""
    folder, known = tmp_path_factory.mktemp("files"), {}

    def found(name):
        if name not in known:
            path = folder / f"{name}.onnx"
            known[name] = exported(MODELS[name](), path), path
        return known[name]

    return found


def run(session, example, seed: int, n_draws: int) -> dict[str, Tensor]:
    args, kwargs = arguments(example)
    names = [v.name for v in session.get_inputs()]
    assert names[-2:] == ["seed", "n_draws"]
    given = kwargs or dict(zip(names[:-2], args, strict=True))
    given = {name: tensor.numpy() for name, tensor in given.items()}
    given |= {"seed": np.array(seed), "n_draws": np.array(n_draws)}
    found = session.run(None, given)
    outputs = [v.name for v in session.get_outputs()]
    pairs = zip(outputs, found, strict=True)
    return {name: torch.from_numpy(np.asarray(value)) for name, value in pairs}


def assert_same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert list(found) == list(expected)
    for name, tensor in expected.items():
        size = max(1.0, float(tensor.double().abs().max()))
        torch.testing.assert_close(found[name], tensor, rtol=0.0, atol=1e-5 * size)


def loop_of(path):
    graph = onnx.load(path).graph
    (loop,) = (node for node in graph.node if node.op_type == "Loop")
    return graph, loop.attribute[0].g


@pytest.mark.parametrize(
    "name",
    [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in MODELS],
)
def test_a_file_gives_the_numbers_of_caveat(name, session_of):
    case, (session, _) = MODELS[name](), session_of(name)
    for rows in (6, 1):
        example = some_rows(case, rows)
        for seed, n_draws in ((3, 7), (-5, 70)):
            found = run(session, example, seed, n_draws)
            assert_same(found, truth(case, example, seed, n_draws))


@pytest.mark.slow
@pytest.mark.parametrize("how", [{"shared": False}, {"stratified": False}])
@pytest.mark.parametrize("name", ["perceptron", "gaussian_noise"])
def test_noise_per_row_and_independent_draws(name, how, tmp_path):
    case = MODELS[name]()
    session = exported(case, tmp_path / "m.onnx", **how)
    example = some_rows(case, 6)
    found = run(session, example, 11, 20)
    assert_same(found, truth(case, example, 11, 20, **how))


@pytest.mark.parametrize("name", [n for n in MODELS if n in QUICK])
def test_of_no_draws_nothing_is_told(name, session_of):
    """NaN: a mean of 0 would be a number that looks right."""
    found = run(session_of(name)[0], some_rows(MODELS[name](), 3), 0, 0)
    told = [
        n for n, value in found.items() if value.is_floating_point() and n != "draws"
    ]
    assert told and all(bool(found[n].isnan().all()) for n in told)


def test_what_no_noise_reaches_is_run_once_and_outside_the_loop(session_of):
    graph, body = loop_of(session_of("lenet")[1])
    assert sum(node.op_type == "Conv" for node in graph.node) == 2
    inside = [node.op_type for node in body.node]
    assert "Conv" not in inside and "MaxPool" not in inside
    # Of the two linear layers the first comes before the noise.
    assert inside.count("Gemm") + inside.count("MatMul") == 1


def test_a_file_says_what_it_is(session_of):
    _, path = session_of("perceptron")
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    facts = {entry.key: entry.value for entry in model.metadata_props}
    assert model.producer_name == "caveat"
    assert facts["caveat_version"] == caveat.__version__
    assert json.loads(facts["seed"]) == 3  # what describing.py writes
    assert facts["equal_to"] == (
        "MCDropout(model, seed=seed, analytic=False).regress(..., n_draws=n_draws)"
    )
    sites = json.loads(facts["sites"])
    assert [(s["name"], s["drop_rate"]) for s in sites] == [("2#0", 0.1), ("5#0", 0.3)]
    meanings = json.loads(facts["outputs"])
    assert list(meanings) == ["mean", "std", DRAWS] and "noise" in meanings["std"]
    assert b"exporting/models.py" not in path.read_bytes()
    assert b"site-packages" not in path.read_bytes()


@pytest.mark.slow  # the page asks for intervals, too
def test_intervals_are_those_of_the_mixture(tmp_path):
    case = Case(
        nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 1)).eval(), torch.randn(4, 3)
    )
    case.model[1].bias.data.fill_(100.0)  # far from 0, where short numbers are coarse
    case.asked = {"outputs": ("lower", "upper"), "precision": 2.0, "level": 0.8}
    session = exported(case, tmp_path / "m.onnx")
    found = run(session, (case.example,), 3, 30)
    mc = caveat.MCDropout(case.model, seed=3, analytic=False)
    ends = mc.regress(case.example, n_draws=30, precision=2.0).interval(0.8)
    torch.testing.assert_close(found["lower"], ends[0], rtol=1e-6, atol=1e-5)
    torch.testing.assert_close(found["upper"], ends[1], rtol=1e-6, atol=1e-5)
