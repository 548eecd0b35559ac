"""Models of arrays behind a server: fitted estimators and networks."""

from collections.abc import Sequence
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray

from caveat import _validation as check
from caveat.errors import InputTypeError, ParameterError
from caveat.predictive import ClassificationPredictive
from caveat.sampling import MCDropout
from caveat.serve.answers import RowFeatures, class_outputs, number_outputs
from caveat.serve.models import DRAWS, Inputs, ServedModel, draws_of, label_text
from caveat.serve.refusing import quoted, refuse
from caveat.serve.tensors import TYPES, TensorInfo


class _ArrayModel(ServedModel):
    """One input ``x`` of numbers, its first axis rows."""

    shape: tuple[int, ...]  # of a row

    def _take(self, kind: str, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.inputs = (TensorInfo("x", kind, (-1, *shape)),)

    def features(self, given: Inputs) -> RowFeatures:
        if set(given) != {"x"}:
            refuse(f"There must be one input, 'x'. Got {quoted(list(given))}.")
        return self._checked(given["x"])

    def features_of_rows(self, rows: list[Any]) -> RowFeatures:
        try:
            _refuse_other_than_numbers(rows)  # numpy makes numbers of '1' and true
            found = np.array(rows, dtype=np.float64)
        except (ValueError, TypeError, OverflowError):
            refuse(f"Rows must be lists of numbers of the shape {list(self.shape)}.")
        return self._checked(found)

    def _checked(self, x: NDArray[Any]) -> RowFeatures:
        if x.dtype.kind not in "iuf":
            refuse(f"'x' must hold numbers. Got {x.dtype}.")
        if x.shape[1:] != self.shape:
            refuse(
                f"'x' must have the shape {['rows', *self.shape]}. Got {list(x.shape)}."
            )
        with np.errstate(over="ignore"):
            found = x.astype(TYPES[self.inputs[0].datatype], copy=False)
        if not np.isfinite(found).all():
            row = int((~np.isfinite(found)).reshape(len(found), -1).any(1).argmax())
            refuse(f"'x' must hold finite numbers. Row {row + 1} does not.")
        return RowFeatures(found)

    @property
    def example(self) -> Any:
        """A row of JSON that the model takes."""
        return np.zeros(self.shape).tolist()

    @property
    def row_schema(self) -> dict[str, Any]:
        """Lists in lists, of numbers that the input can hold."""
        dtype = TYPES[self.inputs[0].datatype]
        info = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
        bounds = {"minimum": float(info.min), "maximum": float(info.max)}
        found: dict[str, Any] = {"type": "number"} | bounds
        for size in reversed(self.shape):
            sizes = {"minItems": size, "maxItems": size}
            found = {"type": "array", "items": found} | sizes
        return found


@final
class MatrixModel(_ArrayModel):
    """A fitted estimator of Caveat: rows of a matrix.

    Parameters
    ----------
    estimator : estimator
    """

    def __init__(self, estimator: Any) -> None:
        from caveat.frames import FrameModel, Schema, Target

        n_features = int(estimator.n_features_in_)
        classes = getattr(estimator, "classes_", None)
        self.kind = "regression" if classes is None else "classification"
        target = Target("y", "number", classes is not None)
        # Nothing is asked of its columns: it knows how estimators are given draws.
        schema = Schema((), (), target, (), ".", 0, "an estimator")
        self._model = FrameModel(schema, estimator)
        self._take("FP64", (n_features,))
        self.n_draws = draws_of(estimator)
        if classes is not None:
            self.classes = tuple(label_text(label) for label in classes.tolist())
            self.outputs = class_outputs(len(self.classes))
        else:
            first = self.predictive(np.zeros((1, n_features)), 2, 0)
            self.outputs = number_outputs(tuple(first.mean.shape[1:]))

    def predictive(self, x: NDArray[Any], n_draws: int, seed: int) -> Any:
        return self._model.predictive_of(x, n_draws=n_draws, seed=seed)


@final
class NetworkModel(_ArrayModel):
    """A network with dropout, for a server: what it takes, and what its output is.

    Parameters
    ----------
    mc : MCDropout
        Around the network, with ``shared=True``, as an answer must not depend on the
        place of a row in a batch.
    example : Tensor or array, shape (rows, *event)
        An input.
    precision : float, optional
        Of a regression, as for :meth:`caveat.MCDropout.regress`; without it the outputs
        are the logits of a classification.
    classes : sequence of str, optional
        Names of the classes; by default their numbers.
    n_draws : int, default 100
        Draws if a request does not say.

    Examples
    --------
    >>> import caveat, torch
    >>> from torch import nn
    >>> net = nn.Sequential(nn.Linear(2, 9), nn.Dropout(0.1), nn.Linear(9, 3))
    >>> served = NetworkModel(caveat.MCDropout(net, seed=0), torch.zeros(1, 2))
    >>> served.kind, served.classes
    ('classification', ('0', '1', '2'))
    """

    def __init__(
        self,
        mc: MCDropout,
        example: Any,
        *,
        precision: float | None = None,
        classes: Sequence[str] | None = None,
        n_draws: int = DRAWS,
    ) -> None:
        if not isinstance(mc, MCDropout):
            raise InputTypeError(f"mc must be an MCDropout. Got {type(mc).__name__}.")
        if not mc._sampler.shared:
            raise ParameterError(
                "mc must have shared=True: with noise for each row, an answer depends "
                "on the place of a row among the others."
            )
        self._mc = mc
        self._precision = precision
        self.n_draws = check.several("n_draws", n_draws)
        x = torch.as_tensor(np.asarray(example))
        self._dtype = x.dtype
        self._take(_datatype(x.numpy().dtype), tuple(x.shape[1:]))
        self.kind = "regression" if precision is not None else "classification"
        found = self.predictive(x[:1].numpy(), 2, 0)
        if isinstance(found, ClassificationPredictive):
            count = int(found.probs.shape[-1])
            names = range(count) if classes is None else classes
            self.classes = tuple(str(name) for name in names)
            if len(self.classes) != count or found.probs.ndim != 2:
                raise ParameterError(
                    f"classes must be {count} names, and the network must give one "
                    f"row of logits for a row. Got {self.classes} and outputs of the "
                    f"shape {tuple(found.probs.shape)}."
                )
            self.outputs = class_outputs(count)
        else:
            self.outputs = number_outputs(tuple(found.mean.shape[1:]))

    def predictive(self, x: NDArray[Any], n_draws: int, seed: int) -> Any:
        mc, rows = self._seeded(seed), torch.tensor(x, dtype=self._dtype)
        if self._precision is None:
            return mc.classify(rows, n_draws=n_draws, progress=False)
        precision = self._precision
        return mc.regress(rows, precision=precision, n_draws=n_draws, progress=False)

    @property
    def remembers_sizes(self) -> bool:
        """What a network does with some rows is recorded, and then replayed."""
        return True

    def _seeded(self, seed: int) -> MCDropout:
        """Seed 0 is the one that the object came with."""
        if seed == 0:
            return self._mc
        return self._mc.with_seed((self._mc.seed + seed) % 2**63)


def _refuse_other_than_numbers(rows: list[Any]) -> None:
    values = rows
    while list in (kinds := set(map(type, values))):
        values = [v for part in values for v in (part if type(part) is list else ())]
    if not kinds <= {int, float, type(None)}:
        wrong = next(v for v in values if type(v) not in (int, float, type(None)))
        refuse(f"Rows must be lists of numbers. Got {quoted(wrong)} among them.")


def _datatype(dtype: Any) -> str:
    for name, known in TYPES.items():
        if known == dtype and dtype.kind in "iuf":
            return name
    raise InputTypeError(f"example must hold numbers. Got {dtype}.")
