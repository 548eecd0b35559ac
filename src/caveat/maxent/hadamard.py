"""Two-level orthogonal arrays: balanced sets of masks, from Hadamard matrices.

.. [Paley1933] R. E. A. C. Paley. On orthogonal matrices. Journal of Mathematics and
   Physics 12, 1933.
.. [Plackett1946] R. L. Plackett, J. P. Burman. The design of optimum multifactorial
   experiments. Biometrika 33, 1946.
"""

from typing import Any, TypeAlias

import numpy as np

Matrix: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


def balanced_masks(n_units: int) -> Matrix:
    """Masks in which every pair of units shows 00, 01, 10 and 11 equally often.

    The columns of a Hadamard matrix but its constant one [Plackett1946]_, as 0 and 1
    (ledger E65). With equal weights the masks have the first two moments of
    independent masks of rate 1/2.

    Parameters
    ----------
    n_units : int
        Number of columns.

    Returns
    -------
    ndarray, shape (runs, n_units)
        With the fewest runs above ``n_units`` that the construction reaches.

    Examples
    --------
    >>> balanced_masks(3).tolist()
    [[1, 1, 1], [0, 1, 0], [0, 0, 1], [1, 0, 0]]
    """
    order = n_units + 1
    while (matrix := _hadamard(order)) is None:
        order += 1
    # E65: Z'Z / runs = (11' + I) / 4 and Z'1 / runs = 1/2 for Z of 0 and 1
    masks: Matrix = (matrix[:, 1 : n_units + 1] + 1) // 2
    return masks


def _hadamard(order: int) -> Matrix | None:
    """A Hadamard matrix with a constant first column, if one is constructed."""
    if order <= 2:
        return np.array([[1, 1], [1, -1]])[:order, :order]
    if order % 4:
        return None
    if _is_prime(order - 1):
        return _paley(order - 1)
    half = _hadamard(order // 2)
    return None if half is None else np.kron(np.array([[1, 1], [1, -1]]), half)


def _paley(prime: int) -> Matrix:
    """The matrix of order ``prime`` + 1 from quadratic residues [Paley1933]_."""
    residues = {(k * k) % prime for k in range(1, prime)}
    character = np.array([0] + [1 if k in residues else -1 for k in range(1, prime)])
    index = np.arange(prime)
    skew = np.zeros((prime + 1, prime + 1), dtype=np.int64)
    skew[0, 1:], skew[1:, 0] = 1, -1
    skew[1:, 1:] = character[(index[:, None] - index[None, :]) % prime]
    matrix: Matrix = skew + np.eye(prime + 1, dtype=np.int64)
    return matrix * matrix[:, :1]


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % k for k in range(2, int(number**0.5) + 1))
