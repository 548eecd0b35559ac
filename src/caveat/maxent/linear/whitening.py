"""Coordinates in which the effective prior of the weights is standard normal.

Dropout acts as a prior that depends on the data: w | v ~ N(0, v A^-1) with

    A = lambda0 I + C o sum_i (x_i - o)(x_i - o)'                          (ledger E40)

which is diagonal if features are dropped one by one, and has a block per group if
groups are dropped together. With A = T'T and W = T w the model is ordinary Bayesian
ridge regression with unit penalty on the rows x T^-1, and all else follows from that.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from caveat.errors import ParameterError
from caveat.maxent.linear.arrays import Array, Matrix, is_sparse, scale_columns
from caveat.maxent.linear.features import Features
from caveat.maxent.linear.intercept import Intercept
from caveat.maxent.linear.noise import FeatureNoise
from caveat.maxent.linear.rows import ShiftedRows


@dataclass(frozen=True, eq=False)
class Whitening(ABC):
    """The change of coordinates W = T w.

    Attributes
    ----------
    penalty : array, shape (p,)
        Prior precision of the new weights: 1, or 0 for a weight with a flat prior.
    """

    penalty: Array

    @property
    @abstractmethod
    def log_det(self) -> float:
        """2 log|T| of the features that are not inert; log|A| if no prior is flat."""

    @abstractmethod
    def directions(self, matrix: Matrix, factor: Array) -> Matrix:
        """Rows (factor o x) T^-1 of rows x."""

    @abstractmethod
    def weights(self, white: Array) -> Array:
        """w = T^-1 W of one column W, or several."""

    @property
    def inert(self) -> np.ndarray:
        """Features that neither data nor prior hold, left out of the model."""
        return np.zeros(len(self.penalty), dtype=bool)

    @property
    def is_proper(self) -> bool:
        """Whether every weight has a proper effective prior."""
        return bool(self.penalty.all())


@final
@dataclass(frozen=True, eq=False)
class DiagonalWhitening(Whitening):
    """T is diagonal: features are dropped one by one.

    Attributes
    ----------
    inverse : array, shape (p,)
        The diagonal of T^-1; 0 for inert features, which thereby leave the model.
    """

    inverse: Array

    @classmethod
    def of(cls, effective: Array, sizes: Array) -> "DiagonalWhitening":
        """From the diagonal of A, and the squared sizes of the columns."""
        flat = (effective == 0.0) & (sizes > 0.0)
        squared = np.where(flat, sizes, effective)  # an honest scale for flat weights
        inert = squared == 0.0
        inverse = np.where(inert, 0.0, 1.0 / np.sqrt(np.where(inert, 1.0, squared)))
        return cls(np.where(flat, 0.0, 1.0), inverse)

    @property
    def log_det(self) -> float:
        return -2.0 * float(np.log(self.inverse[self.inverse > 0.0]).sum())

    @property
    def inert(self) -> np.ndarray:
        return self.inverse == 0.0

    def directions(self, matrix: Matrix, factor: Array) -> Matrix:
        return scale_columns(matrix, factor * self.inverse)

    def weights(self, white: Array) -> Array:
        return (white.T * self.inverse).T


@final
@dataclass(frozen=True, eq=False)
class Blocks(Whitening):
    """T^-1 = S - L diag(d) L': S has a block per narrow group, L the wide groups.

    A group of k features is wide if k exceeds the number of rows; its block would be
    k by k, while L has only as many columns as there are rows.
    """

    blocks: Matrix
    left: Matrix
    damping: Array
    log_dets: Array

    @classmethod
    def of(cls, parts: Sequence["GroupInverse"], order: np.ndarray) -> "Blocks":
        """From the groups, whose features one after the other are ``order``."""
        back = np.argsort(order)
        blocks = sp.block_diag([part.block for part in parts], format="csr")
        left = sp.block_diag([part.left for part in parts], format="csr")
        return cls(
            penalty=np.ones(len(order)),
            blocks=blocks[back][:, back],
            left=left[back],
            damping=np.concatenate([part.damping for part in parts]),
            log_dets=np.array([part.log_det for part in parts]),
        )

    @property
    def log_det(self) -> float:
        return float(self.log_dets.sum())

    def directions(self, matrix: Matrix, factor: Array) -> Matrix:
        matrix = scale_columns(matrix, factor)
        product = matrix @ self.blocks
        if not len(self.damping):
            return product if is_sparse(product) else np.asarray(product)
        thin = np.asarray(_dense(matrix @ self.left)) * self.damping
        return _dense(product) - np.asarray((self.left @ thin.T).T)

    def weights(self, white: Array) -> Array:
        product = np.asarray(self.blocks @ white)
        if not len(self.damping):
            return product
        thin = (np.asarray(self.left.T @ white).T * self.damping).T
        return product - np.asarray(self.left @ thin)


def whiten(
    features: Features,
    noise: FeatureNoise,
    intercept: Intercept,
    prior_precision: float,
) -> Whitening:
    """The whitening for data, noise and prior (ledger E40)."""
    if noise.groups is not None:
        members = _members(noise.groups)
        parts = [
            _group(features, noise, intercept, prior_precision, group=group)
            for group in members
        ]
        return Blocks.of(parts, np.concatenate(members))
    # E40: A = lambda0 I + f (1 - f) Lambda1, for Bernoulli noise
    effective = prior_precision + noise.variance * intercept.noise_squares(features)
    sizes = features.centred_squares if intercept.fitted else features.squares
    return DiagonalWhitening.of(effective, np.square(noise.mean) * sizes)


class GroupInverse(NamedTuple):
    """T^-1 = block - left diag(damping) left' of one group, and its 2 log|T|."""

    block: Matrix
    left: Array
    damping: Array
    log_det: float


def _members(groups: np.ndarray) -> list[np.ndarray]:
    order = np.argsort(groups, kind="stable")
    return np.split(order, np.cumsum(np.bincount(groups))[:-1])


def _group(
    features: Features,
    noise: FeatureNoise,
    intercept: Intercept,
    prior: float,
    *,
    group: np.ndarray,
) -> GroupInverse:
    origin = intercept.origin(features)
    shift = None if origin is None else origin[group]
    rows = ShiftedRows.less(features.matrix[:, group], shift)
    variance = float(noise.variance[group[0]])
    wide = len(group) > features.n_rows and prior > 0.0 and variance > 0.0
    return (_wide if wide else _narrow)(rows, variance, prior)


def _narrow(rows: ShiftedRows, variance: float, prior: float) -> GroupInverse:
    """By Cholesky of the block of the group."""
    block = variance * rows.scatter() + prior * np.eye(rows.n_features)
    try:
        lower = np.linalg.cholesky(block)
    except np.linalg.LinAlgError:
        raise ParameterError(
            "With prior_precision=0 every group needs a drop rate above 0 and "
            "features that are linearly independent in the data. Set prior_precision "
            "above 0."
        ) from None
    inverse = scipy.linalg.solve_triangular(lower, np.eye(len(lower)), lower=True)
    log_det = 2.0 * float(np.log(np.diag(lower)).sum())
    return GroupInverse(inverse.T, np.zeros((len(lower), 0)), np.zeros(0), log_det)


def _wide(rows: ShiftedRows, variance: float, prior: float) -> GroupInverse:
    """By the singular values of a group with more features than rows."""
    _, singular, right = scipy.linalg.svd(rows.dense(), full_matrices=False)
    grown = prior + variance * np.square(singular)
    damping = (1.0 - np.sqrt(prior / grown)) / np.sqrt(prior)
    rest = rows.n_features - len(singular)
    log_det = float(np.log(grown).sum() + rest * np.log(prior))
    block = sp.diags(np.full(rows.n_features, prior**-0.5))
    return GroupInverse(block, right.T, damping, log_det)


def _dense(matrix: Matrix) -> Array:
    return matrix.toarray() if is_sparse(matrix) else np.asarray(matrix)
