"""Rows of different lengths as one batch, padded on the right.

Noise is addressed by the place of a token, so a text has the same masks in every batch
only if its first token comes first.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from caveat.errors import ParameterError, ShapeError

Row = Mapping[str, Sequence[int]]


def padded(rows: Sequence[Row], pad_token: int) -> dict[str, Tensor]:
    """The rows as tensors, with a mask of what is no padding."""
    longest = max(length_of(row) for row in rows)
    masked = [{"attention_mask": [1] * length_of(row), **row} for row in rows]
    fills = {"input_ids": pad_token}
    return {
        name: torch.tensor(
            [_filled(row[name], longest, fills.get(name, 0)) for row in masked]
        )
        for name in masked[0]
    }


def pad_token_of(model: Any, tokenizer: Any) -> int:
    """What stands behind a text; heads that look for its end go by the model's."""
    for owner in (getattr(model, "config", None), tokenizer):
        number = getattr(owner, "pad_token_id", None)
        if number is not None:
            return int(number)
    return 0


def longest_of(model: Any, tokenizer: Any) -> int | None:
    """How many tokens a text may have; None if nobody says."""
    known = (
        getattr(tokenizer, "model_max_length", None),
        getattr(model.config, "max_position_embeddings", None),
        getattr(model.config, "n_positions", None),
        _places_of(model),
    )
    # A tokenizer that does not know says 10³⁰.
    limits = [n for n in known if isinstance(n, int) and 0 < n < 10**9]
    return min(limits, default=None)


def _places_of(model: nn.Module) -> int | None:
    """Positions of a model that counts from behind its padding token (RoBERTa)."""
    for name, part in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(part, nn.Embedding):
            padding = part.padding_idx
            return None if padding is None else part.num_embeddings - padding - 1
    return None


def check_vocabulary(model: Any, tokens: Tensor) -> None:
    """Whether the model has all tokens; a tokenizer may be that of another."""
    embedding = getattr(model, "get_input_embeddings", lambda: None)()
    size = getattr(embedding, "num_embeddings", None)
    if size is None or not tokens.numel():
        return
    least, most = int(tokens.min()), int(tokens.max())
    if least < 0 or most >= size:
        raise ParameterError(
            f"Tokens must be numbers from 0 to {size - 1}, as the model has {size}. "
            f"Got {most if most >= size else least}; pass the tokenizer that the "
            f"model was trained with."
        )


@contextmanager
def within(model: Any, n_tokens: int) -> Iterator[None]:
    """Say it if a pass failed because a text has more tokens than the model takes.

    Models whose positions are not learned take more than they were trained with, so
    this is only known afterwards.
    """
    try:
        yield
    except IndexError as error:
        longest = longest_of(model, None)
        if longest is None or n_tokens <= longest:
            raise
        raise ParameterError(
            f"A text may have {longest} tokens, what is written included. Got "
            f"{n_tokens}; shorten it."
        ) from error


@contextmanager
def ends_known() -> Iterator[None]:
    """Say what is missing if a head cannot tell where the texts of a batch end."""
    try:
        yield
    except ShapeError as error:
        if "no padding token" not in str(error):
            raise
        raise ParameterError(
            "This head looks for the end of each text by the padding token, and the "
            "model has none. Set model.config.pad_token_id to that of the tokenizer (a "
            "new one, if it has none), or pass batch_size=1."
        ) from error


def length_of(row: Row) -> int:
    """How many tokens a row has."""
    return len(row["input_ids"])


def _filled(values: Sequence[int], length: int, fill: int) -> list[int]:
    return [*values, *[fill] * (length - len(values))]
