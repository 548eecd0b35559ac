"""The exact Bayesian dropout linear model of paper 002, in plain arrays."""

from caveat.maxent.linear.design import Design
from caveat.maxent.linear.evidence import log_evidence, log_normalizer
from caveat.maxent.linear.features import Features
from caveat.maxent.linear.intercept import make_intercept
from caveat.maxent.linear.leave_one_out import (
    LeaveOneOut,
    effective_degrees_of_freedom,
    exact_leave_one_out,
    fast_leave_one_out,
    generalised_cross_validation,
)
from caveat.maxent.linear.noise import make_noise
from caveat.maxent.linear.posterior import (
    LinearPosterior,
    VariancePrior,
    fit_posterior,
)

__all__ = [
    "Design",
    "Features",
    "LeaveOneOut",
    "LinearPosterior",
    "VariancePrior",
    "effective_degrees_of_freedom",
    "exact_leave_one_out",
    "fast_leave_one_out",
    "fit_posterior",
    "generalised_cross_validation",
    "log_evidence",
    "log_normalizer",
    "make_intercept",
    "make_noise",
]
