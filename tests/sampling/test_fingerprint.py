"""Equal as long as a model is what it was."""

import gc
import weakref

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from caveat.sampling.fingerprint import fingerprint


class Odd(nn.Module):
    """Parts and switches in places of all kinds."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.1))
        self.rate, self.rates, self.named = -1, [0.1, (0.2,)], {"a": 0.3}
        self.hidden = [nn.Dropout(0.5)]
        self.function = F.relu
        self.me = [self]  # a circle
        self.last = torch.zeros(2)

    def method(self, x):
        return x


def set_hook(model):
    model.inner[0].register_forward_hook(lambda module, args, output: output)


CHANGES = {
    "rate": lambda m: setattr(m.inner[1], "p", 0.2),
    "number": lambda m: setattr(m, "rate", -2),  # hashes as -1 does
    "list": lambda m: m.rates.append(0.1),
    "tuple": lambda m: m.rates.__setitem__(1, (0.3,)),
    "dict": lambda m: m.named.update(a=0.4),
    "key": lambda m: m.named.update(b=m.named.pop("a")),
    "part": lambda m: m.inner.__setitem__(1, nn.AlphaDropout(0.1)),
    "new part": lambda m: m.inner.append(nn.Identity()),
    "hidden part": lambda m: setattr(m.hidden[0], "p", 0.6),
    "function": lambda m: setattr(m, "function", F.dropout),
    "method": lambda m: setattr(m, "forward", m.method),
    "new attribute": lambda m: setattr(m, "new", True),
    "hook": set_hook,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changes_are_seen(change):
    model = Odd()
    before = fingerprint(model)
    assert fingerprint(model) == before
    change(model)
    assert fingerprint(model) != before


def test_what_does_not_matter():
    model = Odd().eval()
    before = fingerprint(model)
    model.train()
    model.double()
    with torch.no_grad():
        model.inner[0].weight.zero_()
    model.last = torch.ones(2)  # as models keep what they last did
    assert fingerprint(model) == before


def test_it_holds_no_part_of_the_model():
    model = Odd()
    model.forward = model.method
    kept, gone = fingerprint(model), weakref.ref(model)
    del model
    gc.collect()
    assert kept and gone() is None
