"""Graph networks: sparse tensors as input, buffer or made inside, and messages."""

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.zoo.specimen import POOL, Inputs, Specimen, features, normal

N, D, H = 9, 5, 8
BETA = "Sparse .* tensor support is in beta state"
UNPROBED = ".* cannot be run on two or three rows"


def adjacency(layout: torch.layout = torch.sparse_coo) -> Tensor:
    """A fixed graph with self-loops, its rows normalised."""
    dense = (normal(N, N, seed=3) > 0.6).float() + torch.eye(N)
    return (dense / dense.sum(1, keepdim=True)).to_sparse(layout=layout)


def graph(n: int, *, layout: torch.layout = torch.sparse_coo) -> Inputs:
    """All nodes, however many rows are asked for."""
    return (normal(N, D), adjacency(layout)), {}


def graph_first(n: int) -> Inputs:
    return graph(n)[0][::-1], {}


def edges(n: int) -> Inputs:
    return (normal(N, D), adjacency().coalesce().indices()), {}


class TwoLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(D, H), nn.Linear(H, 2)
        self.drop = nn.Dropout(0.4)


class Convolutional(TwoLayers):
    """Kipf and Welling: dropout between two products with the adjacency."""

    def forward(self, x, adjacency):
        h = torch.sparse.mm(adjacency, self.first(x)).relu()
        return adjacency @ self.last(self.drop(h))


class AdjacencyFirst(Convolutional):
    def forward(self, adjacency, x):
        return super().forward(x, adjacency)


class AdjacencyBuffer(Convolutional):
    def __init__(self):
        super().__init__()
        self.register_buffer("adjacency", adjacency())

    def forward(self, x):
        h = torch.spmm(self.adjacency, self.first(x)).relu()
        return torch.sparse.addmm(h[:, :2], self.adjacency, self.last(self.drop(h)))


class AdjacencyParameter(Convolutional):
    def __init__(self):
        super().__init__()
        self.adjacency = nn.Parameter(adjacency(), requires_grad=False)

    def forward(self, x):
        return super().forward(x, self.adjacency)


class DropEdge(TwoLayers):
    """The adjacency is made in the pass, of values that are drawn."""

    def forward(self, x, indices):
        kept = self.drop(torch.ones(indices.shape[1]))
        drawn = torch.sparse_coo_tensor(indices, kept, (N, N))
        h = torch.sparse.mm(drawn, self.first(x)).relu()
        return torch.sparse.mm(drawn.coalesce(), self.last(h))


class DropValues(TwoLayers):
    def forward(self, x, adjacency):
        rows, columns = adjacency.crow_indices(), adjacency.col_indices()
        kept = self.drop(adjacency.values())
        drawn = torch.sparse_csr_tensor(rows, columns, kept, adjacency.shape)
        return self.last((drawn @ self.first(x)).relu())


class SparseAttention(TwoLayers):
    """A graph attention network with torch.sparse.softmax."""

    def __init__(self):
        super().__init__()
        self.score = nn.Linear(2 * H, 1)

    def forward(self, x, indices):
        h = self.drop(self.first(x))
        ends = torch.cat([h[indices[0]], h[indices[1]]], 1)
        scores = F.leaky_relu(self.score(ends)).squeeze(1)
        scores = torch.sparse_coo_tensor(indices, scores, (N, N))
        weights = torch.sparse.softmax(scores, 1).coalesce()
        kept = self.drop(weights.values())
        drawn = torch.sparse_coo_tensor(weights.indices(), kept, (N, N))
        return self.last(torch.sparse.mm(drawn, h))


class Messages(TwoLayers):
    """Message passing by index_add and scatter: no sparse tensor at all."""

    def forward(self, x, indices):
        source, target = indices
        h = self.drop(self.first(x).relu())
        summed = torch.zeros(len(x), H).index_add_(0, target, h[source])
        place = target[:, None].expand(-1, H)
        largest = torch.zeros(len(x), H).scatter_reduce(0, place, h[source], "amax")
        return self.last(summed + largest)


class DrawnPattern(TwoLayers):
    """Edges are sampled: where the values are differs from draw to draw."""

    def forward(self, x, indices):
        kept = torch.rand(indices.shape[1]).topk(7).indices
        drawn = torch.sparse_coo_tensor(indices[:, kept], torch.ones(7), (N, N))
        return self.last((drawn @ self.first(x)).relu())


class SparsifiedActivations(TwoLayers):
    def forward(self, x, adjacency):
        h = self.drop(self.first(x).relu()).to_sparse()
        return adjacency @ torch.sparse.mm(h, self.last.weight.t())


class WritesValues(TwoLayers):
    """The values of the caller's own adjacency are changed in place."""

    def forward(self, x, adjacency):
        adjacency = adjacency.coalesce()
        adjacency.values().mul_(0.9)
        F.dropout(adjacency.values(), 0.4, self.training, inplace=True)
        return self.last((adjacency @ self.first(x)).relu())


class SparseRows(nn.Module):
    """Bags of words: the rows of a sparse input are independent."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(normal(D, H, seed=5))
        self.drop, self.last = nn.Dropout(0.4), nn.Linear(H, 2)

    def forward(self, x):
        return self.last(self.drop((x @ self.weight).relu()))


class MasksSparse(TwoLayers):
    """Sparse times dense keeps the pattern; sums over sparse axes."""

    def forward(self, x, adjacency):
        h = self.drop(self.first(x))
        weights = (adjacency * (h @ h.t()).sigmoid()).coalesce()
        total = torch.sparse.sum(weights, 1).to_dense()
        return self.last(torch.sparse.mm(weights, h) / (1.0 + total)[:, None])


def on_graph(name: str, make: type, inputs=graph, **kwargs) -> Specimen:
    """Of a graph all nodes are compared: the numbers are those of the whole."""
    quiet = (UNPROBED, BETA, ".*[Ss]parse invariant checks", ".* draws noise at")
    return Specimen(name, make, inputs, row_wise=False, filter_warnings=quiet, **kwargs)


def words(n: int, *, layout: torch.layout) -> Inputs:
    dense = features(D)(POOL)[0][0]
    return ((dense * (dense > 0))[:n].to_sparse(layout=layout),), {}


SPECIMENS = [
    on_graph("gcn", Convolutional, sites=1),
    on_graph(
        "gcn_csr", Convolutional, partial(graph, layout=torch.sparse_csr), sites=1
    ),
    on_graph(
        "gcn_csc", Convolutional, partial(graph, layout=torch.sparse_csc), sites=1
    ),
    on_graph("gcn_adjacency_first", AdjacencyFirst, graph_first, sites=1),
    on_graph("gcn_buffer", AdjacencyBuffer, lambda n: ((normal(N, D),), {}), sites=1),
    on_graph(
        "gcn_parameter", AdjacencyParameter, lambda n: ((normal(N, D),), {}), sites=1
    ),
    on_graph("drop_edge", DropEdge, edges, sites=1),
    on_graph("drop_values", DropValues, partial(graph, layout=torch.sparse_csr)),
    on_graph("sparse_attention", SparseAttention, edges, sites=2),
    on_graph("messages", Messages, edges, sites=1),
    on_graph(
        "drawn_pattern", DrawnPattern, edges, reaches_python=True, fires_in_eval=True
    ),
    on_graph(
        "sparsified_activations", SparsifiedActivations, sites=1, reaches_python=True
    ),
    on_graph("writes_values", WritesValues, sites=1, reaches_python=True),
    on_graph("masks_sparse", MasksSparse, sites=1),
    Specimen(
        "sparse_rows", SparseRows, partial(words, layout=torch.sparse_coo), sites=1
    ),
    Specimen(
        "sparse_rows_csr",
        SparseRows,
        partial(words, layout=torch.sparse_csr),
        sites=1,
        filter_warnings=(BETA,),
    ),
]
