"""How the tests of sampling choose models, draw from them, and compare numbers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from scipy import stats
from torch import Tensor
from torch.utils import _pytree as pytree

import caveat
from caveat.errors import UnsupportedModelError
from tests.zoo.models import BY_NAME, ZOO
from tests.zoo.specimen import Specimen

SEED = 7
FALSE_ALARM = 1e-6  # per comparison, two-sided
Z_LIMIT = float(stats.norm.isf(FALSE_ALARM / 2))  # 4.9
MOST_ELEMENTS = 12  # of an output that are compared; the others share their noise


def over_zoo(
    *names: str, where: Callable[[Specimen], bool] = lambda specimen: True
) -> pytest.MarkDecorator:
    """Run a test for every specimen, or those named, that fulfils ``where``."""
    chosen = [BY_NAME[name] for name in names] if names else ZOO
    return pytest.mark.parametrize("specimen", [_param(s) for s in chosen if where(s)])


def _param(specimen: Specimen) -> Any:
    filters = [
        pytest.mark.filterwarnings(f"ignore:{message}")
        for message in specimen.filter_warnings
    ]
    return pytest.param(specimen, id=specimen.name, marks=filters)


@contextmanager
def refusal_allowed(specimen: Specimen) -> Iterator[None]:
    """Skip if the model is refused, where that is an acceptable answer."""
    try:
        yield
    except UnsupportedModelError as error:
        if not specimen.may_refuse:
            raise
        pytest.skip(f"refused: {error}")


def draws_of(
    specimen: Specimen,
    n_draws: int,
    *,
    rows: list[int] | None = None,
    seed: int = SEED,
    shared: bool = True,
    **options: Any,
) -> list[Tensor]:
    """Our draws of what is compared, each tensor (draws, batch, *event)."""
    mc = caveat.MCDropout(specimen.build(), seed=seed, shared=shared)
    args, kwargs = specimen.rows(rows)
    with refusal_allowed(specimen):
        output = mc.draws(*args, n_draws=n_draws, **options, **kwargs)
    return specimen.tensors(output)


def nth(draws: list[Tensor], t: int) -> list[Tensor]:
    return [x[t] for x in draws]


def assert_close(
    found: list[Tensor], expected: list[Tensor], rounding: float, what: str = ""
) -> None:
    """Equal up to rounding, relative to the largest value of each tensor."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape, what
        assert one.dtype == other.dtype, what
        scale = max(1.0, other.abs().max().item())
        gap = (one - other).abs().max().item()
        assert gap <= rounding * scale, f"{what}: off by {gap:.2g} (scale {scale:.2g})"


def same_numbers(one: list[Tensor], other: list[Tensor]) -> bool:
    return all(torch.equal(x, y) for x, y in zip(one, other, strict=True))


def assert_same_distribution(ours: list[Tensor], plain: list[Tensor]) -> None:
    """Means and variances agree, by two-sample z-tests with measured errors."""
    one, other = _elements(ours), _elements(plain)
    assert one.shape[1] == other.shape[1], "different numbers of elements"
    assert float(other.std(0).max()) > 0, "the plain loop itself has no spread"
    assert float(one.std(0).max()) > 0, "our draws have no spread"
    _assert_same(one, other, "mean")
    _assert_same(_squared_gaps(one), _squared_gaps(other), "variance")


def _elements(draws: list[Tensor]) -> Tensor:
    """Some elements of every tensor, evenly spread; shape (draws, elements)."""
    flat = [x.double().flatten(1) for x in draws]
    each = max(1, MOST_ELEMENTS // len(flat))
    chosen = [
        x[:, torch.linspace(0, x.shape[1] - 1, min(each, x.shape[1])).long()]
        for x in flat
    ]
    return torch.cat(chosen, 1)


def _squared_gaps(x: Tensor) -> Tensor:
    """Its mean is the variance, its scatter gives the variance's error."""
    return (x - x.mean(0)).square() * len(x) / (len(x) - 1)


def _assert_same(one: Tensor, other: Tensor, what: str) -> None:
    gap = one.mean(0) - other.mean(0)
    error = (one.var(0) / len(one) + other.var(0) / len(other)).sqrt()
    size = torch.maximum(one.abs().amax(0), other.abs().amax(0))
    error = error + 1e-6 * size + 1e-12  # undrawn elements are equal to rounding
    worst = (gap / error).abs().max().item()
    assert worst < Z_LIMIT, f"{what} is {worst:.1f} standard errors off"


def assert_uncorrelated(one: Tensor, other: Tensor) -> None:
    """Two sets of draws (draws, *event) have correlation 0, element by element."""
    one, other = _elements([one]), _elements([other])
    drawn = (one.std(0) > 0) & (other.std(0) > 0)
    assert drawn.any(), "nothing is drawn"
    one, other = one[:, drawn], other[:, drawn]
    pairs = torch.stack([torch.corrcoef(p)[0, 1] for p in _pairs(one, other)])
    worst = pairs.abs().max().item() * len(one) ** 0.5
    assert worst < Z_LIMIT, f"correlation is {worst:.1f} standard errors from 0"


def _pairs(one: Tensor, other: Tensor) -> list[Tensor]:
    return [torch.stack(pair) for pair in zip(one.T, other.T, strict=True)]


def structure(output: Any) -> pytree.TreeSpec:
    """The nesting of an output, without its numbers."""
    return pytree.tree_structure(output)
