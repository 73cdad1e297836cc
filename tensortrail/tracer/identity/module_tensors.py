"""A module owns its parameters and buffers, and those of the modules below it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from torch.nn import Module

NAMED_MODULES = Module.named_modules
Part = tuple[str, Module]
"""A module, and its path in the one that was asked."""
Slot = tuple[str, dict[str, Any], str]
"""The dotted path of a parameter or buffer, and the dict and the key that hold it."""


def parts(module: Module) -> list[Part]:
    """The module and those below it, each once: what `named_modules()` gives, in its order."""
    found: list[Part] = []
    _add_parts(module, "", set(), found)
    return found


def _add_parts(module: Module, path: str, met: set[Module], found: list[Part]) -> None:
    if type(module).named_modules is not NAMED_MODULES or "named_modules" in vars(module):
        found += module.named_modules(met, path)
    elif module not in met:
        met.add(module)
        found.append((path, module))
        for name, each in module._modules.items():
            if each is not None:
                _add_parts(each, f"{path}.{name}" if path else name, met, found)


def slots(module: Module, root: str = "") -> Iterator[Slot]:
    """Those of the module and of the modules below it that hold a tensor."""
    return slots_of(parts(module), root)


def slots_of(modules: Iterable[Part], root: str = "") -> Iterator[Slot]:
    """Those of these modules, below a module of the path `root`."""
    for path, each in modules:
        prefix = "".join(part + "." for part in (root, path) if part)
        for tensors in (each._parameters, each._buffers):
            for key, tensor in tensors.items():
                if tensor is not None:
                    yield prefix + key, tensors, key


def owned(module: Module, root: str = "") -> Iterator[tuple[str, Any]]:
    """Each parameter and buffer of the module and those below it, by its dotted path."""
    return ((name, tensors[key]) for name, tensors, key in slots(module, root))
