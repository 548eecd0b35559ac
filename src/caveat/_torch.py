"""Every private name of torch that we use: what it is for, what would replace it.

No other file may use one (``tests/test_torch.py`` reads the source), so a new
version of torch is looked after here. ``torch.ops.aten`` is taken as public.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

# An operation with its overload, as a dispatch mode is given it. For annotations and as
# a key. Replacement: type(torch.ops.aten.add.Tensor), which is the same class.
from torch._ops import OpOverload

# Bases of all dropout, convolution and norm modules, for isinstance. Replacement: a
# tuple of the public classes, which would miss those to come.
from torch.nn.modules.batchnorm import _NormBase as NormBase
from torch.nn.modules.conv import _ConvNd as ConvNd
from torch.nn.modules.dropout import _DropoutNd as DropoutNd

# Structures of tensors, taken apart and put together again; also those that libraries
# register (the outputs of transformers). Replacement: the package optree.
from torch.utils import _pytree as pytree

# Sees every operation below autograd. Private by its module's name only: it is
# documented, and subclassed all over the ecosystem. Replacement: none needed so far.
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = [
    "CALL",
    "MODULES",
    "TENSORS",
    "ConvNd",
    "DispatchMode",
    "DropoutNd",
    "NormBase",
    "OpOverload",
    "below_autograd",
    "can_decompose",
    "compiled_from",
    "compiler_is_loaded",
    "op_arguments",
    "op_name",
    "op_overload",
    "plain_call",
    "pytree",
    "safe_softmax",
    "set_grad_enabled",
    "storage_address",
    "without_function_modes",
]

# ------------------------------------------------------------ modes


class DispatchMode(TorchDispatchMode):
    """A dispatch mode that does not load torch's compiler."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Keep torch from importing its whole compiler, just to step around us.

        Asked when a subclass is made, by versions of torch that would wrap us in
        ``torch._disable_dynamo``. Replacement: leave it out, at the price of seconds on
        the first pass.
        """
        return False


@contextmanager
def below_autograd() -> Iterator[None]:
    """Skip autograd altogether: composite operations then reach the recorder whole.

    Nor do writes count in the version of a tensor, which autograd would do even for
    writes that the recorder redirects. This is what ``torch.inference_mode`` does, but
    without its special tensors. Replacement: ``torch.inference_mode``, if the tensors
    that a pass makes could then be used outside of it.
    """
    versions = torch._C.DispatchKeySet(torch._C.DispatchKey.ADInplaceOrView)
    with (
        torch._C._AutoDispatchBelowAutograd(),
        torch._C._ExcludeDispatchKeyGuard(versions),
    ):
        yield


# Function modes (our guard) off, for what the recorder does itself. Replacement: none
# that is public; a flag of our guard would do.
without_function_modes = torch._C.DisableTorchFunction

# What torch.no_grad, enable_grad and set_grad_enabled call: a function mode sees it,
# and so do we see autograd inside a forward. Replacement: none.
set_grad_enabled = torch._C._set_grad_enabled


# ------------------------------------------------------------ operations

# Softmax with zeros, not NaN, for rows of -inf, as in torch's own attention.
# Replacement: softmax, then masked_fill of those rows.
safe_softmax = torch._safe_softmax


def op_name(func: Any) -> str:
    """The ATen name of an operation ("add", "add_"); "" if it is none of ATen's.

    From the schema of an overload. Replacement: ``func.name()``, without overload.
    """
    schema = getattr(func, "_schema", None)
    return "" if schema is None else schema.name.removeprefix("aten::")


def op_overload(func: OpOverload) -> str:
    """Which overload of its name an operation is. Replacement: ``func.name()``."""
    return func._overloadname


def op_arguments(func: OpOverload) -> Any:
    """Names of the arguments of an operation, and which of them it writes to.

    Replacement: none that is public, other than reading the text of the schema.
    """
    return func._schema.arguments


def can_decompose(func: OpOverload) -> bool:
    """Whether an operation is composite, so that ``func.decompose`` takes it apart.

    Replacement: try ``decompose`` and look for NotImplemented.
    """
    return func._can_decompose()


def storage_address(tensor: Tensor) -> int:
    """Where the storage of a tensor is, also if it has no memory (meta tensors).

    Replacement: ``untyped_storage().data_ptr()``, which is 0 for all empty tensors.
    """
    return tensor.untyped_storage()._cdata


# ------------------------------------------------------------ modules

# nn.Module.__call__ runs this attribute, if it is set, in place of its own code; torch
# keeps it for Module.compile. We set it on copies to follow calls, and on the user's
# model inside ``stochastic``. Replacement: a class made on the fly with __call__.
CALL = "_compiled_call_impl"

# Where a module keeps its tensors and its parts: a copy shares the first and copies the
# others. Replacement: named_parameters, named_buffers, named_children.
TENSORS = ("_parameters", "_buffers")
MODULES = "_modules"


def plain_call(module: nn.Module) -> Callable[..., Any]:
    """The call of a module with its hooks, past ``CALL``. Replacement: as for CALL."""
    return module._call_impl


def compiled_from(module: nn.Module) -> nn.Module:
    """What ``torch.compile`` made a module from; itself if it is not compiled.

    By name: asking ``isinstance`` would import the compiler. Replacement: none.
    """
    while type(module).__name__ == "OptimizedModule":
        module = module.get_submodule("_orig_mod")
    return module


def compiler_is_loaded() -> bool:
    """Whether anything can have been compiled. Replacement: none that loads nothing."""
    return "torch._dynamo" in sys.modules
