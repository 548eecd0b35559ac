"""What a task makes of an item, and of what the draws say of it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from caveat.errors import InputTypeError, ParameterError, ShapeError
from caveat.hf.padding import length_of, longest_of, pad_token_of, padded
from caveat.predictive import CategoricalPredictive
from caveat.sampling import MCDropout


class Asked(NamedTuple):
    """What a pipeline was asked for, beside its task."""

    level: float = 0.9
    precision: Any = None
    top_k: int | None = None
    truncation: bool = False
    words: bool = False


class HeadTask(ABC):
    """One kind of head: how items are encoded, drawn and answered."""

    def __init__(self, model: Any, processor: Any, asked: Asked) -> None:
        self._model, self._processor, self._asked = model, processor, asked

    @abstractmethod
    def encode(self, item: Any) -> Any:
        """An item as the model takes it, by itself."""

    def single(self, items: Any) -> bool:
        """Whether this is one item, not many."""
        return isinstance(items, str | Mapping | tuple)

    def length(self, row: Any) -> int:
        """By what rows are put together."""
        return length_of(row)

    def batch(self, rows: Sequence[Any]) -> dict[str, Tensor]:
        """Encoded rows as arguments of the model."""
        return padded(rows, pad_token_of(self._model, self._processor))

    @abstractmethod
    def answers(
        self, mc: MCDropout, items: Sequence[Any], rows: Sequence[Any], n_draws: int
    ) -> list[Any]:
        """An answer for each row."""

    def _arguments(self, rows: Sequence[Any]) -> dict[str, Any]:
        device = self._model.device
        return {name: value.to(device) for name, value in self.batch(rows).items()}

    def _tokens_of(self, *texts: Any, **options: Any) -> Any:
        """Unpadded tokens of one text or a pair, cut if that was asked for."""
        longest = longest_of(self._model, self._processor)
        if self._asked.truncation:
            if longest is None:
                raise ParameterError(
                    "truncation=True needs a length. Got a tokenizer and a model that "
                    "say none; set tokenizer.model_max_length."
                )
            options |= {"truncation": True, "max_length": longest}
        row = self._processor(*texts, **options)
        if not row["input_ids"]:
            raise ParameterError(f"A text must have at least one token. Got {texts!r}.")
        if longest is not None and length_of(row) > longest:
            raise ParameterError(
                f"A text may have {longest} tokens. Got {length_of(row)}; pass "
                f"truncation=True to have texts cut, or split it."
            )
        return row

    def _names(self) -> Mapping[int, str]:
        names: Mapping[int, str] = self._model.config.id2label
        return names

    def _classes(self, predictive: CategoricalPredictive, row: int) -> dict[str, Any]:
        """The answer for one row of classes."""
        own = predictive[row]
        label, names = int(own.label[0]), self._names()
        drawn = own.draws.softmax(-1)[:, 0, label].double()
        level, kept = self._asked.level, self._asked.top_k
        order = list(range(own.probs.shape[-1]))
        if kept is not None:
            order = own.probs[0].argsort(descending=True)[:kept].tolist()
        ends = torch.tensor([(1 - level) / 2, (1 + level) / 2])
        lower, upper = drawn.quantile(ends.to(drawn)).tolist()
        return {
            "label": names[label],
            "score": float(own.probs[0, label]),
            "interval": (lower, upper),
            "probs": {names[k]: float(own.probs[0, k]) for k in order},
            "entropy": float(own.entropy[0]),
            "mutual_information": float(own.mutual_information[0]),
        }


class TextClassification(HeadTask):
    """One label for a text, or for a pair of texts."""

    def encode(self, item: Any) -> Any:
        """Tokens of a string, or of a pair of strings."""
        return dict(self._tokens_of(*texts_of(item)))

    def answers(
        self, mc: MCDropout, items: Sequence[Any], rows: Sequence[Any], n_draws: int
    ) -> list[Any]:
        """Label, probabilities and their doubt."""
        drawn = mc.classify(
            **self._arguments(rows), n_draws=n_draws, output=_logits, progress=False
        )
        return [self._classes(drawn, i) for i in range(len(rows))]


class ImageClassification(TextClassification):
    """One label for an image; the processor makes pixels of it."""

    def encode(self, item: Any) -> Any:
        """Pixels of one image."""
        return self._processor(item, return_tensors="pt")["pixel_values"]

    def single(self, items: Any) -> bool:
        """Whether this is one image: a file name, a picture or one array."""
        shape = getattr(items, "shape", None)
        return isinstance(items, str) if shape is None else len(shape) < 4

    def length(self, row: Any) -> int:
        """All images count as equally long."""
        return 0

    def batch(self, rows: Sequence[Any]) -> dict[str, Tensor]:
        """Images of one size, one after the other."""
        if len({tuple(row.shape) for row in rows}) > 1:
            raise ShapeError(
                "Images must have one size after the image processor. Got several; "
                "let the processor resize them, or pass batch_size=1."
            )
        return {"pixel_values": torch.cat(list(rows))}


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
        logits = mc.draws(
            **self._arguments(rows), n_draws=n_draws, progress=False
        ).logits
        return [
            self._tokens(item, row, logits[:, i])
            for i, (item, row) in enumerate(zip(items, rows, strict=True))
        ]

    def _tokens(self, item: Any, row: Any, logits: Tensor) -> list[dict[str, Any]]:
        kept = self._kept(row)
        if not kept:
            return []
        drawn = CategoricalPredictive.from_logits(logits[:, kept])
        return [
            {**self._place(item, row, place), **self._classes(drawn, i)}
            for i, place in enumerate(kept)
        ]

    def _kept(self, row: Any) -> list[int]:
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


class Regression(HeadTask):
    """Real numbers for a text, with intervals."""

    def __init__(self, model: Any, processor: Any, asked: Asked) -> None:
        super().__init__(model, processor, asked)
        if asked.precision is None:
            raise ParameterError(
                "A regression needs precision=tau, the inverse variance of the noise "
                "in y. Got none; pass precision=1/s**2 for noise of standard "
                "deviation s."
            )

    def encode(self, item: Any) -> Any:
        """Tokens of a string, or of a pair of strings."""
        return dict(self._tokens_of(*texts_of(item)))

    def answers(
        self, mc: MCDropout, items: Sequence[Any], rows: Sequence[Any], n_draws: int
    ) -> list[Any]:
        """Mean, standard deviations and interval; lists if there are many outputs."""
        drawn = mc.regress(
            **self._arguments(rows),
            n_draws=n_draws,
            output=_logits,
            precision=self._asked.precision,
            progress=False,
        )
        lower, upper = drawn.interval(self._asked.level)
        parts = (drawn.mean, drawn.std, drawn.epistemic_variance.sqrt(), lower, upper)
        return [self._row([part[i] for part in parts]) for i in range(len(rows))]

    def _row(self, parts: Sequence[Tensor]) -> dict[str, Any]:
        mean, std, own, lower, upper = (
            float(part) if part.numel() == 1 else part.tolist() for part in parts
        )
        found = {"mean": mean, "std": std, "epistemic_std": own}
        return {**found, "interval": (lower, upper)}


def texts_of(item: Any, most: int = 2) -> tuple[str, ...]:
    """The text or the pair that an item is, or an error of ours."""
    if isinstance(item, Mapping) and "text" in item:
        named = (item["text"], item.get("text_pair"))
        texts: Any = named[:1] if named[1] is None else named
    else:
        pair = isinstance(item, tuple | list) and len(item) == 2
        texts = tuple(item) if pair else (item,)
    if len(texts) > most or not all(isinstance(text, str) for text in texts):
        wanted = "a string or a pair of strings" if most > 1 else "a string"
        raise InputTypeError(
            f"An item must be {wanted}, or a dict with 'text'. Got "
            f"{type(item).__name__}; of a data set with other columns pass one: "
            f"(row['review'] for row in data)."
        )
    return tuple(texts)


def _without_places(row: Any) -> dict[str, Any]:
    extra = ("offset_mapping", "special_tokens_mask")
    return {name: value for name, value in row.items() if name not in extra}


def _logits(output: Any) -> Tensor:
    found: Tensor = output.logits
    return found
