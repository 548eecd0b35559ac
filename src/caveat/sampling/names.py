"""Keyword arguments that were meant for us, or are misspelt, and would go to the model.

A model that takes ``**kwargs`` swallows whatever it does not know, a misspelt
``n_draws`` or ``attention_mask`` too, and the answer would be that of the default.
"""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from inspect import Parameter
from itertools import takewhile
from typing import Any

import numpy as np
from torch import Tensor, nn

from caveat.errors import InputTypeError
from caveat.sampling.sources import signature_of

# Our own names, in whatever method they stand.
OURS = (
    "n_draws batch_size progress precision output class_dim keep_draws tolerance "
    "max_draws calibration has_labels correlated shared stratified batch_dim analytic"
).split()

# What others call them.
_ALIASES = {
    "n_draws": "T n_samples num_samples nsamples samples sample_size mc_samples "
    "n_mc_samples num_mc_samples n_mc mc_passes passes n_passes num_passes "
    "forward_passes n_forward_passes num_forward_passes n_forwards mc_iterations "
    "mc_iters n_iter n_iters num_iterations iterations draws ndraws n_draw num_draws "
    "number_of_draws number_of_samples",
    "batch_size": "batchsize bs batch_sz n_batch minibatch_size chunk_size chunksize",
    "tolerance": "tol rtol atol",
    "max_draws": "max_samples max_passes max_iter",
    "keep_draws": "keep_samples return_draws return_samples store_draws store_samples",
    "precision": "tau noise_precision model_precision",
    "precision=1/s**2": "noise_std noise_sigma noise_scale observation_std sigma_noise",
    "precision=1/v": "noise_variance noise_var observation_noise",
    "progress": "verbose progress_bar show_progress pbar tqdm",
    "class_dim": "class_axis classes_dim classdim classes_axis",
    "MCDropout(model, seed=...)": "seed random_state random_seed rng rng_seed "
    "generator",
}
_MEANT = {alias: ours for ours, names in _ALIASES.items() for alias in names.split()}
_LONG = 6  # letters of a name, below which another one is no slip
_NEAR = 0.8  # of 1, by difflib: a letter or two of a word

_DID_YOU_MEAN = """Did you mean {meant}? {given} is no parameter of {method}, and
{model}.forward, which takes any keyword, would swallow it. If the model does read it,
name it in the signature of its forward."""


def check_names(method: str, model: nn.Module, keywords: Mapping[str, Any]) -> None:
    """Refuse keywords for the model that are nearly ours, or nearly its own.

    A name that ``forward`` spells out is the model's, and so is a tensor of any name
    that is not exactly one of ours, unless it is one slip away from such a name.
    """
    if not keywords:
        return
    signature = signature_of(model)
    known = () if signature is None else signature.parameters
    takes_any = signature is None or any(
        p.kind is Parameter.VAR_KEYWORD for p in signature.parameters.values()
    )
    for name, value in keywords.items():
        if takes_any and name not in known and (own := _slip_of(name, known)):
            text = _DID_YOU_MEAN.format(
                meant=own, given=f"{name}=", method=method, model=type(model).__name__
            )
            raise InputTypeError(text)
        meant = None if name in known else meant_by(name)
        if meant is None or (_is_input(value) and name not in OURS):
            continue
        given = f"{name}="
        if takes_any:
            text = _DID_YOU_MEAN.format(
                meant=meant, given=given, method=method, model=type(model).__name__
            )
            raise InputTypeError(text)
        raise InputTypeError(
            f"Did you mean {meant}? {given} is a parameter neither of {method} nor of "
            f"{type(model).__name__}.forward."
        )


def meant_by(name: str) -> str | None:
    """Which of our names this may stand for; None if it looks like none."""
    if name in OURS:
        return f"another method, as this one has no {name}"
    if (alias := _MEANT.get(name) or _MEANT.get(name.lower())) is not None:
        return alias
    near = get_close_matches(name.lower(), OURS, n=1, cutoff=_NEAR)
    return near[0] if near else None


def _slip_of(name: str, known: Iterable[str]) -> str | None:
    """Which of the names this is but for one slip; digits tell names apart."""
    if len(name) < _LONG:
        return None
    return next((one for one in known if _is_one_slip(name, one)), None)


def _is_one_slip(one: str, other: str) -> bool:
    """Whether a letter is missing, too many, another, or two have changed places."""
    if abs(len(one) - len(other)) > 1:
        return False
    start = _n_common(one, other)
    one, other = one[start:], other[start:]
    end = _n_common(one[::-1], other[::-1])
    one, other = one[: len(one) - end], other[: len(other) - end]
    if not (one + other).isalpha():
        return False
    return max(len(one), len(other)) == 1 or (len(one) == 2 and one == other[::-1])


def _n_common(one: str, other: str) -> int:
    """How many letters are the same before the first that is not."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _is_input(value: Any) -> bool:
    return isinstance(value, Tensor | np.ndarray) and value.ndim > 0
