"""What a server has loaded by its first request is not searched for rubbish again.

Python's collector looks at every object now and then, and with torch in the house that
takes longer than many a budget, and nobody is answered meanwhile.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def settled_heap() -> Iterator[None]:
    """Leave what is there now out of all collections, for the time of a block.

    Examples
    --------
    >>> import gc
    >>> with settled_heap():
    ...     gc.get_freeze_count() > 0
    True
    """
    if gc.get_freeze_count():  # somebody else has done it, and will undo it
        yield
        return
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
