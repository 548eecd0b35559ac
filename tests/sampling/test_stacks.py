"""Whole outputs: every tensor found, of one shape, in the class they came in."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from caveat import MCDropout
from caveat.errors import InputTypeError, ParameterError, ShapeError
from tests.sampling.comparing import assert_close
from tests.zoo.specimen import normal

X = normal(6, 5)


class Returns(nn.Module):
    """A drawn net that returns whatever ``wrap`` makes of its output."""

    def __init__(self, wrap):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            layers = [nn.Linear(5, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2)]
            self.net, self.wrap = nn.Sequential(*layers).eval(), wrap

    def forward(self, x):
        return self.wrap(self.net(x))


def sampler(wrap=lambda y: y) -> MCDropout:
    return MCDropout(Returns(wrap), seed=1)


@dataclass(frozen=True)
class Answer:
    logits: Tensor
    more: Any = None


class Opaque:
    """Neither a record nor a container; it knows the shape of its tensor."""

    def __init__(self, y):
        self.y, self.size = y, y.shape[0]


WRAPS = {
    "dataclass": (lambda y: Answer(y), lambda out: out.logits),
    "nested": (
        lambda y: (0, {"a": Answer(y, [Answer(-y)])}),
        lambda out: -out[1]["a"].more[0].logits,
    ),
    "namespace": (lambda y: SimpleNamespace(a=y, b="c"), lambda out: out.a),
}


@pytest.mark.parametrize("batch_size", [None, 4])
@pytest.mark.parametrize("name", WRAPS)
def test_objects_keep_their_class(name, batch_size):
    wrap, read = WRAPS[name]
    expected = sampler().draws(X, n_draws=5)
    found = sampler(wrap).draws(X, n_draws=5, batch_size=batch_size)
    assert type(found) is type(wrap(X))
    assert_close([read(found)], [expected], 1e-5)


@pytest.mark.parametrize("name", WRAPS)
def test_output_reads_a_new_object_for_every_draw(name):
    wrap, read = WRAPS[name]
    expected = sampler().draws(X, n_draws=5)
    found = sampler(wrap).regress(X, n_draws=5, precision=1.0, output=read)
    assert_close([found.draws], [expected], 1e-5)


def test_logits_of_a_dataclass_are_found():
    expected = sampler().classify(X, n_draws=5)
    found = sampler(Answer).classify(X, n_draws=5)
    assert_close([found.probs], [expected.probs], 1e-5)


def test_other_objects_can_be_read_and_are_not_stacked():
    expected = sampler().draws(X, n_draws=5)
    for wrap, read in (
        (Opaque, lambda out: out.y),
        (lambda y: torch.distributions.Normal(y, y.exp()), lambda out: out.mean),
        (lambda y: (y[:, 0], Opaque(y)), lambda out: out[1].y),
    ):
        mc = sampler(wrap)
        found = mc.regress(X, n_draws=5, precision=1.0, output=read)
        assert_close([found.draws], [expected], 1e-5)
    with pytest.raises(InputTypeError, match="output="):
        sampler(Opaque).draws(X, n_draws=2)


CUTS = {
    "columns": lambda y: y[:, : 1 + int(y[0, 0] > y[1, 0])],
    "elements": lambda y: y[y > y.mean()],
    # A row would be copied to all rows in silence.
    "one row": lambda y: y[:1] if float(y[0, 0]) > float(y[1, 0]) else y,
    "leaves": lambda y: (y,) if float(y[0, 0]) > float(y[1, 0]) else (y, y),
}


@pytest.mark.filterwarnings("ignore:The rows of Returns are not independent")
@pytest.mark.filterwarnings("ignore:Returns draws noise for this batch")
@pytest.mark.parametrize("cut", CUTS)
def test_draws_of_varying_shape_are_refused(cut):
    with pytest.raises(ShapeError, match=r"Draw \d+ "):
        sampler(CUTS[cut]).draws(X, n_draws=60)


@pytest.mark.filterwarnings("ignore:The rows of Returns are not independent")
@pytest.mark.parametrize("keep_draws", [True, False])
def test_predictives_of_varying_shape_are_refused(keep_draws):
    with pytest.raises(ShapeError, match=r"Draw \d+ has the shape"):
        sampler(CUTS["one row"]).regress(
            X, n_draws=60, precision=1.0, keep_draws=keep_draws
        )


# ------------------------------------------------------------ NaN

HOLES = X.clone()
HOLES[4, 1] = torch.nan


class Fills(Returns):
    def forward(self, x):
        return self.wrap(self.net(torch.where(x.isnan(), 0.5, x)))


@pytest.mark.parametrize("batch_size", [None, 4])
def test_nan_that_the_model_handles(batch_size):
    filled = torch.where(HOLES.isnan(), 0.5, HOLES)
    mc = MCDropout(Fills(lambda y: y), seed=1)
    expected = mc.draws(filled, n_draws=3)
    assert_close([mc.draws(HOLES, n_draws=3, batch_size=batch_size)], [expected], 1e-6)
    found = mc.regress(HOLES, n_draws=3, precision=1.0, batch_size=batch_size)
    assert_close([found.draws], [expected], 1e-6)


def test_nan_that_comes_out_names_the_rows():
    mc = sampler()
    with pytest.raises(ParameterError, match=r"NaN values in 1 row\(s\) \(first: 4\)"):
        mc.draws(HOLES, n_draws=2)
    with pytest.raises(ParameterError, match=r"first: 4\)"):
        mc.draws(HOLES, n_draws=2, batch_size=3)
    with pytest.raises(ParameterError, match=r"first: 4\)"):
        mc.moments(HOLES)
    for call in (mc.classify, lambda *a, **k: mc.regress(*a, precision=1.0, **k)):
        with pytest.raises(ParameterError, match="row 4"):
            call(HOLES, n_draws=2)


# ------------------------------------------------------------ inputs that are changed


class Changes(Returns):
    """Writes to all that it is given."""

    def forward(self, x, state):
        state["seen"].append(1)
        state["record"].more = "changed"
        state["record"].logits.mul_(2.0)
        state["inner"]["x"] = x
        x.add_(len(state["seen"]))
        return self.net(x)


class Record:
    def __init__(self, logits):
        self.logits, self.more = logits, None


@pytest.mark.parametrize("call", ["draws", "function", "regress"])
def test_inputs_are_left_as_they_are(call):
    mc, x = MCDropout(Changes(lambda y: y), seed=1), X.clone()
    state = {"seen": [], "record": Record(X.clone()), "inner": {}}
    calls = {
        "draws": lambda: mc.draws(x, state, n_draws=3),
        "function": lambda: mc.function(0)(x, state),
        "regress": lambda: mc.regress(x, state, n_draws=3, precision=1.0),
    }
    calls[call]()
    assert torch.equal(x, X)
    assert state["seen"] == []
    assert state["inner"] == {}
    assert state["record"].more is None
    assert torch.equal(state["record"].logits, X)


# ------------------------------------------------------------ without rows


class Towers(nn.Module):
    """Every row against the same documents, of which there may be as many."""

    def __init__(self):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.rows, self.documents = nn.Linear(5, 3), nn.Linear(4, 3)
        self.drop = nn.Dropout(0.5)

    def forward(self, x, documents):
        left, right = self.drop(self.rows(x)), self.drop(self.documents(documents))
        return {"scores": left @ right.T, "documents": right, "size": right.norm()}


def test_what_has_no_rows_is_the_same_in_all_batches_and_kept_once():
    mc, given = MCDropout(Towers(), seed=1), (X, normal(6, 4))
    whole, parts = (
        mc.draws(*given, n_draws=3),
        mc.draws(*given, n_draws=3, batch_size=4),
    )
    assert_close([*parts.values()], [*whole.values()], 1e-6)


@pytest.mark.parametrize("read", [lambda o: o["documents"], lambda o: o["documents"].T])
def test_what_has_no_rows_is_not_read_as_if_it_had(read):
    mc, given = MCDropout(Towers(), seed=1), (X, normal(6, 4))
    options = {"precision": 1.0, "n_draws": 3, "output": read}
    mc.regress(*given, **options)
    with pytest.raises(ShapeError, match="without an axis for the rows"):
        mc.regress(*given, **options, batch_size=4)


def test_what_has_no_rows_and_differs_is_an_error():
    mc = sampler(lambda y: {"y": y, "loss": y.square().mean()})
    with (
        pytest.warns(match="not independent"),
        pytest.raises(ShapeError, match="without an axis for the rows"),
    ):
        mc.draws([X[:3], X[3:]], n_draws=2)
