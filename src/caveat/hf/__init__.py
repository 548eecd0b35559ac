"""Hugging Face models: texts and images in, labels with their doubt out."""

from caveat._optional import require

require("transformers", extra="hf")  # before anybody passes a model of it

from caveat.hf.pipelines import Pipeline, pipeline  # noqa: E402

__all__ = ["Pipeline", "pipeline"]
