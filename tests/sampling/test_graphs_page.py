"""docs/graphs.md runs; its networks are those of the plain loop."""

import pytest
import torch

import caveat
from tests.pages import run_page
from tests.sampling.comparing import assert_same_distribution

pytest.importorskip("torch_geometric")
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*draws noise at"),
    pytest.mark.filterwarnings("ignore:.*cannot be run on two or three rows"),
    pytest.mark.filterwarnings("ignore:.*[Ss]parse"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.fixture(scope="module")
def page():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return run_page("docs/graphs.md")


@pytest.mark.parametrize(("name", "sites"), [("gcn", 1), ("gat", 3), ("sage", 1)])
def test_nodes_are_those_of_the_plain_loop(page, name, sites):
    net, x, edges = page[name], page["x"], page["edges"]
    assert len(caveat.audit(net, x, edges)) == sites
    ours = caveat.MCDropout(net, seed=1).draws(x, edges, n_draws=128)
    plain = looped(net, x, edges)
    assert_same_distribution([ours], [plain])


def test_graphs_are_those_of_the_plain_loop(page):
    batch = next(iter(page["DataLoader"](page["graphs"], 6)))
    given = (batch.x, batch.edge_index, batch.batch, batch.num_graphs)
    net = page["mc"].model
    ours = caveat.MCDropout(net, seed=1).draws(*given, n_draws=128)
    assert ours.shape == (128, 6, 2)
    assert_same_distribution([ours], [looped(net, *given)])


def looped(net, *given):
    net.train()
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        found = torch.stack([net(*given) for _ in range(128)])
    net.eval()
    return found
