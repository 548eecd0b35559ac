"""What a task makes of an item, and of what the draws say of it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import Any, NamedTuple

import torch
from torch import Tensor

from caveat.errors import InputTypeError, ParameterError, ShapeError
from caveat.hf.padding import (
    check_vocabulary,
    length_of,
    longest_of,
    pad_token_of,
    padded,
)
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
        self._longest = longest_of(model, processor)

    @abstractmethod
    def encode(self, item: Any) -> Any:
        """An item as the model takes it, by itself."""

    def single(self, items: Any) -> bool:
        """Whether this is one item, not many."""
        return isinstance(items, str | bytes | Mapping | tuple)

    def length(self, row: Any) -> int:
        """By what rows are put together."""
        return length_of(row)

    def batch(self, rows: Sequence[Any]) -> dict[str, Tensor]:
        """Encoded rows as arguments of the model."""
        return padded(rows, pad_token_of(self._model, self._processor))

    def can_pad(self, mc: MCDropout, short: Any, long: Any) -> bool:
        """Whether the answer to a text is the same in a batch with a longer one.

        Nearly all models are given a mask and go by it. Some read their answer off the
        last place, whatever stands there (XLNet); for them texts of one length make a
        batch.
        """
        alone, together = (
            _leading(mc.draws(**self._arguments(rows), n_draws=1, progress=False))
            for rows in ([short], [short, long])
        )
        if alone is None or together is None:
            return True
        beside = together[tuple(slice(n) for n in alone.shape)]
        # Far above what rounding does in a deep network, far below another answer.
        near = max(1e-3, 8 * torch.finfo(alone.dtype).eps)
        apart = float((alone - beside).abs().max())
        return apart <= near * (1 + float(alone.abs().max()))

    @abstractmethod
    def answers(
        self, mc: MCDropout, items: Sequence[Any], rows: Sequence[Any], n_draws: int
    ) -> list[Any]:
        """An answer for each row."""

    def _arguments(self, rows: Sequence[Any]) -> dict[str, Any]:
        """On the device of the model; real numbers (pixels) in its precision."""
        device, dtype = self._model.device, self._model.dtype
        found = self.batch(rows)
        if "input_ids" in found:
            check_vocabulary(self._model, found["input_ids"])
        return {
            name: value.to(device, dtype if value.is_floating_point() else None)
            for name, value in found.items()
        }

    def _tokens_of(self, *texts: Any, **options: Any) -> Any:
        """Unpadded tokens of one text or a pair, cut if that was asked for."""
        longest = self._longest
        if self._asked.truncation:
            if longest is None:
                raise ParameterError(
                    "truncation=True needs a length. Got a tokenizer and a model that "
                    "say none; set tokenizer.model_max_length beforehand."
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

    def _names(self, n_classes: int) -> Mapping[int, str]:
        """The names of the classes, by number."""
        told = self._model.config.id2label or {}
        names = {int(number): str(name) for number, name in told.items()}
        every = set(range(n_classes))
        if set(names) != every or len(set(names.values())) < n_classes:
            raise ParameterError(
                f"model.config.id2label must give each of the {n_classes} classes a "
                f"name of its own. Got {told!r:.200}."
            )
        return names

    def _classes(self, predictive: CategoricalPredictive, row: int) -> dict[str, Any]:
        """The answer for one row of classes."""
        own = predictive[row]
        label, names = int(own.label[0]), self._names(own.probs.shape[-1])
        return {
            "label": names[label],
            "score": float(own.probs[0, label]),
            "interval": self._interval(own.draws.double().softmax(-1)[:, 0, label]),
            "probs": {names[k]: float(own.probs[0, k]) for k in self._kept(own.probs)},
            "entropy": float(own.entropy[0]),
            "mutual_information": float(own.mutual_information[0]),
        }

    def _kept(self, probs: Tensor) -> list[int]:
        """The classes that are told of, of probabilities of shape (1, classes)."""
        if self._asked.top_k is None:
            return list(range(probs.shape[-1]))
        order: list[int] = probs[0].argsort(descending=True).tolist()
        return order[: self._asked.top_k]

    def _interval(self, drawn: Tensor) -> tuple[float, float]:
        """Where a probability lies over the draws."""
        level = self._asked.level
        ends = torch.tensor([(1 - level) / 2, (1 + level) / 2])
        lower, upper = drawn.quantile(ends.to(drawn)).tolist()
        return lower, upper


class TextClassification(HeadTask):
    """One label for a text, or for a pair of texts; or labels apart from each other.

    Which of both is asked of the model's configuration, as in transformers: a head with
    ``problem_type="multi_label_classification"``, or with one output, has a sigmoid for
    each label.
    """

    def __init__(self, model: Any, processor: Any, asked: Asked) -> None:
        super().__init__(model, processor, asked)
        self._apart = _labels_are_apart(model)

    def encode(self, item: Any) -> Any:
        """Tokens of a string, or of a pair of strings."""
        return dict(self._tokens_of(*texts_of(item)))

    def answers(
        self, mc: MCDropout, items: Sequence[Any], rows: Sequence[Any], n_draws: int
    ) -> list[Any]:
        """Label, probabilities and their doubt."""
        call = {**self._arguments(rows), "n_draws": n_draws, "progress": False}
        if self._apart:
            drawn = checked_logits(mc.draws(**call), 3)
            return [self._labels(drawn[:, i]) for i in range(len(rows))]
        found = mc.classify(**call, output=partial(checked_logits, n_axes=2))
        return [self._classes(found, i) for i in range(len(rows))]

    def _labels(self, logits: Tensor) -> dict[str, Any]:
        """The answer for one row of labels, from logits of shape (draws, labels)."""
        logits = logits.double()
        # A sigmoid is the softmax of a logit and 0: each label is a row of two classes.
        own = CategoricalPredictive.from_logits(
            torch.stack([torch.zeros_like(logits), logits], -1)
        )
        probs, drawn = own.probs[:, 1], logits.sigmoid()
        names, kept = self._names(len(probs)), self._kept(probs[None])
        return {
            "labels": [names[k] for k in kept if probs[k] > 0.5],
            "probs": {names[k]: float(probs[k]) for k in kept},
            "intervals": {names[k]: self._interval(drawn[:, k]) for k in kept},
            "entropy": {names[k]: float(own.entropy[k]) for k in kept},
            "mutual_information": {
                names[k]: float(own.mutual_information[k]) for k in kept
            },
        }


class ImageClassification(TextClassification):
    """One label for an image; the processor makes pixels of it."""

    def encode(self, item: Any) -> Any:
        """Pixels of one image."""
        picture: Any = item.get("image") if isinstance(item, Mapping) else item
        if isinstance(picture, PurePath):
            picture = str(picture)
        if hasattr(picture, "convert") and self._colours() == 3:
            picture = picture.convert("RGB")  # from grey, or a palette, or see-through
        try:
            return self._processor(picture, return_tensors="pt")["pixel_values"]
        except (ValueError, TypeError, KeyError, OSError) as error:
            why = str(error).partition("\n")[0]
            raise InputTypeError(
                f"An item must be a picture, an array or a file name, or a dict with "
                f"'image'. Got {_shown(item)}, of which the processor says: {why:.200}"
            ) from error

    def _colours(self) -> int:
        return getattr(self._model.config, "num_channels", 3)

    def single(self, items: Any) -> bool:
        """Whether this is one image: a file name, a picture or one array."""
        if hasattr(items, "column_names"):  # a data set, which has a shape as well
            return False
        shape = getattr(items, "shape", None)
        is_named = isinstance(items, str | Mapping)
        return is_named if shape is None else len(shape) < 4

    def length(self, row: Any) -> int:
        """All images count as equally long."""
        return 0

    def can_pad(self, mc: MCDropout, short: Any, long: Any) -> bool:
        """Images are not padded."""
        return True

    def batch(self, rows: Sequence[Any]) -> dict[str, Tensor]:
        """Images of one size, one after the other."""
        if len({tuple(row.shape) for row in rows}) > 1:
            raise ShapeError(
                "Images must have one size after the image processor. Got several; "
                "let the processor resize them, or pass batch_size=1."
            )
        return {"pixel_values": torch.cat(list(rows))}


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
        problem = getattr(model.config, "problem_type", None)
        if problem not in (None, "regression"):
            raise ParameterError(
                f"A regression needs a head that gives the numbers themselves. Got a "
                f"model whose config.problem_type is {problem!r}; ask for "
                f"'text-classification'."
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
            output=partial(checked_logits, n_axes=2),
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


def _leading(output: Any) -> Tensor | None:
    """The logits of an output, if it has some."""
    found = getattr(output, "logits", getattr(output, "start_logits", None))
    return found if isinstance(found, Tensor) and found.numel() else None


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
        got = type(item).__name__
        if isinstance(item, Mapping):
            got += f" with {', '.join(map(repr, item))}"
        raise InputTypeError(
            f"An item must be {wanted}, or a dict with 'text'. Got {got:.200}; of a "
            f"data set with other columns pass one: (row['review'] for row in data)."
        )
    return tuple(texts)


def _shown(item: Any) -> str:
    """A name as it is, of all else the kind."""
    return repr(item) if isinstance(item, str | PurePath) else type(item).__name__


def checked_logits(output: Any, n_axes: int) -> Tensor:
    """The logits of what a model returned, if its head is of the kind that is needed.

    Parameters
    ----------
    output : output of transformers
        Of a pass, or of all draws.
    n_axes : int
        How many axes the logits of the task have.
    """
    found = getattr(output, "logits", None)
    if not isinstance(found, Tensor):
        raise InputTypeError(
            f"The model must have the head of the task, which gives logits. Got one "
            f"that gives {type(output).__name__}."
        )
    if found.ndim != n_axes:
        raise ShapeError(
            f"The model must have the head of the task, whose logits have {n_axes} "
            f"axes. Got {tuple(found.shape)}: that of another task."
        )
    return found


def _labels_are_apart(model: Any) -> bool:
    """Whether labels do not exclude each other, by the configuration of a model."""
    problem = getattr(model.config, "problem_type", None)
    if problem == "regression":
        raise ParameterError(
            "A classification needs a head that gives logits of classes. Got a model "
            "whose config.problem_type is 'regression'; ask for 'regression'."
        )
    return problem == "multi_label_classification" or model.config.num_labels == 1
