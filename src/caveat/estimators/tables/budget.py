"""How much a preset may spend: recipes, folds, batches."""

from dataclasses import dataclass

from caveat.estimators.tables.nets import Recipe
from caveat.training.folds import Fold, contiguous_folds

_TINY, _SMALL, _LARGE = 60, 6000, 15_000  # rows


@dataclass(frozen=True)
class Budget:
    """What may be tried on a table.

    Attributes
    ----------
    recipes : tuple of Recipe
    most_folds : int
    rows_for_spreads : int
        From which on the noise may depend on the row.
    learning_rate : float
    """

    recipes: tuple[Recipe, ...]
    most_folds: int = 5
    rows_for_spreads: int = 40
    learning_rate: float = 5e-3

    def folds(self, n_rows: int) -> list[Fold]:
        """More of them for few rows; of very few, each row is one."""
        if n_rows < 2 * self.most_folds:
            return contiguous_folds(n_rows, n_rows)
        if n_rows <= _TINY:
            return contiguous_folds(n_rows, min(10, 2 * self.most_folds))
        return contiguous_folds(n_rows, self.most_folds if n_rows <= _SMALL else 3)

    def batch_size(self, n_rows: int) -> int:
        """Of all networks."""
        return 32 if n_rows < 3000 else 64 if n_rows <= _SMALL else 128


def budget_of(preset: str, n_rows: int, n_columns: int) -> Budget:
    """What a preset may try on so many rows and columns.

    Parameters
    ----------
    preset : str
        ``"auto"`` or ``"fast"``.
    n_rows, n_columns : int
        The size of the table.

    Returns
    -------
    Budget
    """
    long = 4000
    cautious = Recipe("cautious networks", "encoded", (64,), 0.2, 3e-3, 1000, limit=4.0)
    if n_rows < 25:
        return Budget(())
    if preset == "fast":
        return Budget((cautious,), most_folds=3)
    return Budget(
        (
            cautious,
            Recipe("networks", "encoded", (96, 96), 0.05, 1e-4, long),
            Recipe("networks on pieces", "pieces", (96, 96), 0.2, 3e-3, long),
            Recipe("networks on pieces, free", "pieces", (96, 96), 0.05, 1e-3, long),
        )
    )
