"""A model with its sampler as a file that others run."""

from caveat.exporting.door import export

__all__ = ["export"]
