"""The noise that a module on units draws, without running the network it is in.

For networks whose passes are written by hand, such as a fleet's: given the same seed
they have the very masks of :class:`caveat.MCDropout`.
"""

import math

import torch
from torch import Tensor, nn

from caveat.errors import InputTypeError
from caveat.noise import GaussianNoise
from caveat.sampling.noise import Law, Mask, NoiseSpec, Normal


def unit_factors(
    module: nn.Module,
    path: str,
    n_units: int,
    *,
    seed: int,
    draws: range,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Factors of the units at a module of noise that runs once in a pass.

    Parameters
    ----------
    module : nn.Dropout or GaussianNoise
        On rows (batch, units).
    path : str
        Its path in the network, ``"2"`` in an ``nn.Sequential``.
    n_units : int
        How many units there are.
    seed : int
        That of ``MCDropout(network, seed=seed)``, with masks shared by rows.
    draws : range
        Numbers of the draws.
    dtype : torch.dtype
        In which the network is run.

    Returns
    -------
    Tensor, shape (draws, units)
    """
    law, finish = _law(module)
    cpu = torch.device("cpu")
    name = f"{path}#0"
    site = NoiseSpec(name, law, (1, n_units), dtype, cpu, stratified=True)
    drawn = site.sample(seed, draws).squeeze(1)
    return drawn if finish is None else drawn.mul_(finish).add_(1.0)


def _law(module: nn.Module) -> tuple[Law, float | None]:
    """What is drawn, and the spread around 1 if it is a standard normal number."""
    if isinstance(module, nn.Dropout):
        keep_prob = 1.0 - module.p
        return Mask(keep_prob, 1.0 / keep_prob), None
    if isinstance(module, GaussianNoise) and not module.spatial:
        return Normal(), math.sqrt(module.variance)
    raise InputTypeError(
        "module must be nn.Dropout or GaussianNoise on single units. "
        f"Got {type(module).__name__}; MCDropout draws from any module."
    )
