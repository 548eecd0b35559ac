"""Conditional moments merge like those of all draws together."""

import torch
from torch import nn

from caveat.sampling.closed_form.beliefs import Independent
from caveat.sampling.closed_form.conditional import ConditionalMoments
from caveat.sampling.closed_form.last_layer import LastLayer
from tests.sampling.closed_form.nets import assert_same, numbers, seeded


def last_layer(outputs: int) -> LastLayer:
    linear = seeded(lambda: nn.Linear(3, outputs))
    mean, spread = torch.ones(1, 3).double(), torch.full((1, 3), 0.5).double()
    noise = Independent(mean, frozenset({0}), True, spread, apart=True)
    weight, bias = linear.weight.detach(), linear.bias.detach()
    return LastLayer(1, None, noise, weight, bias, True, 0.0, (), ())


def test_merged_is_the_same_as_whole():
    for outputs in (1, 2, 70):
        layer, hidden = last_layer(outputs), numbers(9, 4, 3)
        means = layer.conditional_mean(hidden)
        whole = ConditionalMoments.of(means, hidden.square().sum(0))
        left, right = (
            ConditionalMoments.of(means[part], hidden[part].square().sum(0))
            for part in (slice(0, 5), slice(5, 9))
        )
        (one, slope), (two, same) = (
            moments.belief(layer) for moments in (whole, left.merge(right))
        )
        assert_same(one.mean, two.mean)
        assert_same(one.variance, two.variance)
        assert_same(slope, same)
        if outputs > 64:
            assert one.covariance() is None
        else:
            assert_same(one.covariance(), two.covariance())
            assert_same(one.covariance().diagonal(dim1=1, dim2=2), one.variance)


def test_total_variance_restated():
    """E96."""
    layer, hidden = last_layer(2), numbers(9, 4, 3)
    means = layer.conditional_mean(hidden)
    belief, slope = ConditionalMoments.of(means, hidden.square().sum(0)).belief(layer)
    within = (
        torch.einsum("dk,tbk->bd", layer.weight.square(), 0.5 * hidden.square()) / 9
    )
    assert_same(belief.variance, within + means.var(0, correction=0))
    assert_same(slope, torch.ones_like(slope))  # nothing follows the layer
