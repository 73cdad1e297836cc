"""Some operands may not meet on a GPU; this says which, in torch's own words."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from tensortrail.tracer.rehearsal import state
from tensortrail.tracer.rehearsal.operations import gpu_kernels
from tensortrail.tracer.rehearsal.operations.declared import Kernel, kernel
from tensortrail.tracer.rehearsal.tensor.simulated import SimTensor, type_name

Place = tuple[str, Tensor, str]
"""An operand by its name in the schema, and where it lies."""
Arguments = Sequence[Any]


def check(func: Any, named: Sequence[tuple[str, Tensor]], args: Arguments) -> None:
    """Raise as a GPU build would if these operands may not meet."""
    try:
        _check(func, named, args)
    except RuntimeError as error:  # a `NotImplementedError` is one
        state.refusal = str(error)
        raise


def _check(func: Any, named: Sequence[tuple[str, Tensor]], args: Arguments) -> None:
    places = [(name, t, str(t.device)) for name, t in named]
    devices = {place for _, _, place in places}
    if len(devices) < 2 or "meta" in devices:
        return  # what torch does with a tensor without data is the same on all devices
    if (absence := gpu_kernels.absence(func)) is not None:
        raise absence
    name = func._schema.name.partition("::")[2]
    if name in ANY_MIX or name == "_foreach_copy_":
        return
    if name.startswith("_foreach_"):
        _foreach(func, places)
        return
    if name in OWN_WORDS:
        OWN_WORDS[name](places, args)
        return
    gpu = kernel(func, places[0][1])
    if gpu.strict:
        _check_all(func, places, gpu)
    else:
        _check_iterated(func, places, gpu.works_on_copy)


def _check_all(func: Any, places: Sequence[Place], gpu: Kernel) -> None:
    """What torch generates before a kernel: outputs first, then all that is positional."""
    outputs, by_name = _roles(func)
    ordered = [each for each in places if each[0] in outputs and each[0] in by_name]
    ordered += [each for each in places if each[0] not in by_name]
    for name, _, place in ordered[1:]:
        if place != ordered[0][2]:
            refuse(gpu.renamed.get(name, name), place, ordered[0][2], gpu.wrapper)


def refuse(argument: str, place: str, home: str, method: str) -> None:
    raise RuntimeError(
        f"Expected all tensors to be on the same device, but got {argument} is on {place}, "
        f"different from other tensors on {home} (when checking argument in method {method})"
    )


def _check_iterated(func: Any, places: Sequence[Place], writes_first: bool = False) -> None:
    """What element-wise kernels check: scalars of the host may be read."""
    outputs = {places[0][0]} if writes_first else _roles(func)[0]
    home = next(place for _, _, place in places if place != "cpu")
    for name, tensor, place in places:
        scalar = place == "cpu" and tensor.dim() == 0 and name not in outputs
        if place != home and not scalar:
            _two_devices(home, place)


def _two_devices(home: str, place: str) -> None:
    raise RuntimeError(
        "Expected all tensors to be on the same device, but found at least two devices, "
        f"{home} and {place}!"
    )


def _roles(func: Any) -> tuple[set[str], set[str]]:
    """Arguments that are written, and those given by name only."""
    arguments = func._schema.arguments
    written = {a.name for a in arguments if a.alias_info is not None and a.alias_info.is_write}
    return written, {a.name for a in arguments if a.kwarg_only}


def _index(places: Sequence[Place], _: Arguments) -> None:
    home = places[0][2]
    if any(place not in ("cpu", home) for _, _, place in places[1:]):
        raise RuntimeError(
            f"indices should be either on cpu or on the same device as the indexed tensor ({home})"
        )


def _put(places: Sequence[Place], args: Arguments) -> None:
    """Indices are moved to what they are for, wherever they lie."""
    home = places[0][2]
    for name, tensor, place in places[1:]:
        if place == home or name.startswith("indices") or not tensor.dim():
            continue
        if True in args[3:] and home != "cpu":  # what lies there is added to
            raise RuntimeError(f"expected device {home} but got device {place} for value tensor")
        _two_devices(*((home, place) if home != "cpu" else (place, home)))


def _convolution(places: Sequence[Place], args: Arguments) -> None:
    _, first, home = places[0]
    chosen = _chosen(args) if home == "cpu" else None
    if chosen == torch._C._ConvBackend.Slow3d:
        raise gpu_kernels.absent("aten::slow_conv3d_forward", "CUDA")
    if chosen in ON_THE_HOST:
        name, _, place = next(each for each in places if each[2] != home)
        refuse(name, place, home, ON_THE_HOST[chosen])
    for name, tensor, place in places[1:]:
        if place == home:
            continue
        if "cpu" not in (place, home):
            refuse(name, place, home, "wrapper_CUDA__cudnn_convolution")
        if home != "cpu" and _is_by_channel(args):
            refuse(name, place, home, "wrapper_CUDA___conv_depthwise2d")
        other = " or input should be a MKLDNN tensor and weight is a dense tensor"
        raise RuntimeError(
            f"Input type ({_type(first)}) and {name} type ({_type(tensor)}) should be the same"
            + other * (home == "cpu")
        )


def _chosen(args: Arguments) -> Any:
    """How torch does a convolution on the CPU: a small one by a kernel of its own."""
    given = [each.inner if isinstance(each, SimTensor) else each for each in args[:9]]
    return torch._C._select_conv_backend(*given)


def _is_by_channel(args: Arguments) -> bool:
    """A convolution of each channel by itself, for which a GPU has a kernel of torch's own; cuDNN
    may take those of narrow numbers, and with the channels last."""
    given, weight, groups = args[0], args[1], args[8]
    transposed, channels = args[6], given.shape[1]
    plain = given.dtype in (torch.float32, torch.float64) and given.is_contiguous()
    by_channel = groups == channels > 1 and not weight.shape[0] % channels
    return bool(plain and by_channel and given.dim() in (3, 4) and not transposed)


def _foreach(func: Any, places: Sequence[Place]) -> None:
    """Lists that do not lie on one device are gone through one by one."""
    lists: dict[str, list[Place]] = {}
    for each in places:
        lists.setdefault(each[0], []).append(each)
    length = len(lists[places[0][0]])
    for together in zip(*(row for row in lists.values() if len(row) == length), strict=True):
        if len({place for _, _, place in together}) > 1:
            _check_iterated(func, together)


def _matrix_by_vector(places: Sequence[Place], _: Arguments) -> None:
    """The product is added to a new tensor beside the vector."""
    refuse("mat", places[0][2], places[1][2], "wrapper_CUDA_addmv_")


def _solved(places: Sequence[Place], _: Arguments) -> None:
    raise RuntimeError(
        "Expected b and A to be on the same device, but found b on "
        f"{places[0][2]} and A on {places[1][2]} instead."
    )


def _reduced(places: Sequence[Place], _: Arguments) -> None:
    raise RuntimeError(
        f"Expected data.get_device() == {places[1][0]}_value.get_device() to be true, but got "
        "false.  (Could this error message be improved?  If so, please report an enhancement "
        "request to PyTorch.)"
    )


def _bilinear(places: Sequence[Place], _: Arguments) -> None:
    """One product after the other."""
    home, name = places[0][2], "wrapper_CUDA_bmm"
    refuse("mat2", next(place for _, _, place in places if place != home), home, name)


def _searched(places: Sequence[Place], _: Arguments) -> None:
    home = places[0][2]
    for name, _, place in places[1:]:
        if place != home and name == "sorter":
            raise RuntimeError(
                "torch.searchsorted(): sorter and boundary tensors should have same device type, "
                f"but got sorter tensor device type {place} and input value tensor device type "
                f"{home}"
            )
        if place != home:
            refuse(name, place, home, "wrapper_CUDA_Tensor_searchsorted")


def _never_mixed(places: Sequence[Place], _: Arguments) -> None:
    """Numbers that are tensors are given a dimension first."""
    first, other = sorted({place for _, _, place in places}, reverse=True)[:2]
    _two_devices(first, other)


def _index_by_mask(places: Sequence[Place], args: Arguments) -> None:
    """Made of an access by index, and of `masked_fill`."""
    _index([each for each in places if each[0] != "mask"], args)
    _masked_fill([each for each in places if each[0] in ("self", "mask")], args)


def _put_by_mask(places: Sequence[Place], _: Arguments) -> None:
    """Made of `masked_fill` of the values, and of an addition by index."""
    _masked_fill([places[-1], *(each for each in places if each[0] == "mask")], ())
    _put([each for each in places if each[0] != "mask"], ADDED)


def _set(places: Sequence[Place], _: Arguments) -> None:
    raise RuntimeError(
        f'Attempted to set the storage of a tensor on device "{places[0][2]}" to a storage on '
        f'different device "{places[1][2]}".  This is no longer allowed; the devices must match.'
    )


def _masked_fill(places: Sequence[Place], _: Arguments) -> None:
    home, mask = places[0][2], places[1][2]
    if home == "cpu" and len(places) > 2:
        raise RuntimeError("masked_fill_: Expected inputs to be on same device")
    if mask != home:
        raise RuntimeError(
            "expected self and mask to be on the same device, but got mask on "
            f"{mask} and self on {home}"
        )
    if len(places) > 2 and places[2][2] not in (home, "cpu"):
        raise RuntimeError("masked_fill_: Expected inputs to be on same device")


def _attention(places: Sequence[Place], _: Arguments) -> None:
    at = {name: place for name, _, place in places}
    named = [at.get(name, places[0][2]) for name in ("query", "key", "value")]
    if len(set(named)) > 1:
        raise RuntimeError(
            "Expected query, key, and value to have the same device type, but got query.device: "
            f"{named[0]} key.device: {named[1]} and value.device: {named[2]} instead."
        )
    refuse(
        "attn_bias", places[-1][2], named[0],
        "wrapper_CUDA___scaled_dot_product_efficient_attention",
    )  # fmt: skip


ADDED = (None, None, None, True)
"""Arguments of `index_put` that adds."""
ON_THE_HOST = {
    torch._C._ConvBackend.Slow2d: "wrapper_CUDA___slow_conv2d_forward",
    torch._C._ConvBackend.SlowTranspose2d: "wrapper_CUDA_slow_conv_transpose2d",
    torch._C._ConvBackend.SlowTranspose3d: "wrapper_CUDA__slow_conv_transpose3d",
}
"""Convolutions of what lies on the CPU, and what a GPU has for them."""
PUTS = ("index_put_", "index_put", "_index_put_impl_", "_unsafe_index_put")
"""Operations that write where indices say."""
HOSTS_TYPE = re.compile(r"but got torch\.(\w+Tensor) instead")
WITHOUT_DATA = re.compile(
    r"Tensor on device (?:meta|cpu) is not on the expected device (?:meta|cpu)!"
)
ANY_MIX = {"copy_", "_to_copy", "copy", "is_same_size", "_pack_padded_sequence",
          "_pack_padded_sequence_backward", "_ctc_loss", "_ctc_loss_backward"}  # fmt: skip
OWN_WORDS: dict[str, Callable[[Sequence[Place], Arguments], None]] = {
    **dict.fromkeys(("index", "_unsafe_index"), _index),
    **dict.fromkeys(PUTS, _put),
    **dict.fromkeys(("convolution", "_convolution", "convolution_backward"), _convolution),
    **dict.fromkeys(("masked_fill", "masked_fill_"), _masked_fill),
    **dict.fromkeys(("_scaled_dot_product_flash_attention_for_cpu", "_fused_sdp_choice",
                     "_scaled_dot_product_attention_math"), _attention),
    "mv": _matrix_by_vector,
    "cholesky_solve": _solved,
    "segment_reduce": _reduced,
    "searchsorted": _searched,
    "_trilinear": _bilinear,
    "linalg_pinv": _never_mixed,
    "_unsafe_masked_index": _index_by_mask,
    "_unsafe_masked_index_put_accumulate": _put_by_mask,
    "set_": _set,
}  # fmt: skip


def retold(error: RuntimeError, named: Sequence[tuple[str, Tensor]]) -> RuntimeError | None:
    """Torch's own refusal of a tensor without data, or of one by its type, with the device we
    stand for."""
    if HOSTS_TYPE.search(str(error)) and all(isinstance(each, SimTensor) for _, each in named):
        return RuntimeError(HOSTS_TYPE.sub(r"but got torch.cuda.\1 instead", str(error)))
    if not WITHOUT_DATA.match(str(error)):
        return None
    home = next(str(tensor.device) for _, tensor in named if isinstance(tensor, SimTensor))
    return RuntimeError(str(error).replace("device cpu", f"device {home}"))


def _type(tensor: Tensor) -> str:
    package = "torch.cuda" if isinstance(tensor, SimTensor) else "torch"
    return f"{package}.{type_name(tensor.dtype)}"
