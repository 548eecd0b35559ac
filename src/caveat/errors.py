"""What Caveat raises on purpose, and the warnings it gives.

::

    CaveatError
    ├── ParameterError          (also ValueError)    a value outside its range
    ├── ShapeError              (also ValueError)    tensors that do not fit together
    ├── InputTypeError          (also TypeError)     not the kind of thing expected
    ├── RowIndexError           (also IndexError)    there is no such row
    ├── NoStochasticSiteError   (also ValueError)    nothing in the model is random
    ├── UnsupportedModelError   (also RuntimeError)  a model we cannot run correctly
    ├── DrawsNotKeptError       (also RuntimeError)  asked of moments what needs draws
    ├── NoAnswerError           (also RuntimeError)  asked what a predictive cannot know
    ├── DivergedError           (also RuntimeError)  training left the finite numbers
    ├── DataError               (also OSError)       a data file is absent or damaged
    └── MissingExtraError       (also ImportError)   an optional package is absent

    CaveatWarning               (a UserWarning)      right, but not what you may think

Each message says what was expected, what came, and what to do. A package that has
errors of its own derives them from these, or from ``CaveatError`` and the kind that its
users expect. ``tests/test_errors.py`` reads every ``raise`` in the package.
"""

LONGEST = 600  # characters of a message
_CUT = " […] "


class CaveatError(Exception):
    """Base of all errors raised by Caveat.

    A message that quotes what it was given may be as long as that; then its middle is
    left out.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*(shortened(a) if isinstance(a, str) else a for a in args))


def shortened(text: str, most: int = LONGEST) -> str:
    """A text of at most ``most`` characters, without the middle of a longer one."""
    if len(text) <= most:
        return text
    tail = most // 3
    return text[: most - tail - len(_CUT)] + _CUT + text[-tail:]


class ParameterError(CaveatError, ValueError):
    """A parameter has a value outside its range."""


class ShapeError(CaveatError, ValueError):
    """Tensors do not have the shapes that the call needs."""


class InputTypeError(CaveatError, TypeError):
    """An argument is not of a kind that can be used."""


class RowIndexError(CaveatError, IndexError):
    """A row number lies outside the rows that there are."""


class NoStochasticSiteError(CaveatError, ValueError):
    """The model draws no noise, so all its draws would be identical."""


class UnsupportedModelError(CaveatError, RuntimeError):
    """The model works in a way in which its draws cannot be got right."""


class DrawsNotKeptError(CaveatError, RuntimeError):
    """A quantity needs the single draws, and only their moments were kept."""


class NoAnswerError(CaveatError, RuntimeError):
    """A predictive of this kind cannot know the answer, whatever was kept."""


class DivergedError(CaveatError, RuntimeError):
    """The weights or the loss of a network are no longer finite."""


class DataError(CaveatError, OSError):
    """A data file is absent, damaged, or could not be downloaded."""


class MissingExtraError(CaveatError, ImportError):
    """A feature needs a package that is not installed."""


class CaveatWarning(UserWarning):
    """The answer is right, but it may not be the one that was meant."""
