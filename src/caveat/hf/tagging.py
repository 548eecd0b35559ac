"""A label for every token or word of a text."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from caveat.errors import ParameterError
from caveat.hf.tasks import Asked, HeadTask, checked_logits, texts_of
from caveat.predictive import CategoricalPredictive
from caveat.sampling import MCDropout


class TokenClassification(HeadTask):
    """A label for every token that is part of the text, or for every word."""

    def __init__(self, model: Any, processor: Any, asked: Asked) -> None:
        super().__init__(model, processor, asked)
        self._fast = bool(getattr(processor, "is_fast", False))
        if asked.words and not self._fast:
            raise ParameterError(
                f"words=True needs a fast tokenizer, which knows the words of tokens. "
                f"Got {type(processor).__name__}."
            )

    def encode(self, item: Any) -> Any:
        """Tokens of a string, or of a list of words, and where they come from."""
        options = {"return_special_tokens_mask": True}
        if self._fast:
            options["return_offsets_mapping"] = True
        if isinstance(item, list) and all(isinstance(word, str) for word in item):
            return self._tokens_of(item, is_split_into_words=True, **options)
        return self._tokens_of(*texts_of(item, most=1), **options)

    def batch(self, rows: Sequence[Any]) -> dict[str, Tensor]:
        """The arguments of the model, without where tokens come from."""
        return super().batch([_without_places(row) for row in rows])

    def answers(
        self, mc: MCDropout, items: Sequence[Any], rows: Sequence[Any], n_draws: int
    ) -> list[Any]:
        """For each row a list, one answer per token or word."""
        drawn = mc.draws(**self._arguments(rows), n_draws=n_draws, progress=False)
        logits = checked_logits(drawn, 4)
        return [
            self._tokens(item, row, logits[:, i])
            for i, (item, row) in enumerate(zip(items, rows, strict=True))
        ]

    def _tokens(self, item: Any, row: Any, logits: Tensor) -> list[dict[str, Any]]:
        kept = self._places(row)
        if not kept:
            return []
        drawn = CategoricalPredictive.from_logits(logits[:, kept])
        return [
            {**self._place(item, row, place), **self._classes(drawn, i)}
            for i, place in enumerate(kept)
        ]

    def _places(self, row: Any) -> list[int]:
        """Tokens that are answered for: of the text, or the first of each word."""
        special = row["special_tokens_mask"]
        kept = [place for place, is_special in enumerate(special) if not is_special]
        if not self._asked.words:
            return kept
        words = row.word_ids()
        return [p for p in kept if p == 0 or words[p] != words[p - 1]]

    def _place(self, item: Any, row: Any, place: int) -> dict[str, Any]:
        token = self._processor.convert_ids_to_tokens(row["input_ids"][place])
        found = {"word": token, "index": place}
        if not self._fast:
            return found
        text: Any = item["text"] if isinstance(item, Mapping) else item
        if isinstance(text, list):  # of words: offsets would be inside of a word
            number = row.word_ids()[place]
            return {**found, "word": text[number], "index": number}
        start, end = row["offset_mapping"][place]
        if self._asked.words:
            span = row.word_to_chars(row.word_ids()[place])
            start, end = span.start, span.end
            found = {"word": text[start:end], "index": row.word_ids()[place]}
        return {**found, "start": start, "end": end}


def _without_places(row: Any) -> dict[str, Any]:
    extra = ("offset_mapping", "special_tokens_mask")
    return {name: value for name, value in row.items() if name not in extra}
