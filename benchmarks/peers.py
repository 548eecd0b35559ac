"""Other libraries behind one call: draws of a model, first axis the draws."""

import copy
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import metadata

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Peer:
    """One way in which a library draws."""

    name: str
    package: str
    prepare: Callable[[nn.Module, int], Callable[[Tensor], Tensor]]
    """Wrap a model once; the function returned makes all draws for an input."""
    folds_draws: bool = False
    """T copies of the batch in one pass: memory allows few draws only."""

    def draws(self, model: nn.Module, x: Tensor, n_draws: int) -> Tensor:
        """Return draws of a model for an input."""
        return self.prepare(model, n_draws)(x)

    def absence(self) -> str | None:
        """Say why the library cannot be used here, or return ``None``."""
        try:
            metadata.version(self.package)
        except metadata.PackageNotFoundError:
            return "not installed"
        try:
            importlib.import_module(_MODULES[self.package])
        except Exception as error:  # a broken install is not an absent one: say so
            reason = str(error).splitlines()[0]
            return f"import fails: {type(error).__name__}: {reason}"
        return None

    def version(self) -> str:
        """Return the name of the package with its version, if it is installed."""
        try:
            return f"{self.package} {metadata.version(self.package)}"
        except metadata.PackageNotFoundError:
            return f"{self.package}: not installed"


_MODULES = {
    "torch-uncertainty": "torch_uncertainty.methods",
    "baal": "baal.modelwrapper",
}


def _torch_uncertainty(
    model: nn.Module, n_draws: int, *, on_batch: bool
) -> Callable[[Tensor], Tensor]:
    from torch_uncertainty.methods import mc_dropout

    wrapped = mc_dropout(copy.deepcopy(model), n_draws, on_batch=on_batch).eval()

    def draws(x: Tensor) -> Tensor:
        with torch.no_grad():
            flat: Tensor = wrapped(x)
        return flat.reshape(n_draws, len(x), *flat.shape[1:])

    return draws


def _baal(
    model: nn.Module, n_draws: int, *, replicate: bool
) -> Callable[[Tensor], Tensor]:
    from baal.bayesian.dropout import MCDropoutModule
    from baal.modelwrapper import ModelWrapper, TrainingArgs

    patched = MCDropoutModule(copy.deepcopy(model)).eval()
    arguments = TrainingArgs(use_cuda=False, replicate_in_memory=replicate)
    wrapped = ModelWrapper(patched, arguments)

    def draws(x: Tensor) -> Tensor:
        last: Tensor = wrapped.predict_on_batch(x, iterations=n_draws)
        return last.movedim(-1, 0)

    return draws


PEERS: tuple[Peer, ...] = (
    Peer(
        "torch-uncertainty, on_batch=False",
        "torch-uncertainty",
        partial(_torch_uncertainty, on_batch=False),
    ),
    Peer(
        "torch-uncertainty, default",
        "torch-uncertainty",
        partial(_torch_uncertainty, on_batch=True),
        folds_draws=True,
    ),
    Peer("Baal, replicate_in_memory=False", "baal", partial(_baal, replicate=False)),
    Peer("Baal, default", "baal", partial(_baal, replicate=True), folds_draws=True),
)
