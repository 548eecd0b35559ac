"""Probabilistic backpropagation: a Gaussian for every weight, by moment matching.

.. [HernandezLobato2015] J. M. Hernández-Lobato, R. P. Adams. Probabilistic
   backpropagation for scalable learning of Bayesian neural networks. ICML 2015.
"""

from caveat.training.pbp.learning import learn
from caveat.training.pbp.networks import PBPNetworks, initial

__all__ = ["PBPNetworks", "initial", "learn"]
