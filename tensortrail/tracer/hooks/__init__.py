"""What modes cannot see: one file per mechanism or library, found by being here.

A hook file has `LIBRARY`, the module that must be imported for it to make sense, and
`install(recorder, patches)`, called once that module is there."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType


def all_hooks() -> list[ModuleType]:
    names = sorted(file.name for file in pkgutil.iter_modules(__path__))
    return [importlib.import_module(f"{__name__}.{name}") for name in names if name[0] != "_"]
