"""Precision, length-scale and weight decay of an estimator: any two give the third."""

from dataclasses import dataclass
from typing import Any

from caveat import _validation as validation
from caveat.errors import InputTypeError, ParameterError
from caveat.theory import lengthscale as lengthscale_of
from caveat.theory import model_precision, penalty_from_weight_decay

LENGTHSCALE = 1e-2

_NONE_GIVEN = """Prior needs a lengthscale or a weight_decay, as the penalty on weights
follows from one of them and the precision (paper 001, eq. 12). Both are None."""
_ALL_GIVEN = """precision, lengthscale and weight_decay are tied by eq. 12 of paper 001:
any two give the third. Got all three: the precision {precision!r} beside {prior}; leave
one out."""


@dataclass(frozen=True)
class Prior:
    """What is known of the prior N(0, 1/l²) of the weights before training.

    Parameters
    ----------
    lengthscale : float, optional
        l, in standard units.
    weight_decay : float, optional
        The decay of the last weight layer as optimisers count it (twice the penalty on
        |W|²); those of the others follow from the same length-scale. If both are
        given, they say what the precision is.

    Examples
    --------
    >>> Prior(weight_decay=1e-4)
    Prior(lengthscale=None, weight_decay=0.0001)
    """

    lengthscale: float | None = None
    weight_decay: float | None = None

    def __post_init__(self) -> None:
        if self.lengthscale is None and self.weight_decay is None:
            raise ParameterError(_NONE_GIVEN)
        if self.lengthscale is not None:
            validation.lengthscale(self.lengthscale)
        if self.weight_decay is not None:
            validation.positive("weight_decay", self.weight_decay)

    @property
    def gives_precision(self) -> bool:
        """Whether length-scale and decay are both given."""
        return self.lengthscale is not None and self.weight_decay is not None

    def lengthscale_for(
        self, precision: float, *, keep_prob: float, n_train: int
    ) -> float:
        """l, given tau in standard units (ledger E16).

        Parameters
        ----------
        precision : float
            tau.
        keep_prob : float
            Of the inputs of the last weight layer.
        n_train : int
            Rows to learn from.

        Returns
        -------
        float
        """
        if self.lengthscale is not None:
            return self.lengthscale
        assert self.weight_decay is not None
        return lengthscale_of(
            precision=precision,
            l2_penalty=penalty_from_weight_decay(self.weight_decay),
            keep_prob=keep_prob,
            n_train=n_train,
            inverted=True,
        )

    def precision_for(self, *, keep_prob: float, n_train: int) -> float:
        """tau in standard units, if length-scale and decay are given (ledger E15).

        Parameters
        ----------
        keep_prob, n_train
            As for :meth:`lengthscale_for`.

        Returns
        -------
        float
        """
        assert self.lengthscale is not None and self.weight_decay is not None
        return model_precision(
            lengthscale=self.lengthscale,
            keep_prob=keep_prob,
            n_train=n_train,
            l2_penalty=penalty_from_weight_decay(self.weight_decay),
            inverted=True,
        )


def checked_prior(prior: Any, precision: Any) -> Prior:
    """The parameter ``prior`` of an estimator, if it leaves room for ``precision``.

    Parameters
    ----------
    prior : Prior or None
        None for a length-scale of 1e-2.
    precision : object
        None if nothing is known of it.

    Returns
    -------
    Prior
    """
    found = Prior(LENGTHSCALE) if prior is None else prior
    if not isinstance(found, Prior):
        raise InputTypeError(
            f"prior must be Prior(lengthscale=...) or Prior(weight_decay=...). "
            f"Got {prior!r}."
        )
    if found.gives_precision and precision is not None:
        raise ParameterError(_ALL_GIVEN.format(precision=precision, prior=found))
    return found
