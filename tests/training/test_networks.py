"""Networks as modules: what they are made of, and the way back."""

import pytest
import torch
from torch import nn

from caveat import noise
from caveat.training import NetworkSpec
from caveat.training.members import Architecture
from caveat.training.networks import (
    flat_parameters,
    network,
    noise_sites,
    of_one,
    untrained,
)
from caveat.training.streams import first_weights

SPECS = [
    NetworkSpec((4, 3), drop_rate=0.2, input_drop_rate=0.1),
    NetworkSpec((4, 3), drop_rate=0.2),
    NetworkSpec((4,), drop_rate=0.0, input_drop_rate=0.1, noise="gaussian"),
    NetworkSpec((), input_drop_rate=0.1),
    NetworkSpec((4,), drop_rate=0.0),
]


def a_net(spec):
    return untrained(spec, Architecture.of(spec, 2, 1), 5)


@pytest.mark.parametrize("spec", SPECS, ids=lambda s: f"{s.hidden} {s.drop_rates}")
def test_noise_sites_are_where_the_modules_are(spec):
    net = a_net(spec)
    found = [site for site in noise_sites(spec) if site is not None]
    kinds = (nn.Dropout, noise.GaussianNoise)
    expected = {n: m for n, m in net.named_children() if isinstance(m, kinds)}
    assert {site.path: repr(site.module) for site in found} == {
        path: repr(module) for path, module in expected.items()
    }
    assert len(noise_sites(spec)) == len(spec.drop_rates)


@pytest.mark.parametrize("spec", SPECS, ids=lambda s: f"{s.hidden} {s.drop_rates}")
def test_parameters_come_back(spec):
    flat = torch.from_numpy(first_weights(Architecture.of(spec, 2, 1), 5))
    assert torch.equal(flat_parameters(a_net(spec)), flat)


def test_a_family_wraps_the_layers_with_a_rate():
    spec = NetworkSpec((4,), drop_rate=0.1, noise=noise.Concrete())
    plain, _, noisy = a_net(spec)
    assert isinstance(plain, nn.Linear)
    assert isinstance(noisy, noise.NoisyLayer) and not noisy.training


def test_a_network_holds_copies():
    spec = NetworkSpec((), input_drop_rate=0.1)
    flat = torch.ones(1, 3)
    net = network(spec, of_one(flat, Architecture(2, (), 1)))
    flat.zero_()
    assert net[-1].weight.tolist() == [[1.0, 1.0]] and net[-1].bias.tolist() == [1.0]
