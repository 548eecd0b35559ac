"""The order of modules in a chain."""

from torch import nn

from caveat.theory.chains import in_order


class Backwards(nn.Sequential):
    """No chain: what it calls cannot be read off the order of its modules."""

    def forward(self, x):
        for module in reversed(list(self)):
            x = module(x)
        return x


def test_nested_chains_are_flattened():
    first, second, third = nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)
    model = nn.Sequential(first, nn.Sequential(second, nn.Sequential(third)))
    assert list(in_order(model)) == [first, second, third]


def test_a_module_used_twice_comes_twice():
    twice = nn.Linear(2, 2)
    assert list(in_order(nn.Sequential(twice, nn.ReLU(), twice))).count(twice) == 2


def test_what_is_no_chain_comes_whole():
    odd = Backwards(nn.Linear(2, 2), nn.ReLU())
    assert list(in_order(odd)) == [odd]
    assert list(in_order(nn.Sequential(nn.ReLU(), odd)))[1] is odd
