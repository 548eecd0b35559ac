"""Which flags must be on, for models that do more than drop in training mode."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import caveat
from caveat import MCDropout
from caveat.errors import CaveatWarning
from tests.sampling.comparing import assert_same_distribution
from tests.zoo.feedforward import Between
from tests.zoo.plain_loop import own_randomness
from tests.zoo.specimen import normal

X = normal(4, 5)
N_DRAWS = 300


def build(make: type[nn.Module]) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return make().eval()


class SoftmaxInEvaluation(Between):
    """Logits in training, probabilities otherwise, as losses want them."""

    def noise(self, h: Tensor) -> Tensor:
        return F.dropout(h, 0.5) if self.training else h

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        return y if self.training else y.softmax(-1)


class SoftmaxByNoise(SoftmaxInEvaluation):
    """Noise other than dropout: it cannot be left out to compare."""

    def noise(self, h: Tensor) -> Tensor:
        return h + torch.randn_like(h) if self.training else h


class ScaledInTraining(SoftmaxInEvaluation):
    def forward(self, x: Tensor) -> Tensor:
        y = Between.forward(self, x)
        return 2 * y if self.training else y


OTHERWISE = [SoftmaxInEvaluation, SoftmaxByNoise, ScaledInTraining]


@pytest.mark.parametrize("make", OTHERWISE)
def test_other_numbers_in_training_mode_are_told(make):
    model = build(make)
    with pytest.warns(CaveatWarning, match="other numbers in training mode"):
        draws = MCDropout(model, seed=0).draws(X, n_draws=N_DRAWS)
    model.train()
    with own_randomness(1), torch.no_grad():
        plain = torch.stack([model(X) for _ in range(N_DRAWS)])
    assert_same_distribution([draws], [plain])


class Gated(Between):
    """Its owner can be switched on alone; what is around it need not be."""

    def noise(self, h: Tensor) -> Tensor:
        return F.dropout(h, 0.5) if self.training else h


class SoftmaxOutside(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Gated()

    def forward(self, x: Tensor) -> Tensor:
        y = self.net(x)
        return y if self.training else y.softmax(-1)


def test_a_softmax_around_the_owner_stays():
    draws = MCDropout(build(SoftmaxOutside), seed=0).draws(X, n_draws=5)
    assert torch.allclose(draws.sum(-1), torch.ones(5, 4))
    assert draws.std(0).max() > 0


class WantsTargets(nn.Module):
    """What it does itself in training mode cannot be seen without targets."""

    def __init__(self):
        super().__init__()
        self.body, self.head = Gated(), nn.Linear(2, 2)

    def forward(self, x: Tensor, targets: Tensor | None = None) -> Tensor:
        if self.training:
            raise ValueError("In training mode, targets should be passed")
        return self.head(self.body(x))


def test_what_cannot_be_tried_is_told():
    model = build(WantsTargets)
    expected = r"(?s)targets should be passed.*\(the model\)"
    with pytest.warns(CaveatWarning, match=expected):
        draws = MCDropout(model, seed=0).draws(X, n_draws=N_DRAWS)
    model.body.train()
    with own_randomness(1), torch.no_grad():
        plain = torch.stack([model(X) for _ in range(N_DRAWS)])
    assert_same_distribution([draws], [plain])


def test_sites_of_a_detector():
    with pytest.warns(CaveatWarning, match="cannot be called like this"):
        sites = caveat.audit(build(WantsTargets), X)
    assert [site.path for site in sites] == ["body"]
