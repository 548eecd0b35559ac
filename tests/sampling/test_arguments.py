"""Which arguments have the rows: found out, not taken from the first."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import caveat
from caveat import MCDropout
from caveat.errors import ParameterError
from tests.sampling.comparing import assert_close
from tests.zoo.specimen import normal

ROWS = normal(8, 3, 4)


class Graph(nn.Module):
    """A matrix for all rows comes first."""

    def __init__(self):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.body, self.head = nn.Linear(4, 6), nn.Linear(6, 2)

    def hidden(self, x):
        return F.dropout(self.body(x).relu(), 0.5, self.training)

    def forward(self, adjacency, x):
        return self.head(self.hidden(adjacency @ x))


class Pooled(Graph):
    def forward(self, adjacency, x):
        return super().forward(adjacency, x).mean(1)


class Edges(Graph):
    def forward(self, edges, x):
        source, target = edges
        weight = torch.arange(1.0, 4.0)[target][:, None]
        return self.head(self.hidden(x[:, source] * weight).sum(1))


class Tempered(Graph):
    def forward(self, temperature, x):
        return self.head(self.hidden(x)).sum(1) / temperature


class Memory(Graph):
    """Rows look things up in a table, which may be as long as the batch."""

    def forward(self, x, table):
        weights = (x.mean(1) @ table.T).softmax(-1)
        return self.head(self.hidden(weights @ table))


EDGES = torch.tensor([[0, 1, 2, 0], [1, 2, 0, 2]])
CASES = {
    "adjacency": (Graph, lambda x: (normal(3, 3, seed=1), x)),
    "pooled": (Pooled, lambda x: (normal(3, 3, seed=1), x)),
    "edges": (Edges, lambda x: (EDGES, x)),
    "scalar": (Tempered, lambda x: (torch.tensor(2.0), x)),
    "one number": (Tempered, lambda x: (torch.tensor([2.0]), x)),
    "a number per class": (Tempered, lambda x: (torch.tensor([2.0, 3.0]), x)),
    "table": (Memory, lambda x: (x, normal(5, 4, seed=1))),
}


@pytest.mark.parametrize("n_rows", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("case", CASES)
def test_rows_are_found_behind_shared_arguments(case, n_rows):
    """Also where a shared argument is as long as the batch (2, 3 and 5 rows)."""
    make, arguments = CASES[case]
    mc, x = MCDropout(make().eval(), seed=1), ROWS[:n_rows]
    whole = mc.draws(*arguments(x), n_draws=3)
    assert whole.shape[1] == n_rows
    for size in (1, 2):
        parts = mc.draws(*arguments(x), n_draws=3, batch_size=size)
        assert_close([parts], [whole], 1e-5)
    turned = mc.draws(*arguments(x.flip(0)), n_draws=3)
    assert_close([turned], [whole.flip(1)], 1e-5)
    function = mc.function(2)(*arguments(x))
    assert_close([function], [whole[2]], 1e-5)


def test_audit_and_context_find_them_too():
    model = Graph().eval()
    adjacency = normal(3, 3, seed=1)
    (site,) = caveat.audit(model, adjacency, ROWS)
    assert site.mask_shape == (1, 3, 6)
    with caveat.stochastic(model, seed=1), torch.no_grad():
        found = model(adjacency, ROWS)
    expected = MCDropout(model, seed=1).draws(adjacency, ROWS, n_draws=1)
    assert_close([found], [expected[0]], 1e-5)


def test_rows_on_another_axis_are_joined_there():
    class Steps(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(4, 6), nn.Dropout(0.5), nn.Linear(6, 2))

        def forward(self, x):
            return self.net(x), self.net(x).mean(0)

    mc = MCDropout(Steps().eval(), seed=1, batch_dim=1)
    x = normal(5, 7, 4)  # (time, batch, features)
    whole, parts = (mc.draws(x, n_draws=3, batch_size=size) for size in (None, 3))
    assert whole[0].shape == (3, 5, 7, 2)
    assert_close(list(parts), list(whole), 1e-5)


@pytest.mark.filterwarnings("ignore:The rows of Bag are not independent")
def test_outputs_without_rows_are_not_cut():
    class Bag(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(4, 6), nn.Dropout(0.5), nn.Linear(6, 2))

        def forward(self, x):
            return self.net(x).mean(0, keepdim=True)

    with pytest.raises(ParameterError, match="batch_size=2 would change"):
        MCDropout(Bag().eval(), seed=1).draws(ROWS[:, 0], n_draws=2, batch_size=2)
