"""Where the rows lie, from tensors made of rows that are known."""

import pytest
import torch
from torch import Tensor

from caveat.sampling.noise import Layout
from caveat.sampling.rows import TURNED, find_layout

A, B = torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([5.0, 6.0, 7.0, 8.0])


def rows(turned: bool) -> Tensor:
    pair = (A, B)
    return torch.stack([pair[i] for i in TURNED]) if turned else torch.stack(pair)


READINGS = {
    "first axis": (lambda x: x, Layout(0)),
    "last axis": (lambda x: x.t(), Layout(1)),
    "heads inside rows": (lambda x: x.view(-1, 2), Layout(0, 2)),
    "rows inside heads": (
        lambda x: x.view(-1, 2, 2).transpose(0, 1).reshape(-1, 2),
        Layout(0, 2, rows_first=False),
    ),
}


@pytest.mark.parametrize("make, layout", READINGS.values(), ids=READINGS)
def test_layouts(make, layout):
    assert find_layout(make(rows(False)), make(rows(True))) == layout


def test_as_wide_as_the_batch():
    """Sizes alone would be guessing: two rows of two, three rows of two."""
    two, three = rows(False)[:, :2], rows(True)[:, :2]
    assert find_layout(two, three) == Layout(0)


NOT = {
    "absent": lambda x: None,
    "no rows": lambda x: A,
    "mixed rows": lambda x: x - x.mean(0),
    "pairs of rows": lambda x: x[:, None].expand(-1, len(x), -1),
}


@pytest.mark.parametrize("make", NOT.values(), ids=NOT)
def test_rows_that_cannot_be_told(make):
    assert find_layout(make(rows(False)), make(rows(True))) is None


def test_two_readings_are_one_too_many_unless_it_does_not_matter():
    same = [torch.ones(n, 2).view(-1, 1) for n in (2, 3)]
    assert find_layout(*same) is None
    assert find_layout(*same, guess=True) == Layout(0, 2)


def test_shapes_without_content():
    plain, folded = (
        [torch.ones(n * k, 3, device="meta") for n in (2, 3)] for k in (1, 2)
    )
    assert find_layout(*plain) == Layout(0)
    assert find_layout(*folded) is None
