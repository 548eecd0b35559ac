"""What ``caveat.hf.generate`` is asked for: what it honours, and what it refuses."""

from copy import deepcopy
from difflib import get_close_matches
from typing import Any, NamedTuple

from caveat import _validation as check
from caveat.errors import ParameterError

# Options of transformers that hold for greedy decoding and for sampling alike.
_SERVED = frozenset(
    """min_new_tokens eos_token_id pad_token_id bos_token_id decoder_start_token_id
    use_cache cache_implementation repetition_penalty encoder_repetition_penalty
    no_repeat_ngram_size encoder_no_repeat_ngram_size bad_words_ids suppress_tokens
    begin_suppress_tokens forced_bos_token_id forced_eos_token_id""".split()
)
_OWN = frozenset(("do_sample", "temperature", "top_k", "top_p"))
_NEEDS_ONE = frozenset(("num_beams", "num_return_sequences", "num_beam_groups"))
# They change how tokens are chosen, and must not be set by a configuration either.
_REFUSED = """num_beams num_return_sequences num_beam_groups penalty_alpha dola_layers
    prompt_lookup_num_tokens assistant_early_exit use_mtp guidance_scale constraints
    watermarking_config force_words_ids stop_strings token_healing max_time""".split()
_REFUSED_SAMPLING = "min_p top_h typical_p epsilon_cutoff eta_cutoff".split()
_WHY = {
    "num_beams": "A beam keeps what a single function finds probable, not its draws",
    "num_return_sequences": "Each draw writes one continuation; ask for more n_draws",
    "stop_strings": "It needs a tokenizer; pass eos_token_id",
    "guidance_scale": "It mixes two calls of the model",
    "max_time": "What is written would hang on how fast it is",
    "assistant_model": "In assisted decoding another model writes",
}


# In a cache of fixed size that is shorter it does not show where its tokens lie.
_ROOM = 4
_FIXED = ("static", "hybrid", "hybrid_chunked", "sliding_window")


class Choosing(NamedTuple):
    """How a token is chosen from what a draw says."""

    do_sample: bool
    temperature: float | None
    top_k: int | None
    top_p: float | None


def read_options(
    model: Any, max_new_tokens: int, options: dict[str, Any]
) -> tuple[Any, Choosing]:
    """A configuration for greedy decoding, and how tokens are to be chosen."""
    for name in options:
        _check_name(name)
    config = deepcopy(model.generation_config)
    for name, value in options.items():
        setattr(config, name, value)
    config.max_new_tokens = check.positive_int("max_new_tokens", max_new_tokens)
    config.max_length = None
    _check_ends(config)
    _check_cache(config)
    config.return_dict_in_generate = False  # what it returns is read here
    for name in ("output_scores", "output_logits"):
        setattr(config, name, False)
    choice = _choice(config)
    limits = sorted(_OWN & set(options) - {"do_sample"})
    if limits and not choice.do_sample:
        raise ParameterError(
            f"{limits[0]} is for do_sample=True. Got it for greedy decoding, which "
            f"takes the most probable token; pass do_sample=True, or leave it out."
        )
    _check_config(config, choice)
    # The choice is made by a processor of ours: greedy of what it returns.
    config.do_sample = False
    for name in ("temperature", "top_k", "top_p", *_REFUSED_SAMPLING):
        setattr(config, name, None)
    if config.pad_token_id is None:
        ends = config.eos_token_id
        first = ends[0] if isinstance(ends, list) else ends
        config.pad_token_id = 0 if first is None else first
    return config, choice


def _check_ends(config: Any) -> None:
    """Tokens by number, and no more of them asked for than may be written."""
    for name in ("eos_token_id", "pad_token_id"):
        value = getattr(config, name)
        numbers = value if isinstance(value, list | tuple) else [value]
        if not all(n is None or type(n) is int for n in numbers):
            raise ParameterError(
                f"{name} must be the number of a token. Got {value!r}; a tokenizer "
                f"has them: tokenizer.convert_tokens_to_ids(...)."
            )
    if (config.min_new_tokens or 0) > config.max_new_tokens:
        raise ParameterError(
            f"min_new_tokens must be at most max_new_tokens={config.max_new_tokens}. "
            f"Got {config.min_new_tokens}."
        )


def _check_cache(config: Any) -> None:
    """The cache changes no number, so where a kind has no room another will do."""
    kind = config.cache_implementation
    if kind in (None, "dynamic"):
        return
    check.one_of("cache_implementation", kind, ("dynamic", *_FIXED))
    if config.max_new_tokens < _ROOM:
        config.cache_implementation = None


def _check_name(name: str) -> None:
    if name in _SERVED or name in _OWN or name in _NEEDS_ONE:
        return
    if name in (*_REFUSED, *_REFUSED_SAMPLING, *_WHY):
        raise ParameterError(_refusal(name))
    close = get_close_matches(name, sorted(_SERVED | _OWN | {"max_new_tokens"}), n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise ParameterError(
        f"generate takes input_ids, attention_mask and options of decoding. Got "
        f"{name!r}.{hint} Options are {', '.join(sorted(_SERVED | _OWN))}."
    )


def _refusal(name: str, value: Any = None) -> str:
    shown = name if value is None else f"{name}={value!r}"
    why = _WHY.get(name, "It is another way of choosing tokens")
    return (
        f"generate writes with one function a draw, greedily or by do_sample with "
        f"temperature, top_k and top_p. Got {shown}. {why}. If it comes from "
        f"model.generation_config, pass {name}=1 or set it to None there."
        if name in _NEEDS_ONE
        else f"generate cannot honour {shown}. {why}; leave it out, also of "
        f"model.generation_config."
    )


def _check_config(config: Any, choice: Choosing) -> None:
    names = _REFUSED + (_REFUSED_SAMPLING if choice.do_sample else [])
    for name in names:
        value = getattr(config, name, None)
        harmless: tuple[Any, ...] = (None, 1) if name in _NEEDS_ONE else (None, False)
        if name in ("typical_p", "guidance_scale"):
            harmless = (None, 1.0)
        if name in ("epsilon_cutoff", "eta_cutoff"):
            harmless = (None, 0.0)
        if value not in harmless:
            raise ParameterError(_refusal(name, value))


def _choice(config: Any) -> Choosing:
    sampled = bool(config.do_sample)
    set_ = {
        name: getattr(config, name, None)
        for name in ("temperature", "top_k", "top_p")
        if sampled
    }
    temperature, top_k, top_p = (
        set_.get(name) for name in ("temperature", "top_k", "top_p")
    )
    if temperature is not None:
        temperature = check.positive("temperature", temperature)
    if top_k is not None and top_k != 0:  # 0: no limit, as in transformers
        top_k = check.positive_int("top_k", top_k)
    if top_p is not None and top_p != 1.0:
        top_p = check.unit_interval("top_p", top_p)
    return Choosing(sampled, temperature, top_k or None, top_p)
