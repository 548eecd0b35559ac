"""The model file: fitted things as one zip of JSON and safetensors."""

from caveat.files.saving import load, save

__all__ = ["load", "save"]
