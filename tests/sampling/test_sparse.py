"""Sparse tensors: taken apart and put together, and never changed under the user."""

import pytest
import torch
from torch import nn

import caveat
from caveat import MCDropout
from caveat.errors import UnsupportedModelError
from caveat.sampling.sparse import LAYOUTS, parts, rebuilt, same_rows, take_rows
from tests.zoo.graphs import Convolutional, N, SparseRows, WritesValues, adjacency
from tests.zoo.specimen import normal

pytestmark = [
    pytest.mark.filterwarnings("ignore:Sparse .* tensor support is in beta"),
    pytest.mark.filterwarnings("ignore:.* cannot be run on two or three rows"),
]


def in_layout(dense: torch.Tensor, layout: torch.layout) -> torch.Tensor:
    blocks = layout in (torch.sparse_bsr, torch.sparse_bsc)
    return dense.to_sparse(layout=layout, blocksize=(2, 2) if blocks else None)


@pytest.mark.parametrize("layout", sorted(LAYOUTS, key=str), ids=str)
def test_parts_make_the_whole_and_rows_can_be_taken(layout):
    dense = normal(4, 6) * (normal(4, 6, seed=1) > 0)
    sparse = in_layout(dense, layout)
    again = rebuilt(sparse, torch.clone)
    assert again.layout is layout
    assert torch.equal(again.to_dense(), dense)
    doubled = rebuilt(sparse, lambda p: 2 * p if p.is_floating_point() else p)
    assert torch.equal(doubled.to_dense(), 2 * dense)
    assert parts(sparse)[0].is_floating_point()
    assert torch.equal(take_rows(sparse, 0, [2, 0, 0]).to_dense(), dense[[2, 0, 0]])
    assert same_rows(sparse, 0, 1, 1)
    assert not same_rows(sparse, 0, 0, 1)


def test_a_dense_tensor_is_its_only_part():
    x = normal(2, 3)
    assert parts(x) == (x,)
    assert torch.equal(take_rows(x, 0, [1]), x[[1]])


@pytest.mark.filterwarnings("ignore:WritesValues draws noise at")
def test_values_of_the_caller_stay_as_they_are():
    x, graph = normal(N, 5), adjacency().coalesce()
    before = graph.to_dense()
    MCDropout(WritesValues(), seed=0).draws(x, graph, n_draws=3)
    assert torch.equal(graph.to_dense(), before)


def test_a_graph_is_replayed():
    """Sparse constants and drawn values are on the tape: the model runs a few times."""
    calls = []

    class Counting(Convolutional):
        def forward(self, x, adjacency):
            calls.append(1)
            return super().forward(x, adjacency)

    MCDropout(Counting(), seed=0).draws(normal(N, 5), adjacency(), n_draws=50)
    assert len(calls) < 30  # looks, and one recorded pass


def test_a_sparse_tensor_changed_in_place_is_refused():
    class Scales(Convolutional):
        def forward(self, x, adjacency):
            return super().forward(x, adjacency.mul_(0.5))

    graph = adjacency()
    before = graph.to_dense()
    with pytest.raises(UnsupportedModelError, match="in place"):
        MCDropout(Scales()).draws(normal(N, 5), graph, n_draws=2)
    assert torch.equal(graph.to_dense(), before)


def test_a_sparse_output_is_refused():
    class Sparse(Convolutional):
        def forward(self, x, adjacency):
            return super().forward(x, adjacency).to_sparse()

    with pytest.raises(UnsupportedModelError, match="to_dense"):
        MCDropout(Sparse()).draws(normal(N, 5), adjacency(), n_draws=2)


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_sparse_rows_are_rows(layout):
    """Split into batches, and equal to the same rows when they are dense."""
    dense = (normal(6, 5) * (normal(6, 5) > 0)).contiguous()
    mc = MCDropout(SparseRows(), seed=0)
    expected = mc.draws(dense, n_draws=4)
    sparse = dense.to_sparse(layout=layout)
    assert torch.allclose(mc.draws(sparse, n_draws=4), expected, atol=1e-6)
    parted = mc.draws(sparse, n_draws=4, batch_size=4)
    assert torch.allclose(parted, expected, atol=1e-6)


def test_gradients_through_a_drawn_adjacency():
    """Those of the same mask applied by hand."""

    class Edges(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(normal(5, 2, seed=2))
            self.drop = nn.Dropout(0.5)

        def forward(self, x, values):
            kept = self.drop(values)
            graph = torch.sparse_coo_tensor(indices, kept, (N, N))
            return torch.sparse.mm(graph, x @ self.weight), kept

    indices, values = parts(adjacency().coalesce())[::-1]
    x, model = normal(N, 5), Edges()
    output, kept = MCDropout(model, seed=3).function(0)(x, values)
    (slope,) = torch.autograd.grad(output.square().sum(), model.weight)
    dense = torch.zeros(N, N).index_put((indices[0], indices[1]), kept.detach())
    by_hand = dense @ x @ model.weight
    (expected,) = torch.autograd.grad(by_hand.square().sum(), model.weight)
    assert torch.allclose(slope, expected, rtol=1e-4, atol=1e-5)
    assert caveat.audit(model, x, values)[0].rate == 0.5
