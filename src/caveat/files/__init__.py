"""The model file: fitted things as one zip of JSON and safetensors."""

from caveat.files.saving import load, load_frame, save

__all__ = ["load", "load_frame", "save"]
