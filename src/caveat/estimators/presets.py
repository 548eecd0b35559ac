"""Presets of the dropout estimators, and how they go with given arguments."""

from typing import Any

from caveat.errors import ParameterError

AUTO, FAST, BEST = "auto", "fast", "best"
PRESETS = (AUTO, FAST, BEST)

DEFAULTS: dict[str, Any] = {
    "hidden": (50,),
    "activation": "relu",
    "noise": "bernoulli",
    "drop_rate": 0.05,
    "input_drop_rate": 0.0,
    "n_members": 1,
}
_ARGUMENTS = (*DEFAULTS, "prior", "schedule", "precision")


def given_arguments(estimator: Any) -> dict[str, Any]:
    """The arguments of an estimator that say something of its networks.

    Parameters
    ----------
    estimator : DropoutRegressor or DropoutClassifier
        Whose arguments are read.

    Returns
    -------
    dict of str to object
        Those that are not None.
    """
    found = {name: getattr(estimator, name, None) for name in _ARGUMENTS}
    return {name: value for name, value in found.items() if value is not None}


def preset_of(estimator: Any) -> str | None:
    """The preset that counts; None if the arguments are the recipe.

    Parameters
    ----------
    estimator : DropoutRegressor or DropoutClassifier
        With a preset and perhaps arguments.

    Returns
    -------
    str or None
    """
    preset = estimator.preset
    if preset is not None and preset not in PRESETS:
        known = ", ".join(map(repr, PRESETS))
        raise ParameterError(f"preset must be one of {known}, or None. Got {preset!r}.")
    given = given_arguments(estimator)
    if preset is None or (preset == AUTO and given):
        return None
    if given:
        raise ParameterError(
            f"preset={preset!r} chooses the networks itself. Got "
            f"{', '.join(given)} beside it; leave out the one or the other."
        )
    return str(preset)
