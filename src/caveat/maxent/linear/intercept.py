"""What a dropped feature becomes, and whether there is an intercept.

The response is b + (xi o (x - o))'w + noise. Without an intercept b = 0 and o = 0.
With one, b has a flat prior and is never dropped, and there are two readings:

- a dropped feature becomes 0 (o = 0): cross-products are centred, the sums of squares
  that the noise brings in are not;
- a dropped feature becomes its mean (o = the means): everything is centred.

They are different models with different posteriors.
"""

from dataclasses import dataclass
from typing import final

from caveat._validation import boolean, one_of
from caveat.errors import ParameterError
from caveat.maxent.linear.arrays import Array
from caveat.maxent.linear.features import Features


@final
@dataclass(frozen=True)
class Intercept:
    """Whether an intercept is fitted, and where dropped features go.

    Attributes
    ----------
    fitted : bool
        Whether there is one.
    to_mean : bool
        Whether a dropped feature becomes its mean, and not 0.
    """

    fitted: bool
    to_mean: bool = False

    def centre(self, features: Features) -> Array | None:
        """What is taken off all rows in cross-products: the means, or nothing."""
        return features.means if self.fitted else None

    def origin(self, features: Features) -> Array | None:
        """o, what a dropped feature becomes; None for 0."""
        return features.means if self.to_mean else None

    def noise_squares(self, features: Features) -> Array:
        """Sums of (x - o)² over rows, which the variance of the noise multiplies."""
        return features.centred_squares if self.to_mean else features.squares


WITHOUT = Intercept(fitted=False)
UNDROPPED = Intercept(fitted=True)
DROP_TO_MEAN = Intercept(fitted=True, to_mean=True)


def make_intercept(fit_intercept: bool, drop_to: str) -> Intercept:
    """The reading that a user asks for.

    Parameters
    ----------
    fit_intercept : bool
        Whether there is an intercept, with a flat prior and never dropped.
    drop_to : {"zero", "mean"}
        What a dropped feature becomes; without an intercept only zero makes sense.

    Returns
    -------
    Intercept
    """
    one_of("drop_to", drop_to, ("zero", "mean"))
    boolean("fit_intercept", fit_intercept)
    if not fit_intercept and drop_to == "mean":
        raise ParameterError(
            "drop_to='mean' needs fit_intercept=True, as the mean of the response "
            "then belongs to features at their means. Got fit_intercept=False; centre "
            "X and y yourself if that is meant."
        )
    if not fit_intercept:
        return WITHOUT
    return DROP_TO_MEAN if drop_to == "mean" else UNDROPPED
