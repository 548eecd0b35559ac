"""How good predictions are, in numbers and in figures."""

from caveat.evaluation.displays import PredictiveDisplay, SoftmaxScatterDisplay

__all__ = ["PredictiveDisplay", "SoftmaxScatterDisplay"]
