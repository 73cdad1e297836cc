"""What single operations say in words of their own of operands that lie on different devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tensortrail.tracer.rehearsal.operations import index_devices
from tensortrail.tracer.rehearsal.operations.convolution_devices import convolution
from tensortrail.tracer.rehearsal.operations.refusals import Arguments, Place, refuse, two_devices


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
    two_devices(first, other)


def _set(places: Sequence[Place], _: Arguments) -> None:
    raise RuntimeError(
        f'Attempted to set the storage of a tensor on device "{places[0][2]}" to a storage on '
        f'different device "{places[1][2]}".  This is no longer allowed; the devices must match.'
    )


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


OWN_WORDS: dict[str, Callable[[Sequence[Place], Arguments], None]] = {
    **dict.fromkeys(("index", "_unsafe_index"), index_devices.index),
    **dict.fromkeys(index_devices.PUTS, index_devices.put),
    **dict.fromkeys(("convolution", "_convolution", "convolution_backward"), convolution),
    **dict.fromkeys(("masked_fill", "masked_fill_"), index_devices.masked_fill),
    **dict.fromkeys(("_scaled_dot_product_flash_attention_for_cpu", "_fused_sdp_choice",
                     "_scaled_dot_product_attention_math"), _attention),
    "mv": _matrix_by_vector,
    "cholesky_solve": _solved,
    "segment_reduce": _reduced,
    "searchsorted": _searched,
    "_trilinear": _bilinear,
    "linalg_pinv": _never_mixed,
    "_unsafe_masked_index": index_devices.index_by_mask,
    "_unsafe_masked_index_put_accumulate": index_devices.put_by_mask,
    "set_": _set,
}  # fmt: skip
