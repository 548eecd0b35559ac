"""What must be true of a model and a tokenizer, said before anything has run."""

from typing import Any

from torch import nn

from caveat.errors import InputTypeError, UnsupportedModelError


def check_transformer(model: nn.Module) -> None:
    """Whether this is a model of transformers, and its weights are there.

    Parameters
    ----------
    model : nn.Module
        Adapters of PEFT and compiled models pass as what they wrap.
    """
    if not hasattr(model, "config") or not hasattr(model, "device"):
        raise InputTypeError(
            f"The model must be one of transformers, which has a config. Got "
            f"{type(model).__name__}; caveat.MCDropout takes any module."
        )
    if getattr(model.device, "type", None) == "meta":
        raise UnsupportedModelError(
            f"{type(model).__name__} has weights on the meta device, which have a "
            f"shape and no numbers. Load it with from_pretrained(...), or with "
            f"model.to_empty(device=...) and model.load_state_dict(...)."
        )


def check_processor(processor: Any) -> None:
    """Whether this makes inputs of texts or images."""
    if not callable(processor):
        got = "none" if processor is None else f"a {type(processor).__name__}"
        raise InputTypeError(
            f"What makes inputs of items must be given: the model's own tokenizer or "
            f"image processor. Got {got}; pass AutoTokenizer or "
            f"AutoImageProcessor.from_pretrained(...)."
        )


def check_writer(model: Any) -> None:
    """Whether a model of transformers reads text and writes it."""
    if not callable(getattr(model, "generate", None)):
        raise InputTypeError(
            f"The model must be one of transformers that writes (…ForCausalLM, "
            f"…ForConditionalGeneration). Got {type(model).__name__}."
        )
    if getattr(model, "main_input_name", "input_ids") != "input_ids":
        raise InputTypeError(
            f"The model must read text. Got {type(model).__name__}, which reads "
            f"{model.main_input_name}."
        )
