"""The papers' equations as pure functions; docs/equations.md lists them."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from caveat.theory.bound import elbo, gaussian_log_likelihood, objective_from_elbo
from caveat.theory.kl import (
    MonteCarloEstimate,
    component_information,
    kl_bias,
    kl_row_exact,
    kl_row_lower_bound,
    kl_row_monte_carlo,
    kl_row_upper_bound,
    mask_entropy,
)
from caveat.theory.loss import HALF_SQUARED_ERROR, Loss
from caveat.theory.precision import (
    bias_l2_penalty,
    l2_penalty,
    lengthscale,
    model_precision,
    penalty_from_weight_decay,
    require_coupled_decay,
    weight_decay_from_penalty,
)
from caveat.theory.units import (
    log_density_shift,
    precision_in_standard_units,
    precision_in_units_of_y,
)

if TYPE_CHECKING:
    from caveat.theory.kernels import NetworkKernel, gp_of

__all__ = [
    "Loss",
    "HALF_SQUARED_ERROR",
    "model_precision",
    "l2_penalty",
    "bias_l2_penalty",
    "lengthscale",
    "weight_decay_from_penalty",
    "penalty_from_weight_decay",
    "require_coupled_decay",
    "precision_in_units_of_y",
    "precision_in_standard_units",
    "log_density_shift",
    "mask_entropy",
    "component_information",
    "kl_row_exact",
    "kl_row_upper_bound",
    "kl_row_lower_bound",
    "kl_row_monte_carlo",
    "kl_bias",
    "MonteCarloEstimate",
    "gaussian_log_likelihood",
    "elbo",
    "objective_from_elbo",
    "NetworkKernel",
    "gp_of",
]


def __getattr__(name: str) -> Any:
    """The kernels, on first use: they need scikit-learn, which takes long to import."""
    if name in ("NetworkKernel", "gp_of"):
        return getattr(import_module("caveat.theory.kernels"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
