"""Faster tapes with the same result.

Each rewrite looks for one pattern and is on its own right: the replay of a rewritten
tape is compared with the recorded pass before it is used (``engine.py``).
"""

from caveat.sampling.rewriting.channels_last import use_channels_last
from caveat.sampling.rewriting.heads import hoist_heads, hoist_small_heads
from caveat.sampling.rewriting.in_place import reuse_memory, without_writes
from caveat.sampling.rewriting.masks import fold_masks
from caveat.sampling.rewriting.parts import compute_parts
from caveat.sampling.rewriting.slicing import slice_units
from caveat.sampling.rewriting.starts import share_starts
from caveat.sampling.rewriting.together import draws_together
from caveat.sampling.tape import Tape

_REWRITES = (
    without_writes,
    compute_parts,
    hoist_heads,
    slice_units,
    fold_masks,
    use_channels_last,
    share_starts,
    reuse_memory,
)


def optimised(tape: Tape) -> Tape:
    """A copy of ``tape`` after all rewrites."""
    tape = tape.copy()
    for rewrite in _REWRITES:
        rewrite(tape)
        tape.drop_dead()
    return tape


__all__ = [
    "compute_parts",
    "draws_together",
    "hoist_small_heads",
    "optimised",
    "without_writes",
]
