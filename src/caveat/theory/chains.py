"""The order in which a chain of modules runs."""

from collections.abc import Iterator

from torch import nn


def in_order(module: nn.Module) -> Iterator[nn.Module]:
    """The modules of a chain as they are called; what is no chain, as a whole."""
    if isinstance(module, nn.Sequential) and _runs_in_order(module):
        for child in module:
            yield from in_order(child)
    else:
        yield module


def _runs_in_order(module: nn.Sequential) -> bool:
    """Whether a subclass of nn.Sequential still calls its modules one by one."""
    return type(module).forward is nn.Sequential.forward
