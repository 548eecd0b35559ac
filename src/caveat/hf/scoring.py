"""How probable given tokens are, token by token, over the draws of a model.

A draw ω_s reads a whole text in one pass, so that one function judges all of it. With
p_s(v) = p(v | the tokens before, ω_s) and p̄ the mean of p_s over the T draws, a token y
has (ledger E8 to E10)

- the log-probability log p̄(y),
- the entropy H[p̄], all doubt about the token,
- the mutual information H[p̄] - mean of H[p_s], what of it the draws disagree on,

and a text of tokens y_1 … y_L has the log-likelihood
log((1/T) Σ_s Π_i p_s(y_i)) (ledger E190): probabilities of the whole text are averaged,
so that a draw stays one function. It is not the sum of the log-probabilities above, in
which every token may take another function.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from caveat.errors import InputTypeError, ParameterError
from caveat.hf.padding import within
from caveat.sampling.arguments import call_batch
from caveat.sampling.engine import Sampler
from caveat.sampling.trees import unflatten


class Passage(NamedTuple):
    """Tokens to be judged, after those that are given."""

    given: Tensor  # shape: (context,), at least one
    judged: Tensor  # shape: (tokens,), at least one
    source: Tensor | None = None  # shape: (source,), what an encoder reads


@dataclass(frozen=True)
class TextScore:
    """What the draws of a model say of a text.

    Attributes
    ----------
    tokens : Tensor, shape (tokens,)
        The tokens that were judged, by number.
    log_probs : Tensor, shape (tokens,)
        Logarithm of the averaged probability of each, given those before it.
    entropy : Tensor, shape (tokens,)
        Of the averaged distribution from which the token could have come, in nats.
    mutual_information : Tensor, shape (tokens,)
        The part of the entropy that comes from the disagreement of the draws.
    draw_log_likelihoods : Tensor, shape (draws,)
        Of all tokens together, under each draw.
    """

    tokens: Tensor
    log_probs: Tensor
    entropy: Tensor
    mutual_information: Tensor
    draw_log_likelihoods: Tensor

    @property
    def log_likelihood(self) -> float:
        """Logarithm of the mean over draws of the probability of all tokens (E190)."""
        return float(averaged(self.draw_log_likelihoods))

    @property
    def perplexity(self) -> float:
        """exp(-log_likelihood / tokens): as if so many tokens were equally likely."""
        return math.exp(-self.log_likelihood / len(self.tokens))


def scored(
    sampler: Sampler, passages: Sequence[Passage], n_draws: int
) -> list[TextScore]:
    """Judge passages together, in one batch."""
    places = _places(passages)
    tokens = torch.cat([passage.judged for passage in passages])
    seen = _Judgement(tokens)
    arguments = _arguments(passages)
    with within(sampler.model, max(part.shape[1] for part in arguments.values())):
        for logits in _logits(sampler, arguments, n_draws):
            seen.add(logits[places])
    sizes = [len(passage.judged) for passage in passages]
    parts = zip(*(part.split(sizes, -1) for part in seen.parts()), strict=True)
    return [
        TextScore(own, log_probs, entropy, information, by_draw.sum(-1))
        for own, log_probs, entropy, information, by_draw in parts
    ]


def check_order(sampler: Sampler, passage: Passage) -> None:
    """Refuse a model whose answer to a token hangs on the tokens behind it.

    Models that read both ways say that they are no decoders, and some decoders say so
    as well; so one draw reads a passage twice, with another last token.
    """
    if getattr(sampler.model.config, "is_decoder", None) is not False:
        return
    read = torch.cat([passage.given, passage.judged])[:-1]
    if passage.source is not None or len(read) < 2:
        return
    other = torch.cat([read[:-1], (read[-1:] == 0).long()])
    call = {"input_ids": torch.stack([read, other])}
    call["attention_mask"] = torch.ones_like(call["input_ids"])
    with within(sampler.model, len(read)):
        (logits,) = _logits(sampler, call, 1)
    before = logits[:, :-1].double()
    if not torch.allclose(before[0], before[1], rtol=1e-3, atol=1e-3):
        raise InputTypeError(
            f"The model must read from left to right. Got "
            f"{type(sampler.model).__name__}, which sees the tokens that it would "
            f"judge; set config.is_decoder=True if it was trained as a decoder."
        )


def averaged(log_values: Tensor) -> Tensor:
    """Logarithm of the mean over the first axis, which holds the draws."""
    return log_values.logsumexp(0) - math.log(len(log_values))


class _Judgement:
    """Sums over draws for tokens that are judged."""

    def __init__(self, tokens: Tensor) -> None:
        self._tokens = tokens
        self._probs: Any = 0.0
        self._entropy: Any = 0.0
        self._own: list[Tensor] = []

    def add(self, logits: Tensor) -> None:
        """One more draw, of shape (tokens, vocabulary)."""
        log_probs = logits.double().log_softmax(-1)
        if bool(log_probs.isnan().any()):
            raise ParameterError(
                "The model must give numbers. Got NaN among its logits; look at its "
                "weights, and at texts longer than it has positions for."
            )
        probs = log_probs.exp()
        self._probs = self._probs + probs
        self._entropy = self._entropy + torch.special.entr(probs).sum(-1)
        self._own.append(log_probs.gather(-1, self._tokens[:, None])[:, 0])

    def parts(self) -> tuple[Tensor, ...]:
        """Tokens, log-probabilities, entropy, mutual information; and by draws."""
        own = torch.stack(self._own)  # shape: (draws, tokens)
        n_draws = len(own)
        # E8: H[p̄];  E10: H[p̄] - mean of H[p_s]
        entropy = torch.special.entr(self._probs / n_draws).sum(-1)
        information = (entropy - self._entropy / n_draws).clamp(min=0.0)
        return self._tokens, averaged(own), entropy, information, own


def _logits(
    sampler: Sampler, arguments: dict[str, Tensor], n_draws: int
) -> Iterator[Tensor]:
    call = {**arguments, "use_cache": False}
    batch = call_batch(sampler.model, (), call, axis=0)
    session = sampler.session(batch)
    read = arguments.get("decoder_input_ids", arguments["input_ids"]).shape[1]
    for leaves in session.outputs(range(n_draws)):
        logits = unflatten(leaves, session.structure).logits
        # Prompts that were tuned (PEFT) come first, and are no tokens of the text.
        yield logits[:, logits.shape[1] - read :]


def _arguments(passages: Sequence[Passage]) -> dict[str, Tensor]:
    """All tokens but the last, which is only foretold; padded on the right."""
    read = [torch.cat([p.given, p.judged])[:-1] for p in passages]
    sources = [p.source for p in passages if p.source is not None]
    if not sources:
        return {"input_ids": _padded(read), "attention_mask": _mask(read)}
    return {
        "input_ids": _padded(sources),
        "attention_mask": _mask(sources),
        "decoder_input_ids": _padded(read),  # causal: what is padded is not seen
    }


def _places(passages: Sequence[Passage]) -> tuple[Tensor, Tensor]:
    """Where in (rows, tokens) the logits of judged tokens are."""
    rows = [torch.full((len(p.judged),), i) for i, p in enumerate(passages)]
    first = [len(p.given) - 1 for p in passages]
    spans = [
        torch.arange(a, a + len(p.judged)) for a, p in zip(first, passages, strict=True)
    ]
    return torch.cat(rows), torch.cat(spans)


def _padded(rows: Sequence[Tensor]) -> Tensor:
    return torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True)


def _mask(rows: Sequence[Tensor]) -> Tensor:
    return _padded([torch.ones_like(row) for row in rows])
