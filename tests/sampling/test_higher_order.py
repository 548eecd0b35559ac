"""Operations with an inside: draws in it are seen (run_unknown), branches followed."""

import subprocess
import sys

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import caveat
from caveat import MCDropout
from caveat.errors import UnsupportedModelError
from tests.zoo.control import D, Drawn
from tests.zoo.specimen import normal


@torch.library.custom_op("caveat_tests::halves", mutates_args=())
def halves(x: Tensor) -> Tensor:
    return x * torch.bernoulli(torch.full_like(x, 0.5))


class DrawsInOperator(Drawn):
    def forward(self, x):
        return self.last(halves(self.hidden(x)))


def test_an_operator_that_draws_is_refused_and_the_generator_put_back():
    mc = MCDropout(DrawsInOperator(), seed=0)
    state = torch.get_rng_state()
    with pytest.raises(UnsupportedModelError, match="caveat_tests::halves draws"):
        mc.draws(normal(4, D), n_draws=2)
    assert torch.equal(torch.get_rng_state(), state)


class Kept(Drawn):
    def forward(self, x):
        return self.last(self.hidden(x).tanh())


class Recomputed(Drawn):
    reentrant = False

    def forward(self, x):
        def inner(x):
            return self.hidden(x).tanh()

        return self.last(checkpoint(inner, x, use_reentrant=self.reentrant))


@pytest.mark.parametrize("reentrant", [True, False])
def test_gradients_through_a_checkpoint_are_those_without(reentrant):
    """Recomputed in the backward pass, other noise would be drawn."""
    torch.manual_seed(0)
    kept, recomputed = Kept(), Recomputed()
    recomputed.reentrant = reentrant
    recomputed.load_state_dict(kept.state_dict())
    slopes = []
    for model in (kept, recomputed):
        x = normal(4, D).requires_grad_()
        MCDropout(model, seed=1).function(2)(x).square().sum().backward()
        with caveat.stochastic(model, seed=1):
            model(x).square().sum().backward()
        slopes.append([x.grad, model.first.weight.grad])
    for one, other in zip(*slopes, strict=True):
        assert torch.allclose(one, other, rtol=1e-5)


def test_the_users_own_checkpoints_are_left_alone():
    runs = []
    function = nn.Linear(D, 2)

    def inner(x):
        runs.append(1)
        return function(x).tanh()

    MCDropout(Recomputed(), seed=0).function(0)(normal(4, D))
    checkpoint(inner, normal(4, D), use_reentrant=False).sum().backward()
    assert len(runs) == 2


FRESH = """
import warnings; warnings.simplefilter("error")
import torch, caveat
from tests.zoo.operations import Branch
from tests.zoo.control import D
model, x = Branch().eval(), torch.ones(4, D)
draws = caveat.MCDropout(model, seed=0).draws(x, n_draws=20)
assert draws.std(0).min() > 0
out = caveat.MCDropout(model, seed=0).function(1)(x)
assert torch.allclose(out, draws[1], atol=1e-6)
out.sum().backward()
with torch.no_grad():
    assert model(x).shape == draws[0].shape  # the user's own call
print("right")
"""


def test_the_compiler_is_not_loaded_under_our_modes():
    """torch.cond loads it: traced there, it would fail, and again for the user."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FRESH], capture_output=True, text=True
    )
    assert done.stdout.strip() == "right", done.stderr[-2000:]
