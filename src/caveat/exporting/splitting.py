"""A traced pass in two parts: what no noise reaches, and the rest.

The first part is run once, the second for every draw. Values that lead from one to the
other are the *seam*. To compute several draws at a time, the second part is given the
rows of each draw one after the other: values of the seam are repeated along their rows.
"""

import operator
from dataclasses import dataclass
from typing import Any

from torch import Tensor, fx

from caveat._torch import rows_factor, symbolic_sizes
from caveat.errors import UnsupportedModelError
from caveat.exporting.tracing import Traced

_SIZE = """The model cannot be exported: a size in its graph ({expression}) does not
follow from the number of rows in a way that can be written down."""

_NO_ROWS = """The model cannot be exported: behind its first site nothing is left that
has the rows of the batch, so that their number is not known there."""


@dataclass(frozen=True)
class Parts:
    """The two parts of a pass.

    Attributes
    ----------
    clean : fx.GraphModule
        From the inputs to the seam, a tuple.
    noisy : fx.GraphModule
        From the seam and the noise of each site to the output.
    seam : tuple of tuple
        For each value of the seam its sizes: numbers, or (k,) for k times the rows.
    axes : tuple of int or None
        For each value of the seam where its rows lie; None if it has none.
    repeats : bool
        Whether the rows of the seam can be repeated.
    per_row : int
        Numbers that the second part makes for a row.
    output : tuple
        For each axis of the output its size, or (k,) if that is k times the rows.
    """

    clean: fx.GraphModule
    noisy: fx.GraphModule
    seam: tuple[tuple[int | tuple[int], ...], ...]
    axes: tuple[int | None, ...]
    repeats: bool
    per_row: int
    output: tuple[int | tuple[int], ...]


def split(traced: Traced) -> Parts:
    """Take a traced pass apart."""
    return _Split(traced).parts()


class _Split:
    def __init__(self, traced: Traced) -> None:
        self._whole, self._symbol = traced.graph, traced.symbol
        nodes = list(self._whole.graph.nodes)
        given = [node for node in nodes if node.op == "placeholder"]
        count = len(traced.inputs)
        self._inputs, self._noises = given[:count], given[count:]
        self._result: fx.Node = next(n for n in nodes if n.op == "output").args[0]
        self._noisy = _reached_from(self._noises)
        self._seam = [
            node
            for node in nodes
            if node not in self._noisy
            and symbolic_sizes(node) is not None
            and node.op != "get_attr"
            and any(user in self._noisy for user in node.users)
        ]
        self._copies: dict[fx.Node, fx.Node] = {}
        self._rows: fx.Node | None = None

    def parts(self) -> Parts:
        axes = [self._row_axis(node) for node in self._seam]
        return Parts(
            self._clean_part(),
            self._noisy_part(),
            tuple(self._sizes(node) for node in self._seam),
            tuple(axis if isinstance(axis, int) else None for axis in axes),
            all(axis is not False for axis in axes),
            self._work(),
            self._sizes(self._result),
        )

    def _sizes(self, node: fx.Node) -> tuple[int | tuple[int], ...]:
        """Sizes as numbers, or (k,) for k times the rows."""
        sizes = symbolic_sizes(node)
        assert sizes is not None
        factors = [rows_factor(size, self._symbol) for size in sizes]
        if None in factors:
            raise UnsupportedModelError(_SIZE.format(expression=sizes))
        pairs = zip(factors, sizes, strict=True)
        return tuple((k,) if k else int(n) for k, n in pairs)

    def _row_axis(self, node: fx.Node) -> int | bool | None:
        """Where the rows lie; False if they cannot be repeated."""
        sizes = symbolic_sizes(node)
        assert sizes is not None
        factors = [rows_factor(size, self._symbol) for size in sizes]
        if not any(factors) and None not in factors:
            return None
        if sorted(factors, key=str) != sorted([0] * (len(factors) - 1) + [1], key=str):
            return False
        return factors.index(1)

    def _work(self) -> int:
        """Numbers made per row behind the seam."""
        total = 0
        for node in self._noisy:
            sizes = symbolic_sizes(node)
            if sizes is None:
                continue
            numel = 1
            for size in sizes:
                numel *= rows_factor(size, self._symbol) or _plain(size)
            total += numel
        return total

    def _clean_part(self) -> fx.GraphModule:
        graph = fx.Graph()
        copies: dict[fx.Node, fx.Node] = {}
        for node in self._whole.graph.nodes:
            if node in self._noises or node in self._noisy or node.op == "output":
                continue
            copies[node] = graph.node_copy(node, copies.__getitem__)
        graph.output(tuple(copies[node] for node in self._seam))
        graph.eliminate_dead_code()
        return fx.GraphModule(self._whole, graph)

    def _noisy_part(self) -> fx.GraphModule:
        graph = fx.Graph()
        for node in (*self._seam, *self._noises):
            name = node.name if node.op == "placeholder" else f"seam_{node.name}"
            self._copies[node] = graph.placeholder(name)
        self._rows = self._rows_of(graph)
        for node in self._whole.graph.nodes:
            if node in self._noisy and node not in self._noises:
                if node.op != "output":
                    self._copies[node] = graph.node_copy(node, self._known(graph))
        graph.output(self._copies[self._result])
        graph.eliminate_dead_code()
        return fx.GraphModule(self._whole, graph)

    def _rows_of(self, graph: fx.Graph) -> fx.Node | None:
        from torch import ops

        for node in (*self._seam, *self._noises):
            for axis, size in enumerate(symbolic_sizes(node) or ()):
                if rows_factor(size, self._symbol) == 1:
                    args = (self._copies[node], axis)
                    return graph.call_function(ops.aten.sym_size.int, args)
        return None

    def _known(self, graph: fx.Graph) -> Any:
        def copy(node: fx.Node) -> fx.Node:
            if node not in self._copies:
                self._copies[node] = self._outside(graph, node)
            return self._copies[node]

        return copy

    def _outside(self, graph: fx.Graph, node: fx.Node) -> fx.Node:
        """A weight, or a size, that the noisy part reads and the clean part makes."""
        if node.op == "get_attr":
            return graph.node_copy(node)
        value = node.meta.get("val")
        if value is None or isinstance(value, Tensor):
            raise UnsupportedModelError(_SIZE.format(expression=node))
        factor = rows_factor(value, self._symbol)
        if factor:
            if self._rows is None:
                raise UnsupportedModelError(_NO_ROWS)
            if factor == 1:
                return self._rows
            return graph.call_function(operator.mul, (self._rows, factor))
        if getattr(node.target, "__module__", "") == "_operator":
            return graph.node_copy(node, self._known(graph))
        raise UnsupportedModelError(_SIZE.format(expression=value))


def _plain(size: Any) -> int:
    return size if isinstance(size, int) else 1


def _reached_from(nodes: list[fx.Node]) -> dict[fx.Node, None]:
    """These nodes and all that read them, in the order of the graph."""
    reached = dict.fromkeys(nodes)
    for node in nodes[0].graph.nodes if nodes else ():
        if any(argument in reached for argument in node.all_input_nodes):
            reached[node] = None
    return reached
