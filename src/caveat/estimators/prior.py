"""Precision, length-scale and weight decay of an estimator: any two give the third."""

from dataclasses import dataclass
from typing import Any, Self

from caveat import _validation as validation
from caveat.errors import ParameterError
from caveat.theory import lengthscale as lengthscale_of
from caveat.theory import model_precision, penalty_from_weight_decay

_NONE_GIVEN = """lengthscale or weight_decay must be given, as the penalty on weights
follows from one of them and the precision (paper 001, eq. 12). Both are None."""
_ALL_GIVEN = """precision, lengthscale and weight_decay are tied by eq. 12 of paper 001:
any two give the third. Got all three; set lengthscale=None to keep the weight decay, or
weight_decay=None to keep the length-scale."""
_NO_PRECISION = """precision=None asks for the precision that length-scale and weight
decay stand for (paper 001, eq. 12). Got lengthscale={lengthscale} and
weight_decay={weight_decay}; give both, or use precision='validated'."""


@dataclass(frozen=True)
class Prior:
    """What is known of the prior N(0, 1/l²) of the weights before training.

    The weight decay is an optimiser's (twice the penalty on |W|²) and that of the last
    weight layer; those of the others follow from the same length-scale.

    Attributes
    ----------
    lengthscale, weight_decay : float or None
        One of them, or both if they are to say what the precision is.
    keep_prob : float
        Of the inputs of the last weight layer.
    """

    lengthscale: float | None
    weight_decay: float | None
    keep_prob: float

    @classmethod
    def of(
        cls, lengthscale: Any, weight_decay: Any, *, drop_rate: float, precision: Any
    ) -> Self:
        """Checked for being neither too little nor too much beside ``precision``."""
        for name, value in (
            ("lengthscale", lengthscale),
            ("weight_decay", weight_decay),
        ):
            if value is not None:
                validation.positive(name, value)
        given = (lengthscale is not None) + (weight_decay is not None)
        if precision is None and given < 2:
            raise ParameterError(
                _NO_PRECISION.format(lengthscale=lengthscale, weight_decay=weight_decay)
            )
        if precision is not None and given != 1:
            raise ParameterError(_ALL_GIVEN if given else _NONE_GIVEN)
        return cls(lengthscale, weight_decay, 1.0 - drop_rate)

    def lengthscale_for(self, precision: float, n_train: int) -> float:
        """l, given tau in standard units (ledger E16)."""
        if self.lengthscale is not None:
            return self.lengthscale
        assert self.weight_decay is not None
        return lengthscale_of(
            precision=precision,
            l2_penalty=penalty_from_weight_decay(self.weight_decay),
            keep_prob=self.keep_prob,
            n_train=n_train,
            inverted=True,
        )

    def precision_for(self, n_train: int) -> float:
        """tau in standard units, if length-scale and decay are given (ledger E15)."""
        assert self.lengthscale is not None and self.weight_decay is not None
        return model_precision(
            lengthscale=self.lengthscale,
            keep_prob=self.keep_prob,
            n_train=n_train,
            l2_penalty=penalty_from_weight_decay(self.weight_decay),
            inverted=True,
        )
