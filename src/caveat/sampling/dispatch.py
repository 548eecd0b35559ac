"""Facts about operations and storages that the recorder goes by."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from caveat._torch import OpOverload, can_decompose, op_arguments, op_name
from caveat.sampling.sparse import is_sparse, parts

# Composite operations that are recorded whole. They neither draw, nor write what their
# schemas do not say, nor let a value decide a shape; all others are taken apart until
# plain operations remain. (Those of Sobol numbers write to memory past all operations.)
WHOLE = frozenset(
    """
    linear matmul einsum bilinear conv1d conv2d conv3d conv_transpose1d
    conv_transpose2d conv_transpose3d layer_norm group_norm batch_norm instance_norm
    rms_norm softmax log_softmax max_pool1d max_pool2d max_pool3d avg_pool1d
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
    embedding_bag reshape flatten unflatten contiguous to type_as view_as expand_as
    reshape_as chunk split split_with_sizes narrow numpy_T mT mH matrix_H movedim
    swapaxes swapdims square selu relu6 prelu std var upsample_nearest1d
    upsample_nearest2d upsample_bilinear2d lstm gru rnn_tanh rnn_relu
    scaled_dot_product_attention divide multiply subtract true_divide negative clip
    greater greater_equal less less_equal not_equal __and__ __or__ __xor__
    _pad_packed_sequence _sobol_engine_initialize_state_ _sobol_engine_scramble_
    _sobol_engine_ff_ _sobol_engine_draw
    """.split()
)

# Arguments of composite operations whose values are read in C++, where nobody sees it,
# to decide how the operation is taken apart; by their positions.
_READ_UNSEEN: dict[str, tuple[int, ...]] = {"tensor_split": (1,), "ctc_loss": (2, 3)}

# Operations on noisy tensors that return plain numbers, or nothing, which no noise can
# change: the pattern of a sparse tensor on the tape is the same in every draw.
_METADATA = frozenset(
    "dim size stride numel storage_offset is_contiguous is_complex is_floating_point "
    "sym_size sym_stride sym_numel sym_storage_offset is_same_size _nnz "
    "sparse_dim dense_dim _dimI _dimV is_coalesced _validate_sparse_coo_tensor_args "
    "_validate_sparse_compressed_tensor_args _validate_sparse_csr_tensor_args "
    "_validate_sparse_csc_tensor_args _validate_sparse_bsr_tensor_args "
    "_validate_sparse_bsc_tensor_args".split()
)

# Operations whose results depend on none of the values that they are given.
_LIKENESSES = """
    zeros_like ones_like full_like empty_like new_zeros new_ones new_full new_empty
    new_empty_strided
    """

# Results that depend on the values of some arguments only, by their positions: a length
# is not drawn because the numbers beside it are.
_SOURCES: dict[str, dict[int, tuple[int, ...]]] = {
    "_pack_padded_sequence": {1: (1,)},  # batch sizes: lengths
    "_pad_packed_sequence": {1: (1,)},  # lengths: batch sizes
    "embedding_bag": {1: (1, 2), 2: (1, 2)},  # bags and their sizes: indices, offsets
    "_embedding_bag": {1: (1, 2), 2: (1, 2)},
    "_embedding_bag_forward_only": {1: (1, 2), 2: (1, 2)},
    **{name: {0: ()} for name in _LIKENESSES.split()},
    **{name: {0: (0,)} for name in "to type_as view_as expand_as reshape_as".split()},
}


@dataclass(frozen=True, slots=True)
class OpInfo:
    """What the schema of an operation says.

    Attributes
    ----------
    written : tuple
        Arguments that it writes to, by position or name.
    take_apart : bool
        It is composite, and not known to be harmless as a whole.
    dynamic_shape : bool
        Values decide the shape of its result.
    metadata : bool
        It returns plain numbers that no value decides.
    sources : dict
        Results by number that depend on the values of some arguments only: on which.
    read_unseen : tuple
        Arguments whose values decide how it is taken apart, by position.
    known : bool
        It is torch's own, so that its tags say whether it draws.
    """

    written: tuple[int | str, ...]
    take_apart: bool
    dynamic_shape: bool
    metadata: bool
    sources: dict[int, tuple[int, ...]]
    read_unseen: tuple[int, ...]
    known: bool


@cache
def op_info(func: OpOverload) -> OpInfo:
    """What the schema of ``func`` says."""
    name = op_name(func)
    written: list[int | str] = []
    for position, argument in enumerate(op_arguments(func)):
        if argument.alias_info is not None and argument.alias_info.is_write:
            written.append(argument.name if argument.kwarg_only else position)
    return OpInfo(
        written=tuple(written),
        take_apart=name not in WHOLE and name not in _METADATA and can_decompose(func),
        dynamic_shape=torch.Tag.dynamic_output_shape in func.tags,
        metadata=name in _METADATA,
        sources=_SOURCES.get(name, {}),
        read_unseen=_READ_UNSEEN.get(name, ()),
        known=func.namespace in ("aten", "prim", "prims"),
    )


def tensors_in(arguments: Any) -> Iterator[Tensor]:
    """All tensors among arguments, which may hold lists of them.

    Of sparse tensors their parts, as these have the storages.
    """
    for argument in arguments:
        if isinstance(argument, Tensor):
            if is_sparse(argument):
                yield from parts(argument)
            else:
                yield argument
        elif isinstance(argument, list | tuple):
            yield from tensors_in(argument)


def is_tensors(result: Any) -> bool:
    """Whether a result is made of tensors only."""
    if isinstance(result, list | tuple):
        return all(t is None or isinstance(t, Tensor) for t in result)
    return isinstance(result, Tensor)


def weak_storage(tensor: Tensor) -> StorageWeakRef:
    """Keeps the address of a storage from being used again, but not its memory."""
    return StorageWeakRef(parts(tensor)[0].untyped_storage())


def whole_storage(tensor: Tensor) -> Tensor:
    """The whole storage of ``tensor``, in one dimension."""
    base = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    return base.set_(tensor.untyped_storage())


def storage_copy(tensor: Tensor) -> Tensor:
    """A copy of the whole storage of ``tensor``, in one dimension."""
    return whole_storage(tensor).clone()


def same_place(tensor: Tensor, base: Tensor) -> Tensor:
    """The view of ``base`` that ``tensor`` is of its own storage."""
    if base.dtype != tensor.dtype:
        base = base.view(tensor.dtype)
    return base.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
