"""Fresh memory (`empty`, `to_empty`) is noticed when it is read before anybody wrote into it.

Tensors are known by `id` and storage together, without a reference. A view, an address or the
storage of such a tensor given away could be written through: it is then no longer watched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from tensortrail.rules.timeline import Did
from tensortrail.tracer.identity.storages import PLAIN, Entry
from tensortrail.tracer.noticing.notes import Notes
from tensortrail.tracer.noticing.operands import tensors_in

MOST_WATCHED = 1024
LOOKS_FOR_A_TENSOR = 10_000
LOOKS_FOR_A_MODULE = 200_000
"""How many operations are looked at before the watch ends: looking at each costs time, and a
tensor that became a Parameter at once is another object that is never seen again."""
LOOKS = {
    getattr(Tensor, name).__get__
    for name in ("shape", "dtype", "device", "requires_grad", "grad", "layout", "is_leaf",
                 "is_meta", "is_cuda", "ndim", "names", "grad_fn", "is_sparse", "itemsize",
                 "nbytes", "is_quantized", "is_nested", "is_mkldnn", "is_cpu", "output_nr",
                 "_version", "_backward_hooks", "is_xpu", "is_mps", "retains_grad", "is_vulkan")
    if hasattr(Tensor, name)
} | {
    getattr(Tensor, name)
    for name in ("size", "stride", "dim", "numel", "nelement", "element_size", "is_contiguous",
                 "storage_offset", "is_floating_point", "is_complex", "get_device", "is_pinned",
                 "requires_grad_", "__len__", "__hash__", "is_shared", "ndimension",
                 "register_hook", "is_signed", "is_inference", "new_empty", "new_zeros", "new_ones",
                 "new_full", "is_same_size", "has_names", "__format__", "__repr__",
                 "is_conj", "is_neg", "_is_view")
    if hasattr(Tensor, name)
} | {torch.is_floating_point, torch.is_complex, torch.numel, torch.empty_like, torch.zeros_like,
     torch.ones_like, torch.rand_like, torch.randn_like, torch.full_like, torch.is_tensor,
     torch.result_type, torch.is_same_size}  # fmt: skip
"""Operations that look at a tensor without reading its values."""
READS = {
    "add", "sub", "mul", "div", "matmul", "mm", "bmm", "addmm", "linear", "embedding", "conv1d",
    "conv2d", "conv3d", "layer_norm", "rms_norm", "batch_norm", "group_norm", "softmax", "relu",
    "gelu", "silu", "sum", "mean", "max", "min", "norm", "item", "tolist", "eq", "ne",
    "lt", "gt", "allclose", "equal", "sin", "cos", "exp", "where", "cat", "stack",
    "scaled_dot_product_attention", "__bool__", "__add__", "__mul__", "__matmul__", "__sub__",
    "__truediv__", "__radd__", "__rmul__", "__rsub__", "__pow__", "einsum", "sigmoid", "tanh",
    "dropout", "cross_entropy", "mse_loss", "outer", "argmax", "any", "all", "isnan",
}  # fmt: skip
"""Operations that certainly read all their operands. Others may write: they end the watch."""


class FreshMemory:
    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._watched: dict[int, Entry] = {}
        self._shards: dict[int, Entry] = {}
        """Storages of distributed tensors. Code reaches these by many objects."""
        self._left = 0

    @property
    def some(self) -> bool:
        return bool(self._watched or self._shards)

    def made(self, tensor: Any, looks: int = LOOKS_FOR_A_TENSOR) -> None:
        if type(tensor) not in PLAIN or _others_may_write():
            return
        if len(self._watched) > MOST_WATCHED:
            self._watched = {key: e for key, e in self._watched.items() if e() is not None}
            if len(self._watched) > MOST_WATCHED:
                return
        entry = self._notes.storages.entry(tensor)
        if entry is not None and entry.described.nbytes and entry.device != "meta":
            self._watched[id(tensor)] = entry
            self._left = max(self._left, looks)
            self._notes.changed()

    def written(self, tensor: Any) -> None:
        if self._watched and self._watched.pop(id(tensor), None) is not None:
            self._notes.changed()

    def made_shard(self, tensor: Any) -> None:
        """As `made`, for the part of a distributed tensor that lies here."""
        entry = self._notes.storages.entry(tensor)
        if entry is not None and entry.described.nbytes and entry.device != "meta":
            if len(self._shards) < MOST_WATCHED:
                self._shards[entry.number] = entry
            self._left = max(self._left, LOOKS_FOR_A_MODULE)
            self._notes.changed()

    def is_empty_shard(self, entry: Entry) -> bool:
        return self._shards.get(entry.number) is entry

    def read_shard(self, entry: Entry, op: str) -> None:
        """Nobody had written into it, in whatever way."""
        del self._shards[entry.number]
        self._notes.changed()
        self._notes.note(Did.UNWRITTEN, entry, op=op)

    @contextmanager
    def looking_away(self) -> Iterator[None]:
        """What touches shards now changes nothing in them."""
        shards, self._shards = self._shards, {}
        try:
            yield
        finally:
            self._shards = shards

    def given(self, tensors: Iterable[Any]) -> None:
        """To somebody who writes without a call that could be seen."""
        for tensor in tensors if self._shards else ():
            entry = self._notes.storages.known(tensor)
            if entry is not None and self._shards.pop(entry.number, None) is not None:
                self._notes.changed()

    def look(self, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        watched = self._watched
        self._left -= 1
        if self._left < 0:
            watched.clear()
            self._shards.clear()
            self._notes.changed()
        if self._shards and func not in LOOKS:
            self.given(tensor for _, tensor in tensors_in(args, kwargs))
        for value in (*args, *kwargs.values()):
            if type(value) in (list, tuple):
                for each in value:
                    if id(each) in watched:
                        self._touched(func, each, kwargs)
            elif id(value) in watched:
                self._touched(func, value, kwargs)

    def _touched(self, func: Any, tensor: Any, kwargs: Mapping[str, Any]) -> None:
        if func in LOOKS:
            return
        entry = self._watched.pop(id(tensor))
        self._notes.changed()
        if self._notes.storages.known(tensor) is not entry:
            return  # the tensor is gone, another one has its address
        if func.__name__ in READS and kwargs.get("out") is not tensor:
            self._notes.note(Did.UNWRITTEN, entry, op=func)


def _others_may_write() -> bool:
    """Collectives write into tensors without a call that could be seen."""
    distributed = torch.distributed
    return bool(distributed.is_available() and distributed.is_initialized())
