"""Two normalising constants, and why they are not the same thing.

Paper 002's Z (eqs 9, 10) normalises the posterior, but as a function of the data it
integrates to less than 1 as soon as anything is dropped: it is not the probability of
the data, and falls with the drop rate by construction. The posterior is also that of an
ordinary model, y ~ N(r o x'w, v) with the prior w | v ~ N(0, v A^-1); the evidence of
that model is normalised, and can be compared between drop rates.
"""

import math

from scipy.special import gammaln

from caveat.maxent.linear.posterior import LinearPosterior


def log_normalizer(posterior: LinearPosterior) -> float:
    """log Z of paper 002 (ledger E45); not an evidence if anything is dropped.

    Parameters
    ----------
    posterior : LinearPosterior
        With Jeffreys' prior q(v) = 1/v is taken as it stands.

    Returns
    -------
    float
        Minus infinity for ``prior_precision=0``.
    """
    design = posterior.design
    if design.prior_precision == 0.0:
        return -math.inf
    # E45: log Z = c(n, s) + (P/2) log lambda0 - (1/2) log|Lambda|
    prior = design.features.n_features * math.log(design.prior_precision)
    log_det = design.whitening.log_det + design.factor.log_det
    return _of_variance(posterior) + 0.5 * (prior - log_det)


def log_evidence(posterior: LinearPosterior) -> float:
    """Normalised log evidence of the equivalent ordinary model (ledger E46).

    Parameters
    ----------
    posterior : LinearPosterior
        Improper priors (Jeffreys', the flat intercept) are taken with density 1/v
        and 1, so only differences between models with the same ones mean something.

    Returns
    -------
    float
        Minus infinity if the effective prior of a weight is flat.
    """
    design = posterior.design
    if not design.whitening.is_proper:
        return -math.inf
    # E46: log Z~ = c(n, s) - (1/2) log|I + G| = log Z - (1/2)(P log lambda0 - log|A|)
    return _of_variance(posterior) - 0.5 * design.factor.log_det


def _of_variance(posterior: LinearPosterior) -> float:
    """c(n, s): the factors that come from integrating over v and the intercept."""
    n_free = len(posterior.residual) - posterior.design.n_level
    level = posterior.design.n_level * math.log(len(posterior.residual))
    if posterior.rate == 0.0:
        return math.inf
    constant = gammaln(posterior.shape) - posterior.shape * math.log(posterior.rate)
    constant -= 0.5 * (n_free * math.log(2.0 * math.pi) + level)
    a0, b0 = posterior.prior
    if a0 > 0.0:
        constant += a0 * math.log(b0) - gammaln(a0)
    return float(constant)
