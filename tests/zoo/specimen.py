"""What the zoo says about each of its models, and how to feed one."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

Inputs = tuple[tuple[Any, ...], dict[str, Any]]
POOL = 16  # rows that exist of every input; inputs(n) gives the first n of them


def tensors(output: Any) -> list[Tensor]:
    """The floating-point tensors of an output, in their order."""
    leaves = pytree.tree_leaves(output)
    return [x for x in leaves if isinstance(x, Tensor) and x.is_floating_point()]


@dataclass(frozen=True)
class Specimen:
    """A model of the zoo, with what is expected of it.

    ``row_wise``: a row's output depends on that row alone, so shared and independent
    masks agree in every marginal; models that mix rows are compared on one row, or on
    ``n_rows``.
    ``noise_has_rows``: plain dropout gives every row noise of its own; False for
    noise on weights or positions, which all rows of a pass share anyway.
    ``fixed_sites``: every pass makes the same random calls, whatever its rows, and
    shows where the rows lie in them; if not, a draw cannot be one function of a row.
    ``may_refuse``: an UnsupportedModelError is an acceptable answer (a wrong number
    never is). ``reaches_python``: a drawn value decides what Python does.
    """

    name: str
    make: Callable[[], nn.Module]
    inputs: Callable[[int], Inputs]
    sites: int | None = None
    fires_in_eval: bool = False
    reaches_python: bool = False
    row_wise: bool = True
    n_rows: int | None = None
    noise_has_rows: bool = True
    fixed_sites: bool = True
    may_refuse: bool = False
    needs: str | None = None
    n_draws: int = 300
    rounding: float = 1e-5
    reference: Callable[[nn.Module], Callable[..., Any]] | None = None
    needs_gradients: bool = False  # of its caller
    read: Callable[[Any], Any] = lambda output: output  # what is compared of it
    filter_warnings: tuple[str, ...] = ()

    def build(self) -> nn.Module:
        """The model in eval mode; the same weights at every call."""
        if self.needs is not None and find_spec(self.needs) is None:
            pytest.skip(f"{self.needs} is not installed")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(20)
            return self.make().eval()

    def evaluated(self, rows: list[int] | None = None) -> Any:
        """What the model returns in eval mode."""
        args, kwargs = self.rows(rows)
        with torch.set_grad_enabled(self.needs_gradients):
            output = self.build()(*args, **kwargs)
        return pytree.tree_map_only(Tensor, torch.detach, output)

    def rows(self, index: list[int] | None = None) -> Inputs:
        """Fresh inputs: the rows in ``index``, or as many as the zoo compares."""
        if index is None:
            index = list(range(self.n_rows or (4 if self.row_wise else 1)))
        chosen = torch.tensor(index)
        whole, shorter = self.inputs(POOL), self.inputs(POOL - 1)
        return pytree.tree_map(lambda x, y: _pick(x, y, chosen), whole, shorter)

    def tensors(self, output: Any) -> list[Tensor]:
        """The floating-point tensors of what is compared of an output."""
        return tensors(self.read(output))

    def __repr__(self) -> str:
        return self.name


def _pick(x: Any, shorter: Any, index: Tensor) -> Any:
    """Rows of ``x`` if it has a batch dimension, i.e. if ``shorter`` is shorter."""
    if not isinstance(x, Tensor):
        return x
    if x.shape == shorter.shape:
        return x.clone()
    if x.layout is torch.strided:
        return x[index].clone()
    return x.to_sparse_coo().index_select(0, index).to_sparse(layout=x.layout)


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    """Fixed standard normal numbers that leave the global generator alone."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator).to(dtype)


def features(
    *event: int, dtype: torch.dtype = torch.float32
) -> Callable[[int], Inputs]:
    """Inputs of one tensor with ``event`` as the shape of a row."""
    return lambda n: ((normal(POOL, *event, dtype=dtype)[:n],), {})


def tokens(n: int, *, length: int, vocabulary: int = 31) -> Tensor:
    """Fixed integers in [0, vocabulary), shape (n, length)."""
    generator = torch.Generator().manual_seed(1)
    return torch.randint(vocabulary, (POOL, length), generator=generator)[:n]


def lengths(n: int, *, longest: int) -> Tensor:
    """Fixed lengths of ragged rows, between 2 and ``longest``; row 0 is full."""
    wanted = [longest, 2, longest - 1, 3] * (POOL // 4)
    return torch.tensor(wanted)[:n]


def padding(n: int, *, length: int) -> Tensor:
    """True where a row of ``length`` places is real."""
    return torch.arange(length) < lengths(n, longest=length)[:, None]
