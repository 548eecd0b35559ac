"""Noise that depends on x."""

from dataclasses import dataclass

from caveat.errors import InputTypeError


@dataclass(frozen=True)
class NoiseHead:
    """The precision is a function of x, learned by further outputs of the networks.

    Parameters
    ----------
    calibrate : bool
        Learned precisions are often too high on new rows: find one factor on all of
        them by folds of the training rows. False leaves them as they were learned.
    """

    calibrate: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.calibrate, bool):
            raise InputTypeError(
                f"calibrate must be True or False. Got {self.calibrate!r}."
            )
