"""What a tensor is made of and what it holds, asked in ways that hold for any subclass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

PLAIN: set[type] = {torch.Tensor, torch.nn.Parameter}
"""Whose bytes are their own; a simulation may add what it puts in their place."""
GIVES_PLAIN = ("dequantize", "to_original_precision", "get_original_weight", "to_dense")
"""Methods by which wrapper classes say what they stand for."""


@dataclass(frozen=True)
class Look:
    """A copy of what was seen."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    inner: dict[str, torch.Tensor]
    plain: torch.Tensor | None
    """The values it stands for; None where it does not tell."""


def look(tensor: torch.Tensor) -> Look:
    inner = {name: _copied(each) for name, each in inner_tensors(tensor).items()}
    return Look(tuple(tensor.shape), tensor.dtype, inner, plain(tensor))


def inner_tensors(tensor: torch.Tensor) -> dict[str, torch.Tensor]:
    """The plain tensors it is made of, by name: `_data`, `weight.qdata`."""
    found: dict[str, torch.Tensor] = {}
    for name, each in _parts(tensor).items():
        below = inner_tensors(each)
        found.update({f"{name}.{key}": value for key, value in below.items()} or {name: each})
    return found


def _parts(tensor: torch.Tensor) -> dict[str, torch.Tensor]:
    if type(tensor) in PLAIN:
        return {}
    held: dict[str, Any] = dict(vars(tensor))
    flatten = getattr(tensor, "__tensor_flatten__", None)
    if flatten is not None:
        held.update({name: getattr(tensor, name) for name in flatten()[0]})
    for slot in (name for kind in type(tensor).__mro__ for name in vars(kind).get("__slots__", ())):
        if isinstance(slot, str) and hasattr(tensor, slot):
            held[slot] = getattr(tensor, slot)
    return {
        name: each
        for name, each in sorted(held.items())
        if isinstance(each, torch.Tensor) and name != "grad"
    }


def plain(tensor: torch.Tensor) -> torch.Tensor | None:
    """The values as a plain tensor, None where the class cannot say."""
    for name in GIVES_PLAIN:
        method = getattr(type(tensor), name, None)
        if method is None or method is getattr(torch.Tensor, name, None):
            continue
        try:
            with torch.no_grad():
                got = method(tensor)
        except Exception:
            continue
        if type(got) in PLAIN and got.shape == tensor.shape:
            return _copied(got)
    return _copied_into(tensor)


def _copied_into(tensor: torch.Tensor) -> torch.Tensor | None:
    try:
        with torch.no_grad():
            target = torch.zeros(tuple(tensor.shape), dtype=tensor.dtype, device=tensor.device)
            target.copy_(tensor)
    except Exception:
        return None
    return target if type(target) in PLAIN and bool((target != 0).any()) else None


def difference(got: Look, wanted: Look) -> str:
    """How the two differ, empty if they do not."""
    if got.shape != wanted.shape:
        return f"gives the size {got.shape}, not {wanted.shape}"
    if got.dtype != wanted.dtype:
        return f"gives {_short(got.dtype)}, not {_short(wanted.dtype)}"
    if wanted.plain is not None and got.plain is not None and equal(got.plain, wanted.plain):
        return ""
    missing = sorted(wanted.inner.keys() - got.inner.keys())
    if missing:
        return f"{_listed(missing)} is not there"
    other = [name for name, each in wanted.inner.items() if not equal(got.inner[name], each)]
    if other:
        unwritten = [name for name in other if _unwritten(got.inner[name], wanted.inner[name])]
        state = "uninitialised memory" if unwritten else "other values"
        return f"{_listed(unwritten or other)} has {state}"
    if wanted.plain is not None and not wanted.inner:
        if got.plain is None:
            return "does not tell its values any more"
        state = "uninitialised memory" if _unwritten(got.plain, wanted.plain) else "other values"
        return f"has {state}"
    return ""


def other_device(tensor: torch.Tensor, device: str) -> str:
    """Where the tensor or what is in it lies, if not where it was asked for."""
    if tensor.device.type != torch.device(device).type:
        return f"gives one on {tensor.device} where {device} was asked for"
    to_torch = torch._C.TensorBase.device.__get__(tensor)
    if to_torch.type not in ("cpu", tensor.device.type):  # a simulated one is on the CPU to torch
        return f"says it is on {tensor.device}, but to torch it is on {to_torch}"
    elsewhere = {
        str(each.device): name
        for name, each in inner_tensors(tensor).items()
        if each.device.type != torch.device(device).type
        and (each.dim() or each.device.type != "cpu")
    }
    if elsewhere:
        on, name = next(iter(elsewhere.items()))
        return f"says it is on {tensor.device}, but {name} is on {on}"
    return ""


def shared(one: torch.Tensor, other: torch.Tensor) -> str:
    """The first inner tensor of one that shares its memory with the other."""
    theirs = {_address(each) for each in inner_tensors(other).values()} - {0}
    mine = inner_tensors(one).items()
    return next((name for name, each in mine if _address(each) in theirs), "")


def equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.is_meta or other.is_meta:
        return True
    return bool((_bytes(one) == _bytes(other)).all())


def close(one: torch.Tensor, other: torch.Tensor) -> bool:
    """As near as quantizing the same values twice may come."""
    return bool(torch.allclose(one.cpu().float(), other.cpu().float(), atol=0.25, rtol=0.25))


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)


def _unwritten(got: torch.Tensor, wanted: torch.Tensor) -> bool:
    """It holds the pattern that fresh memory is filled with while an examination runs."""
    if got.is_meta or got.shape != wanted.shape or not got.numel():
        return False
    got = got.detach().cpu()
    if got.dtype.is_floating_point:
        return bool(got.float().isnan().all())
    if got.dtype is torch.bool:
        return False
    return bool((got == torch.iinfo(got.dtype).max).all())


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().clone()


def _address(tensor: torch.Tensor) -> int:
    return 0 if tensor.is_meta else int(tensor.untyped_storage().data_ptr())


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _listed(names: list[str]) -> str:
    return " and ".join((", ".join(names[:2]), *([f"{len(names) - 2} more"] if names[2:] else [])))
