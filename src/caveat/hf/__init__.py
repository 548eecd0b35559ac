"""Hugging Face models: texts and images in, labels with their doubt out."""

from caveat._optional import require

require("transformers", extra="hf")  # before anybody passes a model of it

from caveat.hf.generation import Continuations, generate  # noqa: E402
from caveat.hf.pipelines import Pipeline, pipeline  # noqa: E402
from caveat.hf.scoring import TextScore  # noqa: E402
from caveat.hf.texts import score  # noqa: E402

__all__ = [
    "Continuations",
    "Pipeline",
    "TextScore",
    "generate",
    "pipeline",
    "score",
]
