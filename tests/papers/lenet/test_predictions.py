"""What networks say, and how good that is."""

import copy

import numpy as np
import pytest
import torch

from caveat.papers.lenet import (
    LabelScore,
    NetJob,
    as_input,
    drawn_logits,
    grouped,
    standard_log_probs,
)
from tests.statistics import assert_mean_is


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_groups_and_scores_are_averages():
    log_probs = torch.randn(7, 20, 4, generator=generator()).double().log_softmax(-1)
    label = torch.randint(4, (20,), generator=generator(1))
    found = list(grouped(log_probs, 3))
    assert len(found) == 2
    expected = log_probs[3:6].exp().mean(0)
    torch.testing.assert_close(found[1].exp(), expected)
    score = LabelScore.of(found[1], label)
    own = np.log(expected.numpy()[np.arange(20), label.numpy()])
    assert score.log_likelihood == pytest.approx(own.mean())
    assert score.log_likelihood_se == pytest.approx(own.std(ddof=1) / np.sqrt(20))
    assert score.error == (expected.argmax(-1) != label).double().mean()


def test_draws_of_the_last_layer_average_to_the_standard_logits(few):
    """Masks before a linear layer: averaged weights give the mean logits exactly."""
    net = NetJob("end", 10, 0).train(few)
    before = copy.deepcopy(net.state_dict())
    image = few.test.image[:5]
    with torch.no_grad():
        expected = net(as_input(image)).double()
    draws = drawn_logits(net, image, n_draws=2_000).double()
    assert_mean_is(draws.flatten(1), expected.flatten())
    torch.testing.assert_close(standard_log_probs(net, image), expected.log_softmax(-1))
    assert all(torch.equal(before[k], v) for k, v in net.state_dict().items())
