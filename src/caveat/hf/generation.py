"""``caveat.hf.generate``: each continuation is written by one function draw."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    LogitsProcessor,
    LogitsProcessorList,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from caveat import _validation as check
from caveat._progress import ProgressBar
from caveat._random import Seed, as_seed, random_uniform, stream_key
from caveat.errors import InputTypeError, ParameterError, ShapeError
from caveat.hf.checking import check_transformer, check_writer
from caveat.hf.options import Choosing, read_options
from caveat.hf.padding import check_vocabulary, within
from caveat.hf.scoring import Passage, TextScore, averaged
from caveat.hf.texts import decoder_start, has_encoder, scored_in_order
from caveat.sampling import stochastic
from caveat.sampling.engine import Sampler
from caveat.sampling.inputs import check_model


@dataclass(frozen=True)
class Continuations:
    """What T draws of a model write, and how far all of them agree with it.

    Attributes
    ----------
    tokens : Tensor, shape (draws, batch, length)
        New tokens, up to the end of the text and with it; padding behind.
    mask : Tensor, shape (draws, batch, length)
        Which of them are no padding. In what follows, padding is NaN.
    log_probs : Tensor, shape (draws, batch, length)
        Logarithm of the probability of each token, averaged over all draws.
    entropy : Tensor, shape (draws, batch, length)
        Of the averaged distribution of the token, in nats.
    mutual_information : Tensor, shape (draws, batch, length)
        The part of it that comes from the disagreement of the draws.
    draw_log_likelihoods : Tensor, shape (judges, draws, batch)
        Of the continuation that draw t wrote, under each of the draws.
    """

    tokens: Tensor
    mask: Tensor
    log_probs: Tensor
    entropy: Tensor
    mutual_information: Tensor
    draw_log_likelihoods: Tensor

    @property
    def n_draws(self) -> int:
        """How many functions wrote."""
        return len(self.tokens)

    @property
    def log_likelihood(self) -> Tensor:
        """Logarithm of the mean over draws of a continuation's probability (E190).

        Of shape (draws, batch). The draw that wrote it is one of those averaged.
        """
        return averaged(self.draw_log_likelihoods)

    def texts(self, tokenizer: Any) -> list[list[str]]:
        """For each prompt the continuations of all draws, without special tokens."""
        return [
            [
                tokenizer.decode(row[kept].tolist(), skip_special_tokens=True)
                for row, kept in zip(self.tokens[:, i], self.mask[:, i], strict=True)
            ]
            for i in range(self.tokens.shape[1])
        ]


def generate(
    model: nn.Module,
    *,
    input_ids: Tensor,
    attention_mask: Tensor | None = None,
    n_draws: int = 8,
    max_new_tokens: int = 20,
    seed: Seed = 0,
    batch_size: int = 8,
    progress: bool | None = None,
    **options: Any,
) -> Continuations:
    """Let T function draws each continue the prompts, and all of them judge it.

    One ω holds for a whole text, with the key-value cache and without. Padding is cut
    off and prompts of one length run together, so a prompt's continuations depend on
    no other prompt. No global generator is touched.

    Parameters
    ----------
    model : nn.Module
        A model of transformers that can ``generate``: causal, or with encoder and
        decoder; adapters included.
    input_ids : Tensor, shape (batch, tokens)
        Prompts, padded on the left or on the right.
    attention_mask : Tensor, shape (batch, tokens), optional
        1 for tokens of the prompt, 0 for padding.
    n_draws : int
        Continuations of each prompt, and draws that judge each of them.
    max_new_tokens : int
        Where a text ends that has not ended by itself.
    seed : int, torch.Generator or None
        Fixes the draws, and the tokens that are sampled.
    batch_size : int
        Texts run at a time.
    progress : bool, optional
        Show a bar; by default on a terminal, when it takes more than a second.
    **options
        ``do_sample``, ``temperature``, ``top_k``, ``top_p``, ``eos_token_id``,
        ``pad_token_id``, ``min_new_tokens``, ``use_cache``, ``repetition_penalty`` and
        others of transformers; what is not given is as in
        ``model.generation_config``, and limits that are set in neither place are off.
        Beams, assisted decoding and their like are refused.

    Returns
    -------
    Continuations
        Its numbers are those of the model as it is: temperature, limits and penalties
        change what is written, not how it is judged. docs/huggingface.md defines them.
    """
    check_transformer(check_model(model))
    check_writer(model)
    config, choice = read_options(model, max_new_tokens, options)
    number, n_draws = as_seed(seed), check.positive_int("n_draws", n_draws)
    batch_size = check.positive_int("batch_size", batch_size)
    prompts = _prompts(model, config, input_ids, attention_mask)
    writer = _Writer(model, number, config, choice)
    written: dict[tuple[int, int], Tensor] = {}
    with ProgressBar("texts", n_draws * len(prompts), progress) as bar:
        for some in _alike(prompts, batch_size):
            batch = torch.stack([prompts[i] for i in some])
            for draw in range(n_draws):
                for i, tokens in zip(some, writer.write(batch, draw), strict=True):
                    written[draw, i] = tokens
                bar.advance(len(some))
    order = [(draw, i) for draw in range(n_draws) for i in range(len(prompts))]
    passages = [_passage(model, config, prompts[i], written[k, i]) for k, i in order]
    sampler = Sampler(model, number, True, True)
    judged = scored_in_order(sampler, passages, n_draws, batch_size, progress)
    return _gathered(judged, n_draws, config.pad_token_id)


class _Writer:
    """Prompts of one length in, what a draw writes out."""

    def __init__(self, model: Any, seed: int, config: Any, choice: Choosing) -> None:
        self._model, self._seed = model, seed
        self._config, self._choice = config, choice
        ends = config.eos_token_id
        ends = ends if isinstance(ends, list) else [] if ends is None else [ends]
        self._ends = torch.tensor(ends, dtype=torch.long)

    def write(self, prompts: Tensor, draw: int) -> Iterator[Tensor]:
        drawn = stochastic(self._model, seed=self._seed, draw=draw)
        total = prompts.shape[1] + self._config.max_new_tokens
        with within(self._model, total), drawn, torch.no_grad():
            found = self._model.generate(
                input_ids=prompts,
                attention_mask=torch.ones_like(prompts),
                generation_config=self._config,
                logits_processor=_chooser(self._choice, self._seed, draw),
            )
        first = 1 if has_encoder(self._model) else prompts.shape[1]
        return map(self._ended, found[:, first:])

    def _ended(self, row: Tensor) -> Tensor:
        ends = torch.isin(row, self._ends.to(row.device)).nonzero()
        return row[: int(ends[0]) + 1] if len(ends) else row


class _Sampled(LogitsProcessor):
    """Adds Gumbel noise: the largest sum is a sample of the softmax.

    Noise is addressed by draw, step and token, so no generator is needed, and rows
    share it as they share a function.
    """

    def __init__(self, seed: int, draw: int) -> None:
        self._key, self._draw, self._step = stream_key(seed, "hf.generate"), draw, 0

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Scores whose largest is the token that was sampled."""
        draws, place = range(self._draw, self._draw + 1), (self._step,)
        shape = (1, scores.shape[-1])
        uniform = random_uniform(
            self._key, draws, shape, starts=place, device=scores.device
        )
        self._step += 1
        return scores.double() - uniform[0].log().neg().log()


def _chooser(choice: Choosing, seed: int, draw: int) -> LogitsProcessorList:
    made = LogitsProcessorList()
    if choice.temperature is not None:
        made.append(TemperatureLogitsWarper(choice.temperature))
    if choice.top_k is not None:
        made.append(TopKLogitsWarper(choice.top_k))
    if choice.top_p is not None and choice.top_p < 1.0:
        made.append(TopPLogitsWarper(choice.top_p))
    if choice.do_sample:
        made.append(_Sampled(seed, draw))
    return made


def _prompts(model: Any, config: Any, ids: Any, mask: Any) -> list[Tensor]:
    """The prompts without their padding."""
    if not isinstance(ids, Tensor) or ids.dim() != 2 or ids.is_floating_point():
        raise InputTypeError(
            f"input_ids must be whole numbers of shape (batch, tokens). Got "
            f"{_described(ids)}; a tokenizer gives them with return_tensors='pt'."
        )
    if not len(ids):
        raise ParameterError("There must be a prompt at least. Got input_ids of none.")
    if mask is None:
        if (model.generation_config.pad_token_id, config.eos_token_id) != (None, None):
            _check_unpadded(config, ids)
        mask = torch.ones_like(ids)
    if not isinstance(mask, Tensor) or mask.shape != ids.shape:
        raise ShapeError(
            f"attention_mask must have the shape of input_ids, {tuple(ids.shape)}. "
            f"Got {_described(mask)}."
        )
    rows = zip(ids, mask.bool(), strict=True)
    prompts = [_unpadded(*row, number) for number, row in enumerate(rows)]
    check_vocabulary(model, torch.cat(prompts))
    return [prompt.to(model.device) for prompt in prompts]


def _check_unpadded(config: Any, ids: Tensor) -> None:
    """Of prompts without a mask: whether they look as if some were padded."""
    pad, ends = config.pad_token_id, config.eos_token_id
    is_end = pad in ends if isinstance(ends, list) else pad == ends
    for edge in (ids == pad)[:, [0, -1]].T if ids.numel() else ():
        # All prompts may begin or end with a mark of the text, which is no padding.
        if bool(edge.any()) and not (is_end and bool(edge.all())):
            raise ParameterError(
                f"Prompts with padding need their attention_mask. Got input_ids of "
                f"which some begin or end with the padding token {pad}, and no mask."
            )


def _unpadded(row: Tensor, kept: Tensor, number: int) -> Tensor:
    places = kept.nonzero()[:, 0]
    if not len(places):
        raise ParameterError(f"A prompt needs at least one token. Got row {number}.")
    if int(places[-1] - places[0]) + 1 != len(places):
        raise ParameterError(
            f"Padding must be at the ends of a prompt. Got an attention_mask with a "
            f"gap in row {number}."
        )
    return row[places]


def _alike(prompts: list[Tensor], batch_size: int) -> Iterator[list[int]]:
    """Numbers of prompts of one length, some at a time."""
    groups: dict[int, list[int]] = defaultdict(list)
    for i, prompt in enumerate(prompts):
        groups[len(prompt)].append(i)
    for _, group in sorted(groups.items()):
        for begin in range(0, len(group), batch_size):
            yield group[begin : begin + batch_size]


def _passage(model: Any, config: Any, prompt: Tensor, written: Tensor) -> Passage:
    if has_encoder(model):
        return Passage(decoder_start(model, config), written, prompt)
    return Passage(prompt, written)


def _gathered(judged: list[TextScore], n_draws: int, pad: int) -> Continuations:
    """One tensor for each number; draws first."""

    def stacked(rows: list[Tensor], fill: float) -> Tensor:
        whole = torch.nn.utils.rnn.pad_sequence(
            rows, batch_first=True, padding_value=fill
        )
        return whole.view(n_draws, -1, whole.shape[-1])

    tokens = [part.tokens for part in judged]
    own = torch.stack([part.draw_log_likelihoods for part in judged], 1)
    return Continuations(
        stacked(tokens, pad),
        stacked([torch.ones_like(t, dtype=torch.bool) for t in tokens], False),
        stacked([part.log_probs for part in judged], torch.nan),
        stacked([part.entropy for part in judged], torch.nan),
        stacked([part.mutual_information for part in judged], torch.nan),
        own.view(n_draws, n_draws, -1),
    )


def _described(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{value.dtype} of shape {tuple(value.shape)}"
    return type(value).__name__
