"""Adapters of PEFT whose dropout is not run: merged into their layer, or switched off.

A merged adapter is part of the weight, so nothing is left of its noise; no pass shows
that it was ever there, but its module does.
"""

from torch import nn

_MERGED = """{n} adapters are merged into their layers ({paths}): their dropout is
gone. model.unmerge_adapter() brings it back; after merge_and_unload(), load the model
and its adapter again."""

_OFF = """{n} adapters are switched off ({paths}): they and their dropout are not
run. model.enable_adapter_layers() brings them back."""


def silent_adapters(model: nn.Module) -> tuple[str, ...]:
    """What to know of adapters with dropout that is not run; one note per reason."""
    owners = [(path, m) for path, m in model.named_modules() if _has_noise(m)]
    merged = [path for path, module in owners if _is(module, "merged")]
    off = [path for path, module in owners if _is(module, "disable_adapters")]
    notes = ((_MERGED, merged), (_OFF, [path for path in off if path not in merged]))
    return tuple(
        words.format(n=f"{len(paths)} of {len(owners)}", paths=_shown(paths))
        for words, paths in notes
        if paths
    )


def _has_noise(module: nn.Module) -> bool:
    """Whether this is a layer of PEFT with dropout on the way to its adapter."""
    owned = getattr(module, "lora_dropout", None)
    if not isinstance(owned, nn.ModuleDict):
        return False
    return any(getattr(part, "p", 0.0) for part in owned.values())


def _is(module: nn.Module, flag: str) -> bool:
    return getattr(module, flag, False) is True


def _shown(paths: list[str]) -> str:
    rest = f" and {len(paths) - 2} more" if len(paths) > 2 else ""
    return ", ".join(paths[:2]) + rest
