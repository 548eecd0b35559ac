"""Caffe's updates restated, and masks."""

import torch
import torch.nn.functional as F
from torch import nn

from caveat.papers.lenet import SOLVER, NetJob, make_lenet
from caveat.papers.lenet.training import noisy_pass
from tests.statistics import assert_mean_is


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_noisy_pass_drops_half_and_doubles_the_rest():
    net = nn.Sequential(nn.Dropout(0.5))
    x = torch.rand(8, 5, 12, 12).to(memory_format=torch.channels_last) + 0.5
    found = torch.stack([noisy_pass(net, x, generator(s)) for s in range(400)]) / x
    assert set(found.unique().tolist()) == {0.0, 2.0}
    assert_mean_is(found.flatten(1), torch.tensor(1.0))
    pairs = (found[:, 0, 0, 0, 0] - 1) * (found[:, 0, 1, 0, 0] - 1)
    assert_mean_is(pairs, torch.tensor(0.0))  # neighbours are independent


def test_noisy_pass_has_masks_of_its_own():
    net, x = make_lenet("everywhere", generator()), torch.rand(4, 1, 28, 28)
    first = noisy_pass(net, x, generator(1))
    torch.manual_seed(9)
    state = torch.random.get_rng_state()
    assert torch.equal(noisy_pass(net, x, generator(1)), first)
    assert not torch.equal(noisy_pass(net, x, generator(2)), first)
    assert torch.equal(torch.random.get_rng_state(), state)
    plain = make_lenet("none", generator())
    torch.testing.assert_close(noisy_pass(plain, x, generator(1)), plain(x))


def test_training_is_caffes_update_restated(few):
    job = NetJob("none", n_steps=6, seed=4)  # 200 images: the 4th batch has 8
    found = list(job.train(few).parameters())
    net, order = job.build(), generator(3 * 4 + 1)
    weights = list(net.parameters())
    speed = [torch.zeros_like(w) for w in weights]
    rows = [r for _ in range(2) for r in torch.randperm(200, generator=order).split(64)]
    for step in range(6):
        x = few.train.image[rows[step]][:, None] / 256
        loss = F.cross_entropy(net(x), few.train.label[rows[step]])
        gradients = torch.autograd.grad(loss, weights)
        rate = 0.01 * (1 + 1e-4 * step) ** -0.75
        with torch.no_grad():
            for k, (w, g) in enumerate(zip(weights, gradients, strict=True)):
                speed[k] = 0.9 * speed[k] + g + 5e-4 * w
                w -= rate * (2.0 if k % 2 else 1.0) * speed[k]
    for mine, expected in zip(found, weights, strict=True):
        torch.testing.assert_close(mine, expected, rtol=1e-4, atol=1e-6)


def test_the_solver_is_the_released_one():
    assert (SOLVER.base_rate, SOLVER.gamma, SOLVER.power) == (0.01, 1e-4, 0.75)
    assert (SOLVER.momentum, SOLVER.weight_decay, SOLVER.batch_size) == (0.9, 5e-4, 64)
