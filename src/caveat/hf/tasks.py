"""What a task makes of an item, and of what the draws say of it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from caveat.errors import InputTypeError, ParameterError, ShapeError
from caveat.hf.padding import length_of, padded
from caveat.predictive import CategoricalPredictive
from caveat.sampling import MCDropout


class HeadTask(ABC):
    """One kind of head: how items are encoded, drawn and answered."""

    def __init__(self, model: Any, processor: Any, level: float) -> None:
        self._model, self._processor, self._level = model, processor, level

    @abstractmethod
    def encode(self, item: Any) -> Any:
        """An item as the model takes it, by itself."""

    def length(self, row: Any) -> int:
        """By what rows are put together."""
        return length_of(row)

    def batch(self, rows: Sequence[Any]) -> dict[str, Tensor]:
        """Encoded rows as arguments of the model."""
        return padded(rows, self._processor)

    @abstractmethod
    def answers(
        self, mc: MCDropout, items: Sequence[Any], rows: Sequence[Any], n_draws: int
    ) -> list[Any]:
        """An answer for each row."""

    def _arguments(self, rows: Sequence[Any]) -> dict[str, Any]:
        device = self._model.device
        return {name: value.to(device) for name, value in self.batch(rows).items()}

    def _names(self) -> Mapping[int, str]:
        names: Mapping[int, str] = self._model.config.id2label
        return names

    def _classes(self, predictive: CategoricalPredictive, row: int) -> dict[str, Any]:
        """The answer for one row of classes."""
        own = predictive[row]
        label, names = int(own.label[0]), self._names()
        drawn = own.draws.softmax(-1)[:, 0, label].double()
        ends = torch.tensor([(1 - self._level) / 2, (1 + self._level) / 2])
        lower, upper = drawn.quantile(ends.to(drawn)).tolist()
        return {
            "label": names[label],
            "score": float(own.probs[0, label]),
            "interval": (lower, upper),
            "probs": {names[k]: float(p) for k, p in enumerate(own.probs[0])},
            "entropy": float(own.entropy[0]),
            "mutual_information": float(own.mutual_information[0]),
        }


class TextClassification(HeadTask):
    """One label for a text, or for a pair of texts."""

    def encode(self, item: Any) -> Any:
        """Tokens of a string, or of a pair of strings."""
        return tokens_of(self._processor, item)

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
    """A label for every token that is part of the text."""

    def encode(self, item: Any) -> Any:
        """Tokens of a string."""
        return tokens_of(self._processor, item)

    def answers(
        self, mc: MCDropout, items: Sequence[Any], rows: Sequence[Any], n_draws: int
    ) -> list[Any]:
        """For each row a list, one answer per token."""
        logits = mc.draws(
            **self._arguments(rows), n_draws=n_draws, progress=False
        ).logits
        return [self._tokens(row, logits[:, i]) for i, row in enumerate(rows)]

    def _tokens(self, row: Any, logits: Tensor) -> list[dict[str, Any]]:
        ids = list(row["input_ids"])
        special = set(self._processor.all_special_ids)
        kept = [place for place, token in enumerate(ids) if token not in special]
        if not kept:
            return []
        drawn = CategoricalPredictive.from_logits(logits[:, kept])
        words = self._processor.convert_ids_to_tokens([ids[place] for place in kept])
        return [
            {"word": word, "index": place, **self._classes(drawn, i)}
            for i, (word, place) in enumerate(zip(words, kept, strict=True))
        ]


class Regression(HeadTask):
    """Real numbers for a text, with intervals."""

    def __init__(
        self, model: Any, processor: Any, level: float, precision: Any
    ) -> None:
        super().__init__(model, processor, level)
        if precision is None:
            raise ParameterError(
                "A regression needs precision=tau, the inverse variance of the noise "
                "in y. Got none; pass precision=1/s**2 for noise of standard "
                "deviation s."
            )
        self._precision = precision

    def encode(self, item: Any) -> Any:
        """Tokens of a string, or of a pair of strings."""
        return tokens_of(self._processor, item)

    def answers(
        self, mc: MCDropout, items: Sequence[Any], rows: Sequence[Any], n_draws: int
    ) -> list[Any]:
        """Mean, standard deviations and interval; lists if there are many outputs."""
        drawn = mc.regress(
            **self._arguments(rows),
            n_draws=n_draws,
            output=_logits,
            precision=self._precision,
            progress=False,
        )
        lower, upper = drawn.interval(self._level)
        parts = (drawn.mean, drawn.std, drawn.epistemic_variance.sqrt(), lower, upper)
        return [self._row([part[i] for part in parts]) for i in range(len(rows))]

    def _row(self, parts: Sequence[Tensor]) -> dict[str, Any]:
        mean, std, own, lower, upper = (
            float(part) if part.numel() == 1 else part.tolist() for part in parts
        )
        found = {"mean": mean, "std": std, "epistemic_std": own}
        return {**found, "interval": (lower, upper)}


def tokens_of(tokenizer: Any, item: Any) -> Any:
    """Unpadded tokens of a text or a pair, or an error of ours."""
    pair = isinstance(item, tuple | list) and len(item) == 2
    texts = tuple(item) if pair else (item,)
    if not all(isinstance(text, str) for text in texts):
        raise InputTypeError(
            f"An item must be a string or a pair of strings. Got {type(item).__name__};"
            f" of a data set with columns pass one: (row['text'] for row in data)."
        )
    row = tokenizer(*texts)
    if not row["input_ids"]:
        raise ParameterError(f"A text must have at least one token. Got {item!r}.")
    return dict(row)


def _logits(output: Any) -> Tensor:
    found: Tensor = output.logits
    return found
