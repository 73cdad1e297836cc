"""Modules in the place of those that are not installed: they can be imported, and no more.

What is taken from one is a base class, or leaves alone what it decorates. Whoever calls it
otherwise gets an exception once the import is over, so that no run goes through it.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import sys
from collections import defaultdict
from collections.abc import Sequence
from types import FunctionType, ModuleType
from typing import Any

MOST = 30


class NotInstalled(Exception):
    """Something was called of a module that is not there."""


class _State:
    importing = True


class _Anything(type):
    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _named(name)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if not cls.__dict__.get("_stands_in"):
            return super().__call__(*args, **kwargs)
        if len(args) == 1 and not kwargs and isinstance(args[0], (type, FunctionType)):
            return args[0]
        return cls._answer()

    def _answer(cls, *others: object) -> Any:
        if _State.importing:
            return cls
        raise NotInstalled(cls.__name__)

    __getitem__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _answer
    __add__ = __radd__ = __sub__ = __rsub__ = __pow__ = __neg__ = __float__ = _answer
    __enter__ = __exit__ = _answer


def _named(name: str) -> Any:
    return _Anything(name, (), {"_stands_in": True})


class _StandIn(ModuleType):
    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _named(name)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self) -> None:
        self.names: set[str] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] in self.names:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing to run."""


def _every_package_has_a_version() -> None:
    """Also the one that is imported from its sources."""
    known = importlib.metadata.version

    def version(name: str) -> str:
        try:
            return known(name)
        except importlib.metadata.PackageNotFoundError:
            return "0.0.0"

    importlib.metadata.version = version
    importlib.metadata.metadata = lambda name: defaultdict(str)  # type: ignore[assignment]


def import_with_stand_ins(name: str) -> ModuleType:
    """The module, with what it needs and is not installed stood in for."""
    _every_package_has_a_version()
    finder = _Finder()
    sys.meta_path.append(finder)
    for _ in range(MOST):
        try:
            module = importlib.import_module(name)
            _State.importing = False
            return module
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            if not missing or missing in finder.names or missing == name.partition(".")[0]:
                raise
            finder.names.add(missing)
    raise ModuleNotFoundError(name)
