"""How much a preset may spend: recipes, folds, batches."""

from dataclasses import dataclass, replace

from caveat.estimators.tables.columns import FEW_COLUMNS
from caveat.estimators.tables.nets import Recipe
from caveat.training.folds import Fold, contiguous_folds

_FEWEST_FOR_NETWORKS, _TINY, _SMALL = 25, 60, 6000  # rows
_FEWEST_FOR_HEADS = 100
_FEW = 300  # below which networks learn for fewer steps


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
    heads : tuple of Recipe
        Of networks with a noise head.
    """

    recipes: tuple[Recipe, ...]
    most_folds: int = 5
    rows_for_spreads: int = 40
    learning_rate: float = 5e-3
    heads: tuple[Recipe, ...] = ()

    def folds(self, n_rows: int) -> list[Fold]:
        """More of them for few rows; of very few, each row is one."""
        if n_rows < 2 * self.most_folds:
            return contiguous_folds(n_rows, n_rows)
        if n_rows <= _TINY:
            return contiguous_folds(n_rows, min(10, 2 * self.most_folds))
        return contiguous_folds(
            n_rows, self.most_folds if n_rows <= _SMALL else min(self.most_folds, 3)
        )

    def batch_size(self, n_rows: int) -> int:
        """Of all networks."""
        return 32 if n_rows < 3000 else 64 if n_rows <= _SMALL else 128


def budget_of(
    preset: str, n_rows: int, n_columns: int, *, classes: bool = False
) -> Budget:
    """What a preset may try on so many rows and columns.

    Parameters
    ----------
    preset : str
        ``"auto"``, ``"fast"`` or ``"best"``.
    n_rows, n_columns : int
        The size of the table.
    classes : bool
        Whether it is a classification.

    Returns
    -------
    Budget
    """
    if n_rows < _FEWEST_FOR_NETWORKS:
        return Budget(())
    recipes: tuple[Recipe, ...] = _FOR_CLASSES if classes else _FOR_NUMBERS
    if preset == "fast":
        recipes = recipes[:1]
    elif preset == "best":
        recipes += tuple(
            replace(r, name=f"long {r.name}", steps=3 * r.steps) for r in recipes
        )
    if n_columns > min(n_rows, FEW_COLUMNS):  # without pieces of their own
        recipes = tuple(r for r in recipes if r.view != "pieces")
    if n_columns > n_rows:
        recipes = tuple(replace(r, steps=min(r.steps, 1000)) for r in recipes)
    shorter = min(1.0, max(0.25, n_rows / _FEW))
    recipes = tuple(replace(r, steps=round(shorter * r.steps)) for r in recipes)
    folds = {"fast": 3, "auto": 5, "best": 10}[preset]
    found = Budget(recipes, most_folds=folds)
    if preset == "best" and not classes and n_rows >= _FEWEST_FOR_HEADS:
        heads = _heads(n_rows, found.batch_size(n_rows))
        found = replace(found, heads=heads)
    return found


def _heads(n_rows: int, batch_size: int) -> tuple[Recipe, ...]:
    """Those of the flagship of Table 1: rates, and two lengths."""
    epochs = 200 if n_rows <= _SMALL else 75
    steps = max(4000, epochs * n_rows // batch_size)
    rates = (0.005, 0.01, 0.05, 0.1) if n_rows <= _SMALL else (0.005, 0.02)
    return tuple(
        Recipe(f"heads {rate} {length}", "encoded", (50, 50), rate, 1e-6, length)
        for rate in rates
        for length in (steps, steps // 4)
    )


_FOR_NUMBERS = (
    Recipe("cautious networks", "encoded", (64,), 0.2, 3e-3, 1000, limit=4.0),
    Recipe("networks", "encoded", (96, 96), 0.05, 1e-4, 4000),
    Recipe("networks on pieces", "pieces", (96, 96), 0.2, 3e-3, 4000),
    Recipe("free networks on pieces", "pieces", (96, 96), 0.05, 1e-3, 4000),
)
_FOR_CLASSES = (
    Recipe("cautious networks", "encoded", (64,), 0.2, 2e-2, 1200),
    Recipe("networks", "encoded", (96, 96), 0.2, 2e-3, 1200),
    Recipe("networks on pieces", "pieces", (64, 64), 0.5, 1e-2, 600),
)
