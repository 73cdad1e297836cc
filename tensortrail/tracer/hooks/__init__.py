"""What modes cannot see: a folder a library, a file a mechanism, found by being here.

A hook file has `LIBRARY`, the module that must be imported for it to make sense, and
`install(recorder, patches)`, called once that module is there. Files without `install` help
the hooks beside them."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from types import ModuleType


@cache
def all_hooks() -> tuple[ModuleType, ...]:
    """Looked for once: each folder has to be listed."""
    return tuple(file for file in _files() if hasattr(file, "install"))


def _files() -> Iterator[ModuleType]:
    for library in sorted(pkgutil.iter_modules(__path__), key=lambda each: each.name):
        folder = importlib.import_module(f"{__name__}.{library.name}")
        for name in sorted(file.name for file in pkgutil.iter_modules(folder.__path__)):
            yield importlib.import_module(f"{folder.__name__}.{name}")
