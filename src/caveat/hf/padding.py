"""Rows of different lengths as one batch, padded on the right.

Noise is addressed by the place of a token, so a text has the same masks in every batch
only if its first token comes first.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

Row = Mapping[str, Sequence[int]]


def padded(rows: Sequence[Row], tokenizer: Any) -> dict[str, Tensor]:
    """The rows as tensors, with a mask of what is no padding."""
    longest = max(length_of(row) for row in rows)
    fills = {
        "input_ids": getattr(tokenizer, "pad_token_id", None) or 0,
        "token_type_ids": getattr(tokenizer, "pad_token_type_id", 0),
    }
    return {
        name: torch.tensor(
            [_filled(r[name], longest, fills.get(name, 0)) for r in rows]
        )
        for name in rows[0]
    }


def length_of(row: Row) -> int:
    """How many tokens a row has."""
    return len(row["input_ids"])


def _filled(values: Sequence[int], length: int, fill: int) -> list[int]:
    return [*values, *[fill] * (length - len(values))]
