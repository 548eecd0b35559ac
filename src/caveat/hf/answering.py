"""Extractive question answering: a distribution over the spans of a context."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from caveat.errors import InputTypeError, ParameterError
from caveat.hf.tasks import HeadTask
from caveat.predictive import CategoricalPredictive
from caveat.sampling import MCDropout

_LONGEST = 15  # tokens of an answer, as in transformers


class QuestionAnswering(HeadTask):
    """The classes are all spans of the context of at most 15 tokens.

    Under a draw, p(span) is proportional to exp(start logit + end logit).
    """

    def encode(self, item: Any) -> Any:
        """Tokens of question and context, and which are the context's."""
        question, context = _parts(item)
        if not getattr(self._processor, "is_fast", False):
            raise ParameterError(
                "Question answering needs a fast tokenizer, which knows where tokens "
                f"stand in the text. Got {type(self._processor).__name__}."
            )
        return self._tokens_of(question, context, return_offsets_mapping=True)

    def batch(self, rows: Sequence[Any]) -> dict[str, Tensor]:
        """The arguments of the model, without the places in the text."""
        bare = [{k: v for k, v in r.items() if k != "offset_mapping"} for r in rows]
        return super().batch(bare)

    def answers(
        self, mc: MCDropout, items: Sequence[Any], rows: Sequence[Any], n_draws: int
    ) -> list[Any]:
        """The most probable span of each context."""
        drawn = mc.draws(**self._arguments(rows), n_draws=n_draws, progress=False)
        return [
            self._span(item, row, drawn.start_logits[:, i], drawn.end_logits[:, i])
            for i, (item, row) in enumerate(zip(items, rows, strict=True))
        ]

    def _span(self, item: Any, row: Any, start: Tensor, end: Tensor) -> dict[str, Any]:
        _, context = _parts(item)
        places = [i for i, part in enumerate(row.sequence_ids()) if part == 1]
        if not places:
            raise ParameterError(f"A context must have tokens. Got {context!r}.")
        spans = [(a, b) for a in places for b in places if a <= b < a + _LONGEST]
        first, last = (torch.tensor(ends) for ends in zip(*spans, strict=True))
        logits = start[:, first] + end[:, last]
        # A class that cannot be: a single span is one of two, and certain.
        logits = torch.nn.functional.pad(logits, (0, 1), value=-torch.inf)
        found = CategoricalPredictive.from_logits(logits[:, None])
        order = found.probs[0, : len(spans)].argsort(descending=True, stable=True)
        named = [
            _described(context, row["offset_mapping"], spans[i], found.probs[0, i])
            for i in order[: self._asked.top_k or 1].tolist()
        ]
        several = {} if self._asked.top_k is None else {"spans": named}
        return {
            **named[0],
            "entropy": float(found.entropy[0]),
            "mutual_information": float(found.mutual_information[0]),
            **several,
        }


def _described(
    context: str, offsets: Any, span: tuple[int, int], prob: Any
) -> dict[str, Any]:
    left, right = offsets[span[0]][0], offsets[span[1]][1]
    answer = context[left:right]
    return {"answer": answer, "start": left, "end": right, "score": float(prob)}


def _parts(item: Any) -> tuple[str, str]:
    if isinstance(item, Mapping) and {"question", "context"} <= set(item):
        return item["question"], item["context"]
    raise InputTypeError(
        f"An item must be a dict with 'question' and 'context'. Got {item!r:.80}."
    )
