"""Fingerprints of all tensors of modules are computed where these lie, and waited for once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import Module

from tensortrail.tracer.audit.fingerprints import finished, started, undisturbed
from tensortrail.tracer.audit.marks import Mark
from tensortrail.tracer.identity.inner_tensors import PLAIN, inner_tensors, is_real, key_of
from tensortrail.tracer.identity.module_tensors import owned
from tensortrail.tracer.patching.signals import let_through

Writer = Callable[[Tensor], tuple[str, int]]
"""Who wrote a tensor last, and its turn."""


class Begun(NamedTuple):
    numbers: Tensor
    unit: int


def tensors_of(module: Module, root: str = "") -> Iterator[tuple[str, Tensor]]:
    """Parameters, buffers and plain attributes of a module and those below it."""
    yield from owned(module, root)
    for prefix, each in module.named_modules():
        for key, value in vars(each).items():
            if type(value) in PLAIN:
                yield ".".join(part for part in (root, prefix, key) if part), value


def marks_of(
    tensors: Iterable[tuple[str, Any]], writer: Writer | None = None, home: Any = None
) -> dict[str, Mark]:
    """`home` says on which device a tensor lies, where torch does not know."""
    named = [found for name, tensor in tensors for found in _parts(name, tensor)]
    begun: dict[Any, Begun | str] = {}
    with undisturbed():
        for _, _, part in named:
            if (key := _key(part)) not in begun:
                begun[key] = _begun(part)
        numbers = _waited_for(begun)
        memory: dict[int, int] = {}
        return {
            name: _mark(whole, part, numbers[_key(part)], memory, writer, home)
            for name, whole, part in named
        }


def _parts(name: str, tensor: Any) -> Iterator[tuple[str, Any, Tensor]]:
    with undisturbed():
        try:
            parts = [part for part, _ in inner_tensors(tensor)] if is_real(tensor) else []
        except Exception as error:
            let_through(error)
            parts = []
    for place, part in enumerate(parts):
        yield (f"{name}/{place}" if len(parts) > 1 else name), tensor, part


def _key(part: Tensor) -> Any:
    """Tensors that are the same part of the same memory are read once."""
    try:
        where = (key_of(part) or id(part), part.storage_offset(), part.shape, part.stride())
    except (RuntimeError, NotImplementedError):
        return id(part)
    return (*where, part.dtype)


def _begun(part: Tensor) -> Begun | str:
    if part.is_meta:
        return "on meta"
    try:
        if part.numel() and not part.untyped_storage().nbytes():
            return "its memory is freed"
        return Begun(*started(part))
    except (RuntimeError, NotImplementedError) as error:
        return f"cannot be read: {str(error).splitlines()[0][:80]}"


def _waited_for(begun: dict[Any, Begun | str]) -> dict[Any, Any]:
    """One transfer from each device."""
    done: dict[Any, Any] = {k: each for k, each in begun.items() if isinstance(each, str)}
    devices = {each.numbers.device for each in begun.values() if isinstance(each, Begun)}
    for device in devices:
        here = [
            (k, e) for k, e in begun.items() if isinstance(e, Begun) and e.numbers.device == device
        ]
        rows = torch.stack([each.numbers for _, each in here]).tolist()
        done |= {k: (row, each.unit) for (k, each), row in zip(here, rows, strict=True)}
    return done


def _mark(
    whole: Any,
    part: Tensor,
    numbers: Any,
    memory: dict[int, int],
    writer: Writer | None,
    home: Any,
) -> Mark:
    who, turn = writer(part) if writer is not None else ("", 0)
    facts: dict[str, Any] = {"writer": who, "turn": turn, "shard": _shard(whole)}
    if isinstance(numbers, str):
        facts["without"] = numbers
    else:
        row, unit = numbers
        found = finished(row, unit, part)
        facts |= found._asdict()
    return Mark(
        dtype=str(part.dtype)[6:],
        shape=tuple(part.shape),
        device=str(home(part) if home is not None else part.device),
        nbytes=part.numel() * part.element_size(),
        memory=memory.setdefault(key_of(part), len(memory) + 1) if key_of(part) else 0,
        **facts,
    )


def _shard(whole: Any) -> str:
    """Of a distributed tensor: how it is spread, and its whole shape."""
    placements = getattr(whole, "placements", None)
    if type(whole).__name__ != "DTensor" or placements is None:
        return ""
    spread = any(each.is_shard() for each in placements)
    return f"a part of {list(whole.shape)}, {placements}" if spread else ""
