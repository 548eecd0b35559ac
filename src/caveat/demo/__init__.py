"""``caveat demo``: two experiments of the paper in about two minutes."""

from caveat.demo.runner import run
from caveat.demo.table import Report

__all__ = ["Report", "run"]
