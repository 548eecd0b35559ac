"""``caveat.hf.score``: how probable given texts are, and how far draws agree on it."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from caveat import _validation as check
from caveat._progress import ProgressBar
from caveat._random import Seed, as_seed
from caveat.errors import InputTypeError, ParameterError
from caveat.hf.checking import check_processor, check_transformer, check_writer
from caveat.hf.padding import check_vocabulary
from caveat.hf.scoring import Passage, TextScore, check_order, scored
from caveat.sampling.engine import Sampler
from caveat.sampling.inputs import check_model


def score(
    model: nn.Module,
    texts: Any,
    tokenizer: Any,
    *,
    n_draws: int = 8,
    seed: Seed = 0,
    batch_size: int = 8,
    progress: bool | None = None,
) -> Any:
    """Judge given texts token by token, over draws of a language model.

    Texts are sorted by length, padded on the right and masked; noise is addressed by
    the place of a token. So numbers depend neither on ``batch_size`` nor on the order
    or company of the texts, up to rounding.

    Parameters
    ----------
    model : nn.Module
        A causal language model of transformers, or one with encoder and decoder;
        adapters included.
    texts : str, pair, list of them, or column of a frame
        Of a text the first token is given and all others are judged. Of a pair
        (prompt, continuation) all tokens of the second are judged; they are made of
        the two texts apart, and the second gets no special tokens. With an encoder,
        texts must be pairs (source, target), and the target has the special tokens
        that the tokenizer gives it.
    tokenizer : tokenizer
        What makes tokens of texts.
    n_draws : int
        T of the papers.
    seed : int, torch.Generator or None
        Fixes the draws.
    batch_size : int
        Texts run at a time.
    progress : bool, optional
        Show a bar; by default on a terminal, when it takes more than a second.

    Returns
    -------
    TextScore or list of TextScore
        One for one text, a list for a list, in the order given. docs/huggingface.md
        defines its numbers.
    """
    if hasattr(texts, "to_list"):  # a column of pandas or polars
        texts = texts.to_list()
    single = isinstance(texts, str | tuple)
    if not single and not isinstance(texts, list):
        raise InputTypeError(
            f"texts must be a string, a pair or a list of them. Got "
            f"{type(texts).__name__}; of another sequence pass list(texts)."
        )
    check_transformer(check_model(model))
    check_writer(model)
    check_processor(tokenizer)
    sampler = Sampler(model, as_seed(seed), True, True)
    n_draws = check.positive_int("n_draws", n_draws)
    batch_size = check.positive_int("batch_size", batch_size)
    passages = [_passage(model, tokenizer, t) for t in ([texts] if single else texts)]
    found = scored_in_order(sampler, passages, n_draws, batch_size, progress)
    return found[0] if single else found


def scored_in_order(
    sampler: Sampler,
    passages: Sequence[Passage],
    n_draws: int,
    batch_size: int,
    progress: bool | None,
) -> list[TextScore]:
    """Judge passages, the shortest first; the answers are in the order given."""
    for passage in passages:
        for part in passage:
            if part is not None:
                check_vocabulary(sampler.model, part)
    order = sorted(range(len(passages)), key=lambda i: _length(passages[i]))
    if order:
        check_order(sampler, passages[order[-1]])
    found: dict[int, TextScore] = {}
    with ProgressBar("texts", len(passages), progress) as bar:
        for begin in range(0, len(order), batch_size):
            some = order[begin : begin + batch_size]
            parts = scored(sampler, [passages[i] for i in some], n_draws)
            found.update(zip(some, parts, strict=True))
            bar.advance(len(some))
    return [found[i] for i in range(len(passages))]


def _length(passage: Passage) -> tuple[int, int]:
    source = 0 if passage.source is None else len(passage.source)
    return len(passage.given) + len(passage.judged), source


def _passage(model: Any, tokenizer: Any, text: Any) -> Passage:
    pair = isinstance(text, tuple) and len(text) == 2
    parts: tuple[Any, ...] = text if pair else (text,)
    if not all(isinstance(part, str) for part in parts):
        raise InputTypeError(
            f"A text must be a string, or a pair of strings. Got {text!r:.80}."
        )
    if has_encoder(model):
        if not pair:
            raise InputTypeError(
                f"A model with an encoder needs pairs (source, target). Got "
                f"{text!r:.80}."
            )
        source = _tokens(model, tokenizer(parts[0]))
        # Tokenizers of translators have other words, or marks, for what is written.
        target = _tokens(model, tokenizer(text_target=parts[1]))
        return Passage(decoder_start(model), _some(target, text), _some(source, text))
    if pair:
        given = _tokens(model, tokenizer(parts[0]))
        judged = _tokens(model, tokenizer(parts[1], add_special_tokens=False))
        return Passage(_some(given, text), _some(judged, text))
    whole = _tokens(model, tokenizer(text))
    if len(whole) < 2:
        raise ParameterError(
            f"A text must have at least two tokens, as the first is given. Got "
            f"{text!r:.80} with {len(whole)}; pass (prompt, text)."
        )
    return Passage(whole[:1], whole[1:])


def has_encoder(model: Any) -> bool:
    """Whether a model of transformers reads a source before it writes."""
    return bool(model.config.is_encoder_decoder)


def decoder_start(model: Any, writing: Any = None) -> Tensor:
    """The token that a decoder begins with, by a configuration of its writing."""
    writing = model.generation_config if writing is None else writing
    # In the order of transformers, when it generates.
    start = getattr(writing, "decoder_start_token_id", None)
    if start is None:
        start = getattr(model.config, "decoder_start_token_id", None)
    if start is None:
        start = getattr(writing, "bos_token_id", None)
    if start is None:
        raise ParameterError(
            "A decoder needs its first token. Got none; set "
            "model.generation_config.decoder_start_token_id."
        )
    return torch.tensor([start], device=model.device)


def _tokens(model: Any, row: Any) -> Tensor:
    return torch.tensor(row["input_ids"], dtype=torch.long, device=model.device)


def _some(tokens: Tensor, text: Any) -> Tensor:
    if not len(tokens):
        raise ParameterError(f"Each part must have at least one token. Got {text!r}.")
    return tokens
