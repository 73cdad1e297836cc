"""Hooks are put on libraries that the program imports after the recording began."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any


class LateHooks(importlib.abc.MetaPathFinder):
    """Stands first among the finders, finds nothing itself, and calls back after an import."""

    def __init__(self) -> None:
        self._wanted: dict[str, list[Callable[[], None]]] = {}

    def when_imported(self, name: str, call: Callable[[], None]) -> None:
        """Call once the module is there: now, if it is already."""
        if name in sys.modules:
            call()
        else:
            self._wanted.setdefault(name, []).append(call)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        calls = self._wanted.pop(name, None)
        if calls is None:
            return None
        spec = _find(self, name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Telling(spec.loader, calls)
        return spec

    def install(self) -> None:
        sys.meta_path.insert(0, self)

    def remove(self) -> None:
        self._wanted.clear()
        if self in sys.meta_path:
            sys.meta_path.remove(self)


def _find(
    ours: LateHooks, name: str, path: Sequence[str] | None, target: ModuleType | None
) -> importlib.machinery.ModuleSpec | None:
    for finder in sys.meta_path:
        if finder is not ours and (find := getattr(finder, "find_spec", None)):
            spec: importlib.machinery.ModuleSpec | None = find(name, path, target)
            if spec is not None:
                return spec
    return None


class _Telling(importlib.abc.Loader):
    """The real loader, and a call when it is done. Out of the module's sight afterwards."""

    def __init__(self, loader: Any, calls: list[Callable[[], None]]) -> None:
        self._loader = loader
        self._calls = calls

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        for call in self._calls:
            call()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
