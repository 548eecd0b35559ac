"""The oracle: T passes of a copy in train mode, normalisation layers in eval."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.parametrizations import _SpectralNorm
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.utils import _pytree as pytree

from tests.zoo.specimen import Inputs, Specimen


def plain_loop(
    specimen: Specimen, n_draws: int, *, rows: list[int] | None = None, seed: int = 0
) -> list[Tensor]:
    """The floating tensors of what is compared, each (draws, batch, *event)."""
    model = train_mode(specimen.build())
    call = specimen.reference(model) if specimen.reference else model
    inputs = specimen.rows(rows)
    with own_randomness(seed), torch.no_grad():
        passes = [specimen.tensors(_call(call, inputs)) for _ in range(n_draws)]
    return [torch.stack(draws) for draws in zip(*passes, strict=True)]


def train_mode(model: nn.Module) -> nn.Module:
    """Everything random on; what estimates statistics from batches stays off."""
    model.train()
    for module in model.modules():
        if _estimates(module):
            module.training = False  # not .eval(): the children may be random
    return model


def _estimates(module: nn.Module) -> bool:
    hooks = module._forward_pre_hooks.values()
    return isinstance(module, nn.modules.batchnorm._NormBase | _SpectralNorm) or any(
        isinstance(hook, SpectralNorm) for hook in hooks
    )


def _call(function: Callable[..., Any], inputs: Inputs) -> Any:
    """Call on copies, and copy the result: some models write to what they hold."""
    args, kwargs = pytree.tree_map_only(Tensor, torch.clone, inputs)
    return pytree.tree_map_only(Tensor, torch.clone, function(*args, **kwargs))


@contextmanager
def own_randomness(seed: int) -> Iterator[None]:
    """Seeded torch, numpy and Python randomness, put back afterwards."""
    state, numpy_state = random.getstate(), np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002 - modules of the zoo read the global one
        random.seed(seed)
        try:
            yield
        finally:
            random.setstate(state)
            np.random.set_state(numpy_state)  # noqa: NPY002
