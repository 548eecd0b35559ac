"""A model as a server sees it: what goes in, what comes out, and how."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caveat.serve.answers import RowFeatures
from caveat.serve.tensors import TensorInfo

Inputs = Mapping[str, NDArray[Any]]
DRAWS = 100  # of a network, if not told otherwise


class ServedModel(ABC):
    """A model behind a name.

    Attributes
    ----------
    kind : {"regression", "classification"}
    inputs, outputs : tuple of TensorInfo
    classes : tuple of str
        Names of the classes.
    n_draws : int
        Draws if a request does not say.
    """

    kind: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    classes: tuple[str, ...] = ()
    n_draws: int = DRAWS

    @abstractmethod
    def features(self, given: Inputs) -> RowFeatures:
        """What tensors of the protocol say, checked; of one row at least."""

    @abstractmethod
    def features_of_rows(self, rows: list[Any]) -> RowFeatures:
        """What rows of JSON say, checked."""

    @abstractmethod
    def predictive(self, x: NDArray[Any], n_draws: int, seed: int) -> Any:
        """Of some rows; what a row is answered depends on that row alone."""

    def deferred(self, predictive: Any) -> NDArray[np.bool_]:
        """Which rows are handed on."""
        return np.zeros(len(predictive), dtype=bool)

    def sets(self, predictive: Any) -> NDArray[Any] | None:
        """Conformal sets as texts, if there are any."""
        return None

    @property
    def defers(self) -> bool:
        """Whether a policy may hand rows on; else ``deferred`` is never true."""
        return False

    @property
    def remembers_sizes(self) -> bool:
        """Whether batches of a size that was met before are answered faster."""
        return False

    @property
    def is_classifier(self) -> bool:
        """Whether classes are predicted."""
        return self.kind == "classification"

    @property
    def form(self) -> list[dict[str, Any]]:
        """What a person fills in: name and kind of each column."""
        return [{"name": i.name, "kind": i.datatype} for i in self.inputs]

    @property
    def example(self) -> Any:
        """A row of JSON that the model takes."""
        return [0.0]

    @property
    @abstractmethod
    def row_schema(self) -> dict[str, Any]:
        """Rows of JSON that the model takes, as a JSON schema."""


def draws_of(estimator: Any) -> int:
    """How many draws an answer of an estimator has, if a request does not say."""
    best = getattr(estimator, "best_estimator_", estimator)
    return int(getattr(best, "n_draws", 400))


def label_text(label: Any) -> str:
    """As CSV has it: true, not True."""
    return str(label).lower() if isinstance(label, bool) else str(label)
