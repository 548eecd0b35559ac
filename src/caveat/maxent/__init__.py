"""The maximum-entropy dropout posterior of any NumPyro model (paper 002).

Mark what is dropped inside an ordinary model and transform the model; the markers
alone change nothing. Needs the extra ``numpyro``, which is imported on first use.

.. [Herlau2015] T. Herlau, M. Mørup, M. N. Schmidt. Bayesian dropout. arXiv
   1508.02905, 2015 (paper 002).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from caveat._optional import require

if TYPE_CHECKING:
    from caveat.maxent.conversion import predictive
    from caveat.maxent.markers import dropout
    from caveat.maxent.masks import Balanced, Enumerate, Fixed, Fresh
    from caveat.maxent.points import ClosedForm, Quadrature
    from caveat.maxent.transforms import dropped, naive, posterior, weight_averaged

_HOMES = {
    "dropout": "markers",
    "posterior": "transforms",
    "naive": "transforms",
    "dropped": "transforms",
    "weight_averaged": "transforms",
    "predictive": "conversion",
    "Enumerate": "masks",
    "Balanced": "masks",
    "Fixed": "masks",
    "Fresh": "masks",
    "ClosedForm": "points",
    "Quadrature": "points",
}

__all__ = [
    "dropout",
    "posterior",
    "naive",
    "dropped",
    "weight_averaged",
    "predictive",
    "Enumerate",
    "ClosedForm",
    "Quadrature",
    "Balanced",
    "Fixed",
    "Fresh",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require("numpyro", extra="numpyro")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
