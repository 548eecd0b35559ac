"""Standard units: inputs and targets with mean 0 and variance 1, and the way back."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from caveat.training.members import Rows

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scaling:
    """Means and standard deviations of some training rows.

    Population standard deviations; a constant column has 1. A precision in the units
    of y is that in standard units divided by ``y_std``² (ledger E18), and a log density
    that minus ``log(y_std)`` (E19).

    Attributes
    ----------
    x_mean, x_std : array, shape (inputs,)
    y_mean, y_std : array, shape (targets,)
    """

    x_mean: Array
    x_std: Array
    y_mean: Array
    y_std: Array

    @classmethod
    def of(cls, x: Array, y: Array) -> Self:
        """That of rows x (rows, inputs) and y (rows, targets)."""
        return cls(x.mean(0), _spread(x), y.mean(0), _spread(y))

    def of_inputs_only(self) -> Self:
        """The same units of x, with targets left as they are."""
        count = len(self.y_mean)
        return replace(self, y_mean=np.zeros(count), y_std=np.ones(count))

    def with_weights(self) -> Self:
        """The same, with the last target left as it is: a weight of the row."""
        mean, std = self.y_mean.copy(), self.y_std.copy()
        mean[-1], std[-1] = 0.0, 1.0
        return replace(self, y_mean=mean, y_std=std)

    def without_weights(self) -> Self:
        """The same of the targets alone: all but the last, a weight."""
        return replace(self, y_mean=self.y_mean[:-1], y_std=self.y_std[:-1])

    def inputs(self, x: Array) -> Tensor:
        """x in standard units, float32."""
        return torch.from_numpy(((x - self.x_mean) / self.x_std).astype(np.float32))

    def targets(self, y: Array) -> Tensor:
        """y in standard units, float32."""
        return torch.from_numpy(((y - self.y_mean) / self.y_std).astype(np.float32))

    def rows(self, x: Array, y: Array) -> Rows:
        """Both, as a fleet takes them."""
        return Rows(self.inputs(x), self.targets(y))

    def outputs(self, means: Tensor) -> Tensor:
        """Outputs of a network (..., targets) in the units of y, float64."""
        std, mean = torch.from_numpy(self.y_std), torch.from_numpy(self.y_mean)
        return means.to(torch.float64) * std + mean


def _spread(values: Array) -> Array:
    std = values.std(0)
    constant = (values.max(0) == values.min(0)) | (std == 0)
    return np.where(constant, 1.0, std)
