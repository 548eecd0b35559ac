"""Integrals by scipy that formulas are compared with."""

import math

from scipy import integrate


def naive_information(distance, keep):
    """I by scipy, from the entropy of the mixture of N(0, 1) and N(distance, 1)."""

    def density(x, centre):
        return math.exp(-0.5 * (x - centre) ** 2) / math.sqrt(2 * math.pi)

    def integrand(x):
        q = keep * density(x, distance) + (1 - keep) * density(x, 0.0)
        return -q * math.log(q) if q > 0 else 0.0

    points = [0.0, distance / 2, distance]
    entropy, _ = integrate.quad(
        integrand, -12, distance + 12, points=points, epsabs=1e-13, limit=500
    )
    return entropy - 0.5 * math.log(2 * math.pi * math.e)
