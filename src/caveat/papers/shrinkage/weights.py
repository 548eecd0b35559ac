"""Weights of dropout, ridge and lasso along their paths, on the amino acids.

The columns are centred, and so is the response; this is an intercept, and dropped
features become their mean. All weights are shown per standard deviation of their
column, so that those of centred and of standardised columns can be compared.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import lars_path

from caveat.data import load_qspr
from caveat.estimators import BayesianDropoutRegression

Array = NDArray[np.float64]

FLIPPED = "DGR"
SCALINGS = ("standardised", "centred")
METHODS = ("dropout", "ridge", "lasso")
RATES: Array = np.concatenate(
    [[0.0, 0.001, 0.003], np.arange(1, 50) / 50, [0.99, 0.999]]
)
RATES_QUICK: Array = np.array([0.0, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999])
_LASSO_FROM = 1e-3  # smallest share of the penalty that makes all weights zero


@dataclass(frozen=True)
class Weight:
    """One weight at one point of a path.

    Attributes
    ----------
    scaling : str
        Whether columns are ``"standardised"``, or only ``"centred"``.
    method : str
    strength : float
        f of dropout, lambda0 of ridge, or alpha of the lasso.
    position : float
        The same between 0 and 1: f; lambda0 / (lambda0 + mean sum of squares of the
        columns); alpha over the alpha that makes all weights zero.
    feature : str
    weight, effective : float
        mu and, of dropout, (1 - f) mu, per standard deviation of the column.
    posterior_sd : float
        Of mu; NaN for the lasso, which has no posterior.
    """

    scaling: str
    method: str
    strength: float
    position: float
    feature: str
    weight: float
    effective: float
    posterior_sd: float


@dataclass(frozen=True, eq=False)
class AminoAcids:
    """The data of the figure: DGR flipped, columns and response centred.

    Attributes
    ----------
    x : array, shape (19, 7)
    y : array, shape (19,)
    names : tuple of str
    """

    x: Array
    y: Array
    names: tuple[str, ...]

    @classmethod
    def load(cls) -> "AminoAcids":
        """From the data folder."""
        data = load_qspr()
        flipped = np.array([name == FLIPPED for name in data.feature_names])
        x = np.where(flipped, -data.X, data.X)
        return cls(x - x.mean(0), data.y - data.y.mean(), data.feature_names)

    def scaled(self, scaling: str) -> Array:
        """The columns, divided by their standard deviations or not."""
        return self.x / self.x.std(0) if scaling == "standardised" else self.x

    @property
    def correlations(self) -> Array:
        """Of each column with the response."""
        return self.alone / self.y.std()

    @property
    def alone(self) -> Array:
        """Lambda1^-1 X'y: the weight of each column by itself, per deviation."""
        return np.asarray(self.scaled("standardised").T @ self.y / len(self.y))


def path_of(method: str, scaling: str, rates: Array) -> Iterator[Weight]:
    """The path of a method, at positions that are the drop rates."""
    fit = {"dropout": _dropout, "ridge": _ridge, "lasso": _lasso}[method]
    return fit(AminoAcids.load(), scaling, rates)


def _dropout(data: AminoAcids, scaling: str, rates: Array) -> Iterator[Weight]:
    for rate in rates.tolist():
        model = BayesianDropoutRegression(rate, 0.0, drop_to="mean")
        yield from _fitted(data, scaling, model, "dropout", (rate, rate))


def _ridge(data: AminoAcids, scaling: str, rates: Array) -> Iterator[Weight]:
    size = float(np.square(data.scaled(scaling)).sum(0).mean())
    for position in rates.tolist():
        strength = size * position / (1.0 - position)
        model = BayesianDropoutRegression(0.0, strength)
        yield from _fitted(data, scaling, model, "ridge", (strength, position))


def _fitted(
    data: AminoAcids,
    scaling: str,
    model: BayesianDropoutRegression,
    method: str,
    place: tuple[float, float],
) -> Iterator[Weight]:
    x = data.scaled(scaling)
    model.fit(x, data.y)
    spread = np.sqrt(np.diag(model.posterior_.covariance()))
    table = np.array([model.coef_, model.effective_coef_, spread]) * x.std(0)
    for name, column in zip(data.names, table.T.tolist(), strict=True):
        yield Weight(scaling, method, *place, name, *column)


def _lasso(data: AminoAcids, scaling: str, rates: Array) -> Iterator[Weight]:
    x = data.scaled(scaling)
    knots, _, corners = lars_path(x, data.y, method="lasso")
    for position in np.geomspace(_LASSO_FROM, 1.0, len(rates)).tolist():
        strength = float(position * knots[0])
        for k, name in enumerate(data.names):
            weight = float(np.interp(strength, knots[::-1], corners[k, ::-1]))
            weight *= float(x[:, k].std())
            yield Weight(
                scaling, "lasso", strength, position, name, weight, weight, np.nan
            )
