"""Moments without sampling: exact where they can be, else an approximation."""

from caveat.sampling.closed_form.result import PredictiveMoments
from caveat.sampling.closed_form.softmax import mean_field_softmax

__all__ = ["PredictiveMoments", "mean_field_softmax"]
