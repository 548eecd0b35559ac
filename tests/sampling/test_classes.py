"""Logits with the classes last, of whatever a classifier returns."""

from functools import wraps

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from caveat import MCDropout
from caveat.errors import InputTypeError, ParameterError, ShapeError
from caveat.evaluation import evaluate


def seeded(make):
    """The same weights at every call."""

    @wraps(make)
    def made():
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(4)
            return make()

    return made


X = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
IMAGES = torch.randn(4, 2, 5, 6, generator=torch.Generator().manual_seed(1))


class Ending(nn.Module):
    """A network with something after its logits; sites are named alike in all."""

    def __init__(self, net, end=lambda z: z):
        super().__init__()
        self.net, self.end = net, end

    def forward(self, x):
        return self.end(self.net(x))


@seeded
def rows():
    return nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 4))


@seeded
def images():
    return nn.Sequential(nn.Conv2d(2, 5, 1), nn.Dropout(0.3), nn.Conv2d(5, 6, 1))


@seeded
def column():
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 1))


def asked(net, end=lambda z: z, x=X, **settings):
    return MCDropout(Ending(net, end), seed=3).classify(x, **settings)


def assert_same_predictive(found, wanted):
    for name in ("probs", "log_probs", "entropy", "expected_entropy", "label"):
        assert_close(getattr(found, name), getattr(wanted, name), rtol=1e-4, atol=1e-5)
    for name in ("mutual_information", "variation_ratio", "mean_error"):
        assert_close(getattr(found, name), getattr(wanted, name), rtol=1e-3, atol=1e-5)


# ------------------------------------------------------------ which axis


def test_images_need_their_class_axis():
    """Six classes and a width of six: no size could tell."""
    with pytest.raises(ShapeError, match="class_dim=1 for images"):
        asked(images(), x=IMAGES)
    found = asked(images(), x=IMAGES, class_dim=1, n_draws=20)
    draws = MCDropout(Ending(images()), seed=3).draws(IMAGES, n_draws=20)
    assert_close(found.probs, draws.softmax(2).mean(0).movedim(1, -1))
    assert_close(asked(images(), x=IMAGES, class_dim=-3, n_draws=20).probs, found.probs)
    labels = found.label
    assert labels.shape == (4, 5, 6)
    assert evaluate(found, labels)["accuracy"].value == 1.0


@pytest.mark.parametrize("settings", [{"keep_draws": False}, {"batch_size": 3}])
def test_the_class_axis_in_batches_and_without_draws(settings):
    whole = asked(images(), x=IMAGES, class_dim=1, n_draws=20)
    found = asked(images(), x=IMAGES, class_dim=1, n_draws=20, **settings)
    assert_same_predictive(found, whole)


def test_sequences_need_their_class_axis_too():
    x = torch.ones(5, 4, 3)
    with pytest.raises(ShapeError, match="class_dim=-1 for tokens"):
        asked(rows(), x=x)
    with pytest.raises(ShapeError, match="class_dim=-1 for tokens"):
        asked(rows(), x=x, output=lambda out: out)
    assert asked(rows(), x=x, class_dim=-1, n_draws=2).probs.shape == (5, 4, 4)
    assert asked(rows(), class_dim=1, n_draws=2).probs.shape == (6, 4)


def test_outputs_of_transformers_say_it_by_their_kind():
    outputs = pytest.importorskip("transformers.modeling_outputs")
    token, segments = outputs.TokenClassifierOutput, outputs.SemanticSegmenterOutput
    x = torch.ones(5, 4, 3)
    found = asked(rows(), lambda z: token(logits=z), x=x, n_draws=2)
    assert found.probs.shape == (5, 4, 4)
    found = asked(images(), lambda z: segments(logits=z), x=IMAGES, n_draws=2)
    assert_close(found.probs, asked(images(), x=IMAGES, class_dim=1, n_draws=2).probs)
    moved = asked(
        rows(), lambda z: token(logits=z.movedim(1, 2)), x=x, class_dim=1, n_draws=2
    )
    assert moved.probs.shape == (5, 4, 4)


@pytest.mark.parametrize(
    ("class_dim", "error"),
    [
        *((axis, ParameterError) for axis in (0, -2, 2)),
        *((axis, InputTypeError) for axis in ("1", True, 1.0)),
    ],
)
def test_wrong_class_axes(class_dim, error):
    with pytest.raises(error, match="class_dim must be"):
        asked(rows(), class_dim=class_dim)


# ------------------------------------------------------------ what the numbers are

ENDS = {
    "softmax": lambda z: z.softmax(-1),
    "normalised": lambda z: z.exp() / z.exp().sum(-1, keepdim=True),
    "doubles": lambda z: z.double().softmax(-1),
    "half precision": lambda z: z.softmax(-1).bfloat16(),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("n_rows", [1, 6])
@pytest.mark.parametrize("n_draws", [1, 30])
def test_a_second_softmax_is_refused(end, n_rows, n_draws):
    for settings in ({}, {"keep_draws": False}, {"output": lambda out: out}):
        with pytest.raises(ParameterError, match='pass output="probs"'):
            asked(rows(), end, X[:n_rows], n_draws=n_draws, **settings)
    with pytest.raises(ParameterError, match='pass output="probs"'):
        asked(rows(), end, iter([X[:n_rows]]), n_draws=n_draws)


@pytest.mark.parametrize(
    "settings",
    [
        {"n_draws": 40},
        {"n_draws": 40, "keep_draws": False},
        {"n_draws": 40, "batch_size": 4},
        {"tolerance": 0.1},
        {"tolerance": 0.1, "keep_draws": False},
    ],
    ids=str,
)
def test_probs_are_what_their_logits_would_be(settings):
    found = asked(rows(), ENDS["softmax"], output="probs", **settings)
    wanted = asked(rows(), **settings)
    assert found.n_draws == wanted.n_draws
    assert_same_predictive(found, wanted)


def test_probs_from_a_stream():
    stream = (x for x in X.split(2))
    found = asked(rows(), ENDS["softmax"], stream, output="probs", n_draws=20)
    assert_same_predictive(found, asked(rows(), n_draws=20))


def test_probs_of_images():
    found = asked(
        images(), lambda z: z.softmax(1), IMAGES, output="probs", class_dim=1, n_draws=9
    )
    wanted = asked(images(), x=IMAGES, class_dim=1, n_draws=9)
    assert_same_predictive(found, wanted)


def test_a_probability_of_zero_is_one():
    def hard(z):
        return torch.nn.functional.one_hot(z.argmax(-1), 4).float()

    found = asked(rows(), hard, output="probs", n_draws=50)
    votes = hard(MCDropout(Ending(rows()), seed=3).draws(X, n_draws=50)).mean(0)
    assert_close(found.probs, votes)
    assert not found.expected_entropy.any()
    assert_close(found.mutual_information, torch.special.entr(votes).sum(-1))


def test_logarithms_of_probabilities_are_logits():
    found = asked(rows(), lambda z: z.log_softmax(-1), n_draws=20)
    assert_same_predictive(found, asked(rows(), n_draws=20))


def test_logits_that_are_called_so_are_taken_as_such():
    found = asked(rows(), ENDS["softmax"], output="logits", n_draws=20)
    draws = MCDropout(Ending(rows(), ENDS["softmax"]), seed=3).draws(X, n_draws=20)
    assert_close(found.probs, draws.softmax(-1).mean(0))


@pytest.mark.parametrize("end", [torch.sigmoid, lambda z: z.sigmoid().squeeze()])
def test_several_sigmoids_are_no_logits(end):
    with pytest.raises(ParameterError, match="ends in a sigmoid of 4 columns"):
        asked(rows(), end, n_draws=5)
    labels = asked(
        rows(),
        end,
        output=lambda p: torch.stack([1 - p, p], -1).log(),
        class_dim=-1,
        n_draws=20,
    )
    draws = MCDropout(Ending(rows(), end), seed=3).draws(X, n_draws=20)
    assert_close(labels.probs[..., 1], draws.mean(0))


def test_small_logits_are_logits():
    """Between 0 and 1, but nothing squeezed them there."""
    found = asked(rows(), lambda z: 0.5 + 0.01 * z, n_draws=5)
    assert found.probs.shape == (6, 4)


# ------------------------------------------------------------ one number per row


@pytest.mark.parametrize("end", [lambda z: z, lambda z: z.squeeze(-1)])
def test_one_logit_and_its_sigmoid(end):
    with pytest.raises(ShapeError, match='pass output="logit"'):
        asked(column(), end)
    found = asked(column(), end, output="logit", n_draws=40)
    draws = MCDropout(Ending(column()), seed=3).draws(X, n_draws=40)
    assert_close(found.probs[:, 1], draws.sigmoid().mean(0).squeeze(-1))
    assert_close(found.probs.sum(-1), torch.ones(6))
    squeezed = asked(column(), lambda z: end(z).sigmoid(), output="sigmoid", n_draws=40)
    assert_same_predictive(squeezed, found)


def test_one_sigmoid_per_pixel():
    @seeded
    def net():
        return nn.Sequential(nn.Conv2d(2, 5, 1), nn.Dropout(0.3), nn.Conv2d(5, 1, 1))

    found = asked(
        net(), torch.sigmoid, IMAGES, output="sigmoid", class_dim=1, n_draws=9
    )
    draws = MCDropout(Ending(net()), seed=3).draws(IMAGES, n_draws=9)
    assert_close(found.probs[..., 1], draws.sigmoid().mean(0).squeeze(1))


@pytest.mark.parametrize(
    ("end", "output", "message"),
    [
        (lambda z: z, "probs", r"sum to 1\. Got values from"),
        (lambda z: 2 * z.softmax(-1), "probs", "sums from 2 to 2"),
        (lambda z: z, "logit", r"(?s)one number per row.*Got the shape \(6, 4\)"),
        (lambda z: z[:, :1] - 9.0, "sigmoid", 'pass output="logit"'),
        (lambda z: z, "softmax", "one of 'logits', 'probs', 'logit', 'sigmoid'"),
        (lambda z: z.argmax(-1, keepdim=True), None, "floating-point"),
    ],
)
def test_numbers_that_are_not_what_was_said(end, output, message):
    with pytest.raises((ParameterError, ShapeError, InputTypeError), match=message):
        asked(rows(), end, output=output)
