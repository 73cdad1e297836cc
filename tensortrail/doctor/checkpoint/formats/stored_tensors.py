"""Finds the tensors in the tree of a pickle: type, shape, and the bytes of a storage they take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tensortrail.doctor.checkpoint.formats.element_types import STORAGES, TORCH
from tensortrail.doctor.checkpoint.formats.pickle_values import Made, Name, Reference, values_in

_VIEWS = {
    "_rebuild_tensor": 4,
    "_rebuild_tensor_v2": 6,
    "_rebuild_tensor_v3": 7,
    "_rebuild_qtensor": 7,
}
"""Functions that make a tensor over a storage, and how many arguments each needs."""
_WITH_TYPE = "_rebuild_tensor_v3"
_WITHOUT_STORAGE = "_rebuild_meta_tensor_no_storage"
_OF_A_CLASS = "_rebuild_from_type_v2"


class Storage(NamedTuple):
    key: str
    dtype: str
    elements: int

    @property
    def is_known(self) -> bool:
        """How many bytes an element of its type takes."""
        return self.dtype in TORCH

    @property
    def size(self) -> int:
        """In bytes; 0 if the type is not known."""
        return self.elements * TORCH.get(self.dtype, 0) // 8


class View(NamedTuple):
    """One tensor of the pickle."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    storage: Storage | None
    """None for a tensor on meta, which has no values."""
    begin: int = 0
    """The first of its bytes in the storage."""
    end: int = 0


def views_in(root: Any) -> Iterator[View | str]:
    """Every tensor, or what is wrong with how one is described."""
    for path, value in values_in(root):
        if not isinstance(value, Made) or not isinstance(value.what, Name):
            continue
        function, arguments = value.what.name, value.arguments
        if function == _OF_A_CLASS and isinstance(arguments, tuple) and len(arguments) >= 3:
            inner = arguments[0]
            function, arguments = (inner.name if isinstance(inner, Name) else ""), arguments[2]
        if function == _WITHOUT_STORAGE:
            yield _without_values(path, arguments)
        elif function in _VIEWS and value.what.module.startswith("torch."):
            yield _view(path, function, arguments) or f"{path or 'a tensor'} is described wrongly"


def storage_of(identity: Any) -> Storage | None:
    """What a persistent id says: `("storage", class, key, device, count)`."""
    if not (isinstance(identity, tuple) and len(identity) >= 5 and identity[0] == "storage"):
        return None
    kind, key, count = identity[1], identity[2], identity[4]
    if not (isinstance(kind, Name) and isinstance(key, str) and _is_size(count)):
        return None
    return Storage(key, STORAGES.get(kind.name, ""), count)


def _view(path: str, function: str, arguments: Any) -> View | None:
    if not (isinstance(arguments, tuple) and len(arguments) >= _VIEWS[function]):
        return None
    reference, offset, shape, strides = arguments[0], arguments[1], *map(sizes_in, arguments[2:4])
    storage = storage_of(reference.identity) if isinstance(reference, Reference) else None
    if storage is None or shape is None or strides is None or not _is_size(offset):
        return None
    if len(shape) != len(strides):
        return None
    dtype = storage.dtype
    if function == _WITH_TYPE and len(arguments) > 6 and isinstance(arguments[6], Name):
        dtype = arguments[6].name
    width = TORCH.get(dtype, 8) // 8
    last = 0
    if 0 not in shape:
        last = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    end = (offset + last) * width if last else offset * width
    return View(path, dtype, shape, storage, offset * width, end)


def _without_values(path: str, arguments: Any) -> View | str:
    shape = sizes_in(arguments[1]) if isinstance(arguments, tuple) and len(arguments) > 1 else None
    if shape is None:
        return f"{path or 'a tensor'} is described wrongly"
    dtype = arguments[0].name if isinstance(arguments[0], Name) else ""
    return View(path, dtype, shape, None)


def sizes_in(value: Any) -> tuple[int, ...] | None:
    if isinstance(value, Made) and isinstance(value.what, Name) and value.what.name == "Size":
        value = value.arguments[0] if isinstance(value.arguments, tuple) and value.arguments else ()
    if isinstance(value, (tuple, list)) and all(_is_size(each) for each in value):
        return tuple(value)
    return None


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63
