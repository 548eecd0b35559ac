"""Learning q(ω): many small networks trained as one, and searches over them."""

from caveat.training.fleet import Trained, train
from caveat.training.members import Architecture, Member, Recipe, Rows
from caveat.training.stopping import Watch

__all__ = ["Architecture", "Member", "Recipe", "Rows", "Trained", "Watch", "train"]
