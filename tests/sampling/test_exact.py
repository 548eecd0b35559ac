"""Tiny nets whose masks can all be enumerated: every statistic against its exact value.

What is sampled must agree within its own Monte Carlo error, measured from batches of
draws; the values of theory.md section 13 must come out to their digits where the
enumerated masks take the place of the draws.
"""

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from scipy import stats
from torch import Tensor, nn

from caveat import CategoricalPredictive, GaussianPredictive, MCDropout
from tests.zoo.specimen import normal

SEED, N_DRAWS, N_BATCHES = 11, 6000, 40
TAU = 4.0
LIMIT = float(stats.t.isf(0.5e-6, N_BATCHES - 1))  # false alarm below 1e-6 each


def double(values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def masks(shape: Sequence[int], rate: float) -> Iterator[tuple[Tensor, float]]:
    """All inverted-dropout masks of a shape, with their probabilities."""
    for bits in itertools.product((0.0, 1.0), repeat=math.prod(shape)):
        kept = sum(bits)
        weight = (1 - rate) ** kept * rate ** (len(bits) - kept)
        yield double(bits).view(*shape) / (1 - rate), weight


@dataclass(frozen=True)
class Enumerated:
    """All outputs a net can give for an input, with their probabilities."""

    outputs: Tensor  # shape: (masks, batch, outputs)
    weights: Tensor  # shape: (masks,)

    def average(self, values: Tensor) -> Tensor:
        return torch.tensordot(self.weights, values, 1)

    @property
    def mean(self) -> Tensor:
        return self.average(self.outputs)

    @property
    def covariance(self) -> Tensor:
        gap = self.outputs - self.mean
        noise = torch.eye(gap.shape[-1]).double() / TAU
        return self.average(gap[..., :, None] * gap[..., None, :]) + noise

    def log_prob(self, y: Tensor) -> Tensor:
        """Eq. 13 with the true weights of all masks in the place of 1/T."""
        square = (y - self.outputs).square().sum(-1)
        size = self.outputs.shape[-1]
        log_density = -0.5 * TAU * square + 0.5 * size * math.log(TAU / (2 * math.pi))
        return torch.logsumexp(log_density + self.weights.log()[:, None], 0)

    @property
    def probs(self) -> Tensor:
        return self.average(self.outputs.softmax(-1))

    @property
    def entropy(self) -> Tensor:
        return torch.special.entr(self.probs).sum(-1)

    @property
    def expected_entropy(self) -> Tensor:
        return self.average(torch.special.entr(self.outputs.softmax(-1)).sum(-1))

    @property
    def mutual_information(self) -> Tensor:
        return self.entropy - self.expected_entropy

    @property
    def variation_ratio(self) -> Tensor:
        return 1 - self.probs.amax(-1)

    @property
    def argmax_variation_ratio(self) -> Tensor:
        labels = F.one_hot(self.outputs.argmax(-1), self.outputs.shape[-1])
        return 1 - self.average(labels.double()).amax(-1)


def enumerate_net(
    function: Callable[..., Tensor], *sites: tuple[Sequence[int], float]
) -> Enumerated:
    """Run ``function(mask, mask, …)`` for every combination of masks of the sites."""
    outputs, weights = [], []
    for chosen in itertools.product(*(masks(shape, rate) for shape, rate in sites)):
        outputs.append(function(*(mask for mask, _ in chosen)))
        weights.append(math.prod(weight for _, weight in chosen))
    return Enumerated(torch.stack(outputs), double(weights))


# The nets ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Case:
    """A net, an input, and all outputs it can give for it."""

    name: str
    model: nn.Module
    x: Tensor
    exact: Enumerated

    def __repr__(self) -> str:
        return self.name


def seeded(make: Callable[[], nn.Module], scale: float = 2.0) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(4)
        model = make().double().eval()
    for parameter in model.parameters():
        parameter.data.mul_(scale)
        parameter.requires_grad_(False)
    return model


def hidden_units() -> Case:
    model = seeded(
        lambda: nn.Sequential(
            nn.Linear(2, 4), nn.ReLU(), nn.Dropout(0.5), nn.Linear(4, 3)
        )
    )
    x = normal(2, 2).double()
    first, _, drop, last = model
    hidden = first(x).relu()
    return Case(
        "hidden units",
        model,
        x,
        enumerate_net(lambda m: last(hidden * m), ((4,), drop.p)),
    )


def inputs_and_hidden() -> Case:
    model = seeded(
        lambda: nn.Sequential(
            nn.Dropout(0.2),
            nn.Linear(2, 3),
            nn.Tanh(),
            nn.Dropout(0.4),
            nn.Linear(3, 2),
        )
    )
    x = normal(2, 2, seed=1).double()
    _, first, _, _, last = model
    return Case(
        "inputs and hidden",
        model,
        x,
        enumerate_net(
            lambda m, n: last(first(x * m).tanh() * n), ((2,), 0.2), ((3,), 0.4)
        ),
    )


def two_hidden_layers() -> Case:
    model = seeded(
        lambda: nn.Sequential(
            nn.Linear(2, 3),
            nn.ReLU(),
            nn.Dropout(0.3),
            nn.Linear(3, 3),
            nn.ReLU(),
            nn.Dropout(0.3),
            nn.Linear(3, 2),
        )
    )
    x = normal(2, 2, seed=2).double()
    first, second, last = model[0], model[3], model[6]
    hidden = first(x).relu()
    return Case(
        "two hidden layers",
        model,
        x,
        enumerate_net(
            lambda m, n: last(second(hidden * m).relu() * n), ((3,), 0.3), ((3,), 0.3)
        ),
    )


def channels() -> Case:
    model = seeded(
        lambda: nn.Sequential(
            nn.Conv2d(1, 3, 2), nn.Dropout2d(0.4), nn.Flatten(), nn.Linear(12, 2)
        )
    )
    x = normal(2, 1, 3, 3).double()
    conv, _, _, last = model
    hidden = conv(x)
    return Case(
        "channels",
        model,
        x,
        enumerate_net(
            lambda m: last((hidden * m[:, None, None]).flatten(1)), ((3,), 0.4)
        ),
    )


class TwoLayerLSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.LSTM(2, 2, num_layers=2, dropout=0.4, batch_first=True)
        self.last = nn.Linear(2, 2)

    def forward(self, x):
        return self.last(self.net(x)[0][:, -1])


def recurrent_gap() -> Case:
    """Every place and unit between the layers has a mask of its own: 2 by 2."""
    model = seeded(TwoLayerLSTM)
    x = normal(2, 2, 2).double()
    lower, upper = (nn.LSTM(2, 2, batch_first=True).double() for _ in range(2))
    for layer, single in enumerate((lower, upper)):
        for name, weight in single.named_parameters():
            twin = getattr(model.net, name.replace("_l0", f"_l{layer}"))
            weight.data.copy_(twin)
            weight.requires_grad_(False)
    hidden = lower(x)[0]
    return Case(
        "recurrent gap",
        model,
        x,
        enumerate_net(lambda m: model.last(upper(hidden * m)[0][:, -1]), ((2, 2), 0.4)),
    )


class OneHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(2, 1, dropout=0.3, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x, need_weights=False)[0].flatten(1)


def attention_weights() -> Case:
    model = seeded(OneHead)
    x = normal(2, 2, 2).double()
    layer = model.attention
    q, k, v = F.linear(x, layer.in_proj_weight, layer.in_proj_bias).chunk(3, -1)
    attention = (q @ k.mT / math.sqrt(2)).softmax(-1)
    return Case(
        "attention weights",
        model,
        x,
        enumerate_net(
            lambda m: layer.out_proj((attention * m) @ v).flatten(1), ((2, 2), 0.3)
        ),
    )


CASES = [
    make()
    for make in (
        hidden_units,
        inputs_and_hidden,
        two_hidden_layers,
        channels,
        recurrent_gap,
        attention_weights,
    )
]
every_case = pytest.mark.parametrize("case", CASES, ids=repr)


# Sampled against exact ---------------------------------------------------------------


def assert_statistic(
    whole: Tensor, batches: Sequence[Tensor], expected: Tensor, what: str
) -> None:
    """A statistic of all draws, with its error measured over batches of them."""
    error = torch.stack(list(batches)).std(0) / math.sqrt(len(batches))
    error = error + 1e-9 * (1 + expected.abs())  # what does not vary is exact
    worst = ((whole - expected) / error).abs().max().item()
    assert worst < LIMIT, f"{what} is {worst:.1f} standard errors off"


def parts(draws: Tensor) -> tuple[Tensor, ...]:
    return draws.chunk(N_BATCHES)


def distances(draws: Tensor, outputs: Tensor) -> Tensor:
    """Between all draws and all outputs; exact, so that equal means 0."""
    exact = "donot_use_mm_for_euclid_dist"
    return torch.cdist(draws.flatten(1), outputs.flatten(1), compute_mode=exact)


@functools.cache
def regressed(case: Case, shared: bool = True) -> GaussianPredictive:
    mc = MCDropout(case.model, seed=SEED, shared=shared, analytic=False)
    return mc.regress(case.x, n_draws=N_DRAWS, precision=TAU)


@functools.cache
def classified(case: Case) -> CategoricalPredictive:
    return MCDropout(case.model, seed=SEED).classify(case.x, n_draws=N_DRAWS)


@every_case
def test_outputs_are_those_that_exist(case):
    """Every draw is one of the enumerated outputs, all rows from the same mask."""
    draws = MCDropout(case.model, seed=SEED).draws(case.x, n_draws=300)
    distance = distances(draws, case.exact.outputs)
    assert distance.min(1).values.max() < 1e-9
    assert len(distance.argmin(1).unique()) > 3


@every_case
def test_frequencies_of_masks(case):
    """Chi-square of the frequencies of all outputs, pooled where they coincide."""
    draws = regressed(case).draws
    outputs = case.exact.outputs.flatten(1)
    distinct, place = (outputs * 1e9).round().unique(dim=0, return_inverse=True)
    weights = (
        torch.zeros(len(distinct)).double().index_add(0, place, case.exact.weights)
    )
    found = place[distances(draws, outputs).argmin(1)]
    counts = torch.bincount(found, minlength=len(distinct)).double()
    often = weights * N_DRAWS >= 5
    expected = weights[often] * N_DRAWS
    statistic = ((counts[often] - expected).square() / expected).sum().item()
    assert stats.chi2.sf(statistic, int(often.sum())) > 1e-6


@every_case
@pytest.mark.parametrize("shared", [True, False])
def test_regression(case, shared):
    whole, y = regressed(case, shared), case.exact.mean + 0.3
    batches = [
        GaussianPredictive.from_draws(d, precision=TAU) for d in parts(whole.draws)
    ]
    exact = case.exact
    for name, value in {
        "mean": exact.mean,
        "covariance": exact.covariance,
        "variance": exact.covariance.diagonal(dim1=-2, dim2=-1),
    }.items():
        each = [getattr(batch, name) for batch in batches]
        assert_statistic(getattr(whole, name), each, value, name)
    each = [batch.log_prob(y) for batch in batches]
    assert_statistic(whole.log_prob(y), each, exact.log_prob(y), "log_prob")


@every_case
def test_standard_error_is_that_of_the_mean(case):
    mc = MCDropout(case.model, seed=SEED, analytic=False, stratified=False)
    found = mc.regress(case.x, n_draws=N_DRAWS, precision=TAU)
    variance = case.exact.covariance.diagonal(dim1=-2, dim2=-1) - 1 / TAU
    expected = (variance / N_DRAWS).sqrt()
    assert torch.allclose(found.mean_error, expected, rtol=0.15, atol=1e-9)


@every_case
def test_classification(case):
    whole = classified(case)
    batches = [CategoricalPredictive.from_logits(d) for d in parts(whole.draws)]
    names = "probs entropy expected_entropy mutual_information argmax_variation_ratio"
    for name in names.split():
        each = [getattr(batch, name) for batch in batches]
        assert_statistic(getattr(whole, name), each, getattr(case.exact, name), name)


@every_case
def test_sampled_variation_ratio(case):
    """A share of N labels: its error is binomial."""
    found = classified(case)
    expected = case.exact.variation_ratio
    error = (expected * (1 - expected) / N_DRAWS).sqrt() + 1 / N_DRAWS
    worst = ((found.variation_ratio - expected) / error).abs().max().item()
    assert worst < stats.norm.isf(0.5e-6), f"{worst:.1f} standard errors off"


# theory.md, section 13 ----------------------------------------------------------------

W1 = double([[0.5, -1.0], [1.0, 0.5], [-0.5, 1.5]])
B1 = double([0.1, -0.2, 0.0])
THREE_UNITS = (double([[1.0, -2.0, 0.5]]), double([0.25]))
CLASSIFIER = (
    double([[1.0, -2.0, 0.5], [0.3, 0.4, -1.0]]),
    double([0.0, 0.1]),
)
INPUT = double([[1.0, -1.0]])
TARGET = double([[0.5]])


class ThreeUnits(nn.Module):
    """The net of section 13; ``unscaled`` undoes the division by the keep rate."""

    def __init__(
        self,
        head: tuple[Tensor, Tensor],
        activation: Callable[[Tensor], Tensor] = torch.relu,
        *,
        input_rate: float = 0.0,
        unscaled: bool = True,
    ):
        super().__init__()
        self.w1, self.b1 = nn.Parameter(W1), nn.Parameter(B1)
        self.w2, self.b2 = (nn.Parameter(value) for value in head)
        self.inputs, self.hidden = nn.Dropout(input_rate), nn.Dropout(0.5)
        self.activation, self.unscaled = activation, unscaled
        self.eval().requires_grad_(False)

    def keep(self, drop: nn.Dropout) -> float:
        return 1 - drop.p if self.unscaled else 1.0

    def forward(self, x: Tensor) -> Tensor:
        x = self.inputs(x) * self.keep(self.inputs)
        h = self.activation(F.linear(x, self.w1, self.b1))
        return F.linear(self.hidden(h) * self.keep(self.hidden), self.w2, self.b2)

    def all_outputs(self) -> Tensor:
        """Outputs of all masks, each as often as its share in a hundred asks."""
        draws = []
        for m, weight in masks((2,), self.inputs.p) if self.inputs.p else ALWAYS:
            for n, _ in masks((3,), 0.5):
                x = INPUT * m * self.keep(self.inputs)
                h = self.activation(F.linear(x, self.w1, self.b1))
                y = F.linear(h * n * self.keep(self.hidden), self.w2, self.b2)
                draws += [y] * round(100 * weight)
        return torch.stack(draws)


ALWAYS = [(torch.ones(2).double(), 1.0)]

# name: net, mean, variance with 1/tau, log predictive, E half sq. error, weight average
NETS: dict[str, Any] = {
    "relu unscaled": (
        ThreeUnits(THREE_UNITS, input_rate=0.1),
        (0.66, 1.0184, -1.153474507284721, 0.397, 0.725),
    ),
    "relu inverted": (
        ThreeUnits(THREE_UNITS, input_rate=0.1, unscaled=False),
        (1.11, 4.074844444444445, -1.6081527867684775, 2.098472222222223, 1.25),
    ),
    "tanh unscaled": (
        ThreeUnits(THREE_UNITS, torch.tanh),
        (
            0.17851476973269,
            0.60531559266548,
            -0.78764774377091,
            0.22933417297275,
            0.17851476973269,
        ),
    ),
}
every_net = pytest.mark.parametrize(("model", "values"), NETS.values(), ids=NETS)
CLASS_VALUES = {
    "probs": [0.5225498971728, 0.4774501028272],
    "entropy": 0.692129839794,
    "expected_entropy": 0.641960067313,
    "mutual_information": 0.050169772481,
}
CLASS_LOSS = 0.697904198347  # expected softmax loss of class 0


def regression_statistics(draws: Tensor) -> dict[str, Tensor]:
    found = GaussianPredictive.from_draws(draws, precision=TAU)
    return {
        "mean": found.mean[0, 0],
        "variance": found.variance[0, 0],
        "log predictive": found.log_prob(TARGET)[0],
        "half squared error": 0.5 * (draws - TARGET).square().mean(),
    }


def class_statistics(draws: Tensor) -> dict[str, Tensor]:
    found = CategoricalPredictive.from_logits(draws)
    loss = -draws.log_softmax(-1)[:, 0, 0].mean()
    return {name: getattr(found, name)[0] for name in CLASS_VALUES} | {"loss": loss}


@every_net
def test_theory_values_to_their_digits(model, values):
    found = regression_statistics(model.all_outputs())
    *expected, averaged = values
    for (name, value), number in zip(found.items(), expected, strict=True):
        assert value.item() == pytest.approx(number, abs=1e-12), name
    assert model(INPUT).item() == pytest.approx(averaged, abs=1e-13)


@every_net
def test_theory_values_by_sampling(model, values):
    draws = MCDropout(model, seed=SEED).draws(INPUT, n_draws=N_DRAWS)
    batches = [regression_statistics(d) for d in parts(draws)]
    found = regression_statistics(draws)
    for (name, value), number in zip(found.items(), values[:-1], strict=True):
        each = [batch[name] for batch in batches]
        assert_statistic(value, each, double(number), name)


def test_theory_classifier_to_its_digits():
    model = ThreeUnits(CLASSIFIER)
    found = class_statistics(model.all_outputs())
    for name, number in (CLASS_VALUES | {"loss": CLASS_LOSS}).items():
        assert found[name].tolist() == pytest.approx(number, abs=1e-11), name
    averaged = model(INPUT).softmax(-1)[0, 0].item()
    assert averaged == pytest.approx(0.524979187479, abs=1e-12)


def test_theory_classifier_by_sampling():
    draws = MCDropout(ThreeUnits(CLASSIFIER), seed=SEED).draws(INPUT, n_draws=N_DRAWS)
    found, batches = (
        class_statistics(draws),
        [class_statistics(d) for d in parts(draws)],
    )
    for name, number in (CLASS_VALUES | {"loss": CLASS_LOSS}).items():
        each = [batch[name] for batch in batches]
        assert_statistic(found[name], each, double(number), name)
