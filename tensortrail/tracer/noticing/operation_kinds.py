"""Operations are told apart by what they do to the memory of their operands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

_ATTRIBUTES = (
    "shape dtype device requires_grad grad layout is_leaf is_meta is_cuda ndim names grad_fn"
    " is_sparse itemsize nbytes is_quantized is_nested is_mkldnn is_cpu output_nr _version"
    " _backward_hooks is_xpu is_mps retains_grad is_vulkan data T mT H mH real imag _base"
)
_SET = "data requires_grad grad"
_METHODS = (
    "size stride dim numel nelement element_size is_contiguous storage_offset is_floating_point"
    " is_complex get_device is_pinned requires_grad_ __len__ __hash__ is_shared ndimension"
    " register_hook is_signed is_inference new_empty new_empty_strided new_zeros new_ones new_full"
    " is_same_size has_names __format__ __repr__ is_conj is_neg _is_view untyped_storage storage"
    " _typed_storage storage_type type_as register_post_accumulate_grad_hook __deepcopy__"
)
_FUNCTIONS = (
    "is_floating_point is_complex numel empty_like zeros_like ones_like rand_like randn_like"
    " full_like is_tensor result_type is_same_size is_storage _has_compatible_shallow_copy_type"
)
_OF_SEVERAL = "type_as is_same_size result_type _has_compatible_shallow_copy_type"
LOOKS = (
    {getattr(Tensor, name).__get__ for name in _ATTRIBUTES.split() if hasattr(Tensor, name)}
    | {getattr(Tensor, name).__set__ for name in _SET.split()}
    | {getattr(Tensor, name) for name in _METHODS.split() if hasattr(Tensor, name)}
    | {getattr(torch, name) for name in _FUNCTIONS.split()}
)
"""Operations that look at a tensor, and neither read its values nor write any."""
VIEWS = frozenset(
    "view view_as reshape flatten unflatten squeeze unsqueeze t transpose swapaxes movedim permute"
    " narrow select split split_with_sizes chunk tensor_split unbind expand expand_as as_strided"
    " diagonal detach set_ alias view_as_real view_as_complex hsplit vsplit __iter__"
    " empty_like zeros_like ones_like new_empty new_empty_strided new_zeros".split()
)
"""Operations that give the same memory again, where what is done to it is seen, or other memory of
the same shape."""
COPIES = frozenset(
    "to cpu cuda type pin_memory clone contiguous half float double bfloat16 copy".split()
)
"""Operations that copy all values: nothing is computed with them yet."""
FILLS = frozenset(
    "copy_ fill_ zero_ normal_ uniform_ random_ bernoulli_ exponential_ trunc_normal_"
    " __setitem__".split()
)
"""Operations that write into every element of their first operand, and into nothing else."""
READS = frozenset(
    "add sub mul div matmul mm bmm addmm linear embedding conv1d conv2d conv3d layer_norm rms_norm"
    " batch_norm group_norm softmax relu gelu silu sum mean max min norm item tolist eq ne lt gt"
    " allclose equal sin cos exp where cat stack scaled_dot_product_attention __bool__ __add__"
    " __mul__ __matmul__ __sub__ __truediv__ __radd__ __rmul__ __rsub__ __pow__ einsum sigmoid tanh"
    " dropout cross_entropy mse_loss outer argmax any all isnan isfinite baddbmm conv_transpose1d"
    " conv_transpose2d embedding_bag rsqrt sqrt abs neg __neg__ log index_select gather".split()
)
"""Operations that certainly read all their operands. All others may write, for all we know."""


SAME_VALUES = LOOKS | {
    getattr(owner, name)
    for owner in (Tensor, torch)
    for name in VIEWS | COPIES
    if hasattr(owner, name)
}
"""Operations after which nothing more is known of any memory, whatever they are given."""
QUESTIONS = {
    each for each in LOOKS if getattr(each, "__name__", "") not in ("__set__", *_OF_SEVERAL.split())
}
"""Those of `LOOKS` that ask one tensor: nothing can meet in them."""


def kind_of(name: str, args: tuple[Any, ...]) -> str:
    """An index made of tensors gives copies of single elements, any other gives a view.
    `copy_.default` is an overload of `copy_`."""
    name = name.partition(".")[0]
    if name == "__getitem__":
        return "views" if len(args) > 1 and is_basic(args[1]) else "reads"
    for kind, names in (("reads", READS), ("views", VIEWS), ("copies", COPIES), ("fills", FILLS)):
        if name in names:
            return kind
    return "unknown"


def is_basic(index: Any) -> bool:
    """Made of numbers and slices only."""
    each = index if type(index) is tuple else (index,)
    return all(one is None or one is ... or type(one) in (int, slice) for one in each)


def writes_in_place(name: str, kwargs: Mapping[str, Any]) -> bool:
    if kwargs.get("out") is not None or name == "__setitem__":
        return True
    if name.startswith("__"):
        return name.startswith("__i") and name in IN_PLACE
    return name.endswith("_") and name != "requires_grad_"


IN_PLACE = frozenset(
    f"__i{name}__" for name in "add sub mul truediv floordiv mod pow and or xor".split()
)
