"""Mean and variance of the output of a network, found without sampling."""

from dataclasses import dataclass
from typing import Any, Self, final

import torch
from torch import Tensor

from caveat import _validation as check
from caveat.errors import ShapeError
from caveat.predictive import GaussianPredictive, Predictive
from caveat.predictive.base import count_of
from caveat.predictive.regression import EXACT
from caveat.sampling.closed_form.beliefs import Belief
from caveat.sampling.closed_form.softmax import mean_field_softmax

PROPAGATED = "propagated"

_NO_COVARIANCE = """The covariance of the outputs is not known: it is for exact moments
and for networks that end in a linear layer, up to 64 outputs. Draws give it:
MCDropout(model).regress(x, precision=...).covariance"""


@final
@dataclass(frozen=True, eq=False, repr=False)
class PredictiveMoments(Predictive):
    """Mean and variance of the output of a network over its noise.

    What :meth:`MCDropout.moments` returns. There are no draws behind it.

    Attributes
    ----------
    mean : Tensor, shape (batch, *event)
        Of the output over the noise.
    variance : Tensor, shape (batch, *event)
        Of the output over the noise: what the model does not know. The noise of
        observations is not part of it.
    method : str
        ``"exact"``; or ``"propagated"``, an approximation.

    Examples
    --------
    >>> import torch, caveat
    >>> from torch import nn
    >>> net = nn.Sequential(nn.Dropout(0.5), nn.Linear(2, 1, bias=False))
    >>> _ = nn.init.ones_(net[1].weight)
    >>> caveat.MCDropout(net).moments(torch.tensor([[1.0, 2.0]]))
    PredictiveMoments: 1 row of outputs (1,), exact
      mean  3 (median), 3 to 3
      std   2.24 (median), 2.24 to 2.24
    """

    mean: Tensor
    variance: Tensor
    method: str
    _joint: Tensor | None = None

    @classmethod
    def of(cls, belief: Belief) -> Self:
        """What is known of an output."""
        method = EXACT if belief.exact else PROPAGATED
        return cls(0, belief.mean, belief.variance, method, belief.covariance())

    def __len__(self) -> int:
        return len(self.mean)

    @property
    def exact(self) -> bool:
        """Whether mean and variance are exact; else they are approximations."""
        return self.method == EXACT

    @property
    def std(self) -> Tensor:
        """The root of ``variance``."""
        return self.variance.sqrt()

    @property
    def covariance(self) -> Tensor:
        """Covariance of the D outputs of each row, the event being flattened.

        Shape (batch, D, D); known up to 64 outputs, of networks that end in a linear
        layer.
        """
        if self._joint is None:
            raise ShapeError(_NO_COVARIANCE)
        return self._joint

    @property
    def class_probs(self) -> Tensor:
        """Class probabilities, if the outputs are logits with the classes last.

        The mean of the softmax under a Gaussian of these moments, by a mean-field
        formula (ledger E94): an approximation even where the moments are exact. Shape
        of ``mean``.
        """
        mean, joint = self.mean, self._joint
        if mean.dim() < 2 or mean.shape[-1] < 2:
            raise ShapeError(
                f"class_probs needs logits of two or more classes on the last axis. "
                f"Got outputs of shape {tuple(mean.shape)}."
            )
        if joint is not None and mean.dim() == 2:
            return mean_field_softmax(mean, joint)
        classes = mean.shape[-1]
        flat = mean_field_softmax(
            mean.reshape(-1, classes), self.variance.reshape(-1, classes)
        )
        return flat.reshape(mean.shape)

    def regression(self, precision: Any) -> GaussianPredictive:
        """The predictive of a regression with these moments.

        Parameters
        ----------
        precision : float or Tensor
            tau, the inverse variance of the observation noise in units of 1/y².

        Returns
        -------
        GaussianPredictive
            Without draws: it has no density and no quantiles, as those of the mixture
            of paper 001 (eq. 13) are not determined by two moments.

        Examples
        --------
        >>> import torch, caveat
        >>> from torch import nn
        >>> net = nn.Sequential(nn.Dropout(0.5), nn.Linear(2, 1))
        >>> moments = caveat.MCDropout(net).moments(torch.zeros(1, 2))
        >>> moments.regression(precision=4.0).std
        tensor([[0.5000]])
        """
        tau = check.precision_for(precision, self.mean)
        return GaussianPredictive(
            0,
            self.mean,
            self.variance,
            tau,
            _joint=self._joint,
            method=self.method,
            _mean_error=torch.zeros_like(self.mean),
        )

    def _columns(self) -> dict[str, Tensor]:
        return {name: getattr(self, name) for name in ("mean", "std", "variance")}

    def _headline(self) -> str:
        rows, event = count_of(len(self), "row"), tuple(self.mean.shape[1:])
        how = self.method if self.exact else f"{self.method} (approximate)"
        return f"{rows} of outputs {event}, {how}"

    def _highlights(self) -> dict[str, Tensor]:
        return {"mean": self.mean, "std": self.std}
