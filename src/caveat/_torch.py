"""Every private name of torch that we use: what it is for, what would replace it.

No other file may use one (``tests/test_torch.py`` reads the source), so a new
version of torch is looked after here. ``torch.ops.aten`` is taken as public.
"""

import importlib
import logging
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib.abc import MetaPathFinder
from typing import Any, final

import torch
import torch.utils.checkpoint
from torch import Tensor, nn

# An operation with its overload, as a dispatch mode is given it. For annotations and as
# a key. Replacement: type(torch.ops.aten.add.Tensor), which is the same class. The
# other is the class of torch.cond and its kin, which take functions as arguments.
from torch._ops import HigherOrderOperator, OpOverload, OpOverloadPacket

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
    "CompilerWanted",
    "ConvNd",
    "DispatchMode",
    "DropoutNd",
    "HigherOrderOperator",
    "NormBase",
    "OpOverload",
    "OpOverloadPacket",
    "SymbolicRows",
    "below_autograd",
    "can_decompose",
    "can_map",
    "compiled_from",
    "compiler_is_loaded",
    "compiler_kept_out",
    "functional_graph",
    "is_fake",
    "load_compiler",
    "make_dual",
    "op_arguments",
    "op_name",
    "op_overload",
    "plain_call",
    "pytree",
    "quiet_exporter",
    "rows_factor",
    "safe_softmax",
    "set_grad_enabled",
    "sparse_parts",
    "storage_address",
    "symbolic_sizes",
    "takes_apart",
    "while_loop",
    "without_checkpoints",
    "without_function_modes",
]

# ------------------------------------------------------------ modes


class DispatchMode(TorchDispatchMode):
    """A dispatch mode that does not load torch's compiler.

    It is also given ``torch.cond`` and its kin, if it says so.
    """

    supports_higher_order_operators = True

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


@final
class below_autograd:
    """Skip autograd altogether: composite operations then reach the recorder whole.

    Nor do writes count in the version of a tensor, which autograd would do even for
    writes that the recorder redirects. This is what ``torch.inference_mode`` does, but
    without its special tensors. Replacement: ``torch.inference_mode``, if the tensors
    that a pass makes could then be used outside of it.
    """

    __slots__ = ("_autograd", "_versions")

    def __enter__(self) -> None:
        self._autograd = torch._C._AutoDispatchBelowAutograd()
        self._versions = torch._C._ExcludeDispatchKeyGuard(_VERSIONS)
        self._autograd.__enter__()
        self._versions.__enter__()

    def __exit__(self, *error: object) -> None:
        self._versions.__exit__(*error)
        self._autograd.__exit__(*error)


_VERSIONS = torch._C.DispatchKeySet(torch._C.DispatchKey.ADInplaceOrView)


# Function modes (our guard) off, for what the recorder does itself. Replacement: none
# that is public; a flag of our guard would do.
without_function_modes = torch._C.DisableTorchFunction

# What torch.no_grad, enable_grad and set_grad_enabled call: a function mode sees it,
# and so do we see autograd inside a forward. Replacement: none.
set_grad_enabled = torch._C._set_grad_enabled

# What torch.autograd.forward_ad.make_dual calls: a function mode sees it. Replacement:
# none.
make_dual = torch._make_dual


# ------------------------------------------------------------ checkpoints

_checkpoints = threading.Lock()
_without = threading.local()
_users = 0
_originals: dict[str, Any] = {}


@contextmanager
def without_checkpoints() -> Iterator[None]:
    """Run what ``torch.utils.checkpoint`` would run again later once, and keep it.

    It runs again in the backward pass, where no mode is in force and other noise would
    be drawn. What ``checkpoint`` calls is replaced while anybody needs it, and looks at
    the thread. Replacement: a public switch of ``torch.utils.checkpoint``; none so far.
    """
    global _users
    with _checkpoints:
        if _users == 0:
            for name, stand_in in _STAND_INS.items():
                _originals[name] = getattr(torch.utils.checkpoint, name)
                setattr(torch.utils.checkpoint, name, stand_in)
        _users += 1
    before, _without.here = getattr(_without, "here", False), True
    try:
        yield
    finally:
        _without.here = before
        with _checkpoints:
            _users -= 1
            if _users == 0:
                for name, original in _originals.items():
                    setattr(torch.utils.checkpoint, name, original)


class _CheckpointFunction:
    """Stands for the autograd function of checkpoints that are reentrant."""

    @staticmethod
    def apply(function: Callable[..., Any], preserve: bool, *args: Any) -> Any:
        if getattr(_without, "here", False):
            return function(*args)
        return _originals["CheckpointFunction"].apply(function, preserve, *args)


def _checkpoint_generator(*args: Any, **kwargs: Any) -> Iterator[None]:
    """Stands for what surrounds the function in checkpoints that are not reentrant."""
    if getattr(_without, "here", False):
        return iter((None,))
    name = "_checkpoint_without_reentrant_generator"
    original: Iterator[None] = _originals[name](*args, **kwargs)
    return original


_STAND_INS = {
    "CheckpointFunction": _CheckpointFunction,
    "_checkpoint_without_reentrant_generator": _checkpoint_generator,
}


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
    # Fake tensors dispatch even the question for their device (prim::device).
    return func.namespace != "prim" and func._can_decompose()


def can_map(func: Any) -> bool:
    """Whether ``torch.vmap`` maps an operation as a whole, and not in a loop.

    Replacement: none; without it vmap prints a warning for such an operation.
    """
    if not op_name(func):
        return False
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    return bool(
        has(func.name(), "FuncTorchBatched")
        or has(func.name(), "CompositeImplicitAutograd")
    )


def storage_address(tensor: Tensor) -> int:
    """Where the storage of a tensor is, also if it has no memory (meta tensors).

    Of a sparse tensor, which has none, that of its values. Replacement:
    ``untyped_storage().data_ptr()``, which is 0 for all empty tensors.
    """
    try:
        return tensor.untyped_storage()._cdata
    except NotImplementedError:
        return sparse_parts(tensor)[0].untyped_storage()._cdata


def is_fake(kind: type) -> bool:
    """Whether tensors of this class have no values, as while a pass is traced.

    By name: importing the class would load the compiler. Replacement: none.
    """
    return kind.__name__ == "FakeTensor"


@cache
def takes_apart(kind: type) -> bool:
    """Whether tensors of this class handle operations themselves, in terms of others.

    Such are jagged and distributed tensors, and weights that are quantised by a class.
    Replacement: none; it is how they are told from classes that only carry attributes.
    """
    if is_fake(kind):
        return False
    own = getattr(kind, "__torch_dispatch__", torch._C._disabled_torch_dispatch_impl)
    return own is not torch._C._disabled_torch_dispatch_impl


def is_wrapped(tensor: Tensor) -> bool:
    """Whether a tensor belongs to a transformation of ``torch.func`` that is under way.

    Replacement: none; without it, such a call ends in an error of torch.
    """
    return bool(torch._C._functorch.is_functorch_wrapped_tensor(tensor))


def sparse_parts(tensor: Tensor) -> tuple[Tensor, ...]:
    """Values and indices of a sparse tensor, the values first, in its own memory.

    Replacement: ``values`` and ``indices``, which refuse COO tensors with duplicates.
    """
    if tensor.layout is torch.sparse_coo:
        return tensor._values(), tensor._indices()
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return tensor.values(), tensor.crow_indices(), tensor.col_indices()
    return tensor.values(), tensor.ccol_indices(), tensor.row_indices()


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


_COMPILER = "torch._dynamo"


def compiler_is_loaded() -> bool:
    """Whether anything can have been compiled. Replacement: none that loads nothing."""
    return _COMPILER in sys.modules


def load_compiler() -> None:
    """Load torch's compiler. Replacement: ``torch.compile`` of any function."""
    importlib.import_module(_COMPILER)


class CompilerWanted(BaseException):
    """Something loads torch's compiler in a block that it is kept out of.

    Not an Exception, so that no ``except Exception`` of a model swallows it.
    """


@contextmanager
def compiler_kept_out() -> Iterator[None]:
    """Raise :class:`CompilerWanted` where this thread loads the compiler.

    Loaded under our modes, it would trace them, and remember that it failed: then the
    user's own calls of ``torch.cond`` fail, too. Replacement: as below.
    """
    if compiler_is_loaded():
        yield
        return
    finder = _NoCompiler(threading.get_ident())
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _NoCompiler(MetaPathFinder):
    """Finds nothing, and objects to the search for the compiler."""

    def __init__(self, thread: int) -> None:
        self._thread = thread

    def find_spec(self, name: str, path: Any, target: Any = None) -> None:
        if name == _COMPILER and threading.get_ident() == self._thread:
            raise CompilerWanted


# ------------------------------------------------------------ graphs


class SymbolicRows:
    """Tensors without values whose number of rows is a symbol, for tracing a pass.

    Fake tensors and symbolic shapes are what ``torch.export`` traces with. It traces
    above autograd, where dropout in evaluation mode has vanished, so that we trace
    ourselves, below. Replacement: ``torch.export.export``, if it could do so.
    """

    def __init__(self) -> None:
        from torch._subclasses import FakeTensorMode
        from torch.fx.experimental.symbolic_shapes import ShapeEnv

        self._shapes = ShapeEnv()
        self._mode = FakeTensorMode(shape_env=self._shapes, allow_non_fake_inputs=True)
        self.symbol: Any = None

    def inputs(self, tensors: list[Tensor], axes: list[int | None]) -> list[Tensor]:
        """Such tensors, with rows on these axes; the first sets the symbol."""
        return [self._input(t, a) for t, a in zip(tensors, axes, strict=True)]

    def _input(self, tensor: Tensor, axis: int | None) -> Tensor:
        from torch.fx.experimental.symbolic_shapes import (
            DimDynamic,
            StatelessSymbolicContext,
        )

        if axis is None or self.symbol is not None:
            shape: list[Any] = list(tensor.shape)
            if axis is not None:
                shape[axis] = self.symbol
            return self.empty(shape, tensor.dtype)
        sizes = [DimDynamic.STATIC] * tensor.dim()
        sizes[axis] = DimDynamic.DYNAMIC
        context: Any = StatelessSymbolicContext(dynamic_sizes=sizes)
        plain = tensor.detach().contiguous()
        found = self._mode.from_tensor(plain, symbolic_context=context)
        self.symbol = found.shape[axis]
        return found

    def empty(self, shape: list[Any], dtype: torch.dtype) -> Tensor:
        """A tensor of this shape, in which the symbol may be."""
        with self._mode:
            return torch.empty(shape, dtype=dtype)

    @property
    def is_fixed(self) -> bool:
        """Whether the symbol turned out to be one certain number."""
        return not self.symbol.node.expr.free_symbols


def functional_graph(
    function: Callable[..., Any],
    tensors: list[Tensor],
    parts: dict[Any, Callable[..., Any]] | None = None,
) -> torch.fx.GraphModule:
    """What ``function`` does with fake tensors, as a graph without writes.

    ``parts`` are functions to be traced in place of some operations.

    ``make_fx`` is public by its documentation, not by its place. Replacement: as for
    ``SymbolicRows``.
    """
    from torch.fx.experimental.proxy_tensor import make_fx

    # oneDNN's recurrent layers are no operations that others know.
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of what this switch has to do with other ones
        stack = ExitStack()
        stack.enter_context(torch.backends.mkldnn.flags(enabled=False))
        options: dict[str, Any] = {
            "tracing_mode": "symbolic",
            "_allow_non_fake_inputs": True,
            "decomposition_table": parts or {},
        }
        with stack:
            graph = make_fx(function, **options)(*tensors)
        plain = torch.func.functionalize(graph, remove="mutations")
        graph = make_fx(plain, **options)(*tensors)
    for node in graph.graph.nodes:
        # With other strides, as of rows that are repeated, a view may be none.
        if node.target in (
            torch.ops.aten.view.default,
            torch.ops.aten._unsafe_view.default,
        ):
            node.target = torch.ops.aten.reshape.default
    graph.graph.eliminate_dead_code()
    graph.recompile()
    return graph


def symbolic_sizes(node: torch.fx.Node) -> tuple[Any, ...] | None:
    """The shape of what a node makes; None if it is no tensor. May hold symbols."""
    value = node.meta.get("val")
    return tuple(value.shape) if isinstance(value, Tensor) else None


def rows_factor(size: Any, symbol: Any) -> int | None:
    """k, if ``size`` is k times the symbol; 0 if it is a plain number; else None.

    From the expression of a symbolic number. Replacement: none that is public.
    """
    if isinstance(size, int):
        return 0
    factor = size.node.expr / symbol.node.expr
    return int(factor) if factor.is_Integer else None


def while_loop(
    goes_on: Callable[..., Tensor],
    body: Callable[..., tuple[Tensor, ...]],
    carried: tuple[Tensor, ...],
) -> tuple[Tensor, ...]:
    """A loop that ``torch.export`` keeps as one.

    Documented as a prototype, so far in a private module. Replacement:
    ``torch.while_loop``, when there is one.
    """
    from torch._higher_order_ops.while_loop import while_loop as loop

    found: tuple[Tensor, ...] = loop(goes_on, body, carried)
    return found


@contextmanager
def quiet_exporter() -> Iterator[None]:
    """Keep torch's exporter from telling what nobody can act on.

    Loggers of its modules, by name, and warnings about its own code. Replacement: none.
    """
    names = "torch.onnx._internal.exporter._registration", "onnx_ir", "onnxscript"
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
