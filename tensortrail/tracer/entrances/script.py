"""A script or module runs as `python` itself would run it."""

from __future__ import annotations

import builtins
import importlib.machinery
import importlib.util
import io
import os
import sys
from collections.abc import Sequence
from types import CodeType, ModuleType


class NoProgram(Exception):
    """There is nothing to run. The message says why."""


class Program:
    """Code and the `__main__` it runs in. Made before anything is changed, so that a name that
    cannot be run is told at once."""

    def __init__(self, code: CodeType, main: ModuleType, argv0: str, first_path: str) -> None:
        self._code = code
        self._main = main
        self._argv0 = argv0
        self._first_path = first_path

    def run(self, args: Sequence[str]) -> None:
        sys.argv[:] = [self._argv0, *args]
        # Where Python puts the script's folder; what stands there is the folder of our own.
        sys.path[:1] = [self._first_path]
        sys.modules["__main__"] = self._main
        exec(self._code, self._main.__dict__)


def script(path: str) -> Program:
    shown, folder = path, os.path.dirname(os.path.abspath(path))
    if os.path.isdir(path):
        folder, path = os.path.abspath(path), os.path.join(path, "__main__.py")
    full = os.path.abspath(path)
    try:
        with io.open_code(full) as opened:
            source = opened.read()
        code = compile(source, full, "exec", dont_inherit=True)
    except OSError as error:
        raise NoProgram(f"{shown}: {_why_not_read(error, is_folder=shown != path)}") from error
    except ValueError as error:
        raise NoProgram(f"{path}: cannot be compiled: {error}") from error
    main = _main_module(full)
    loader = importlib.machinery.SourceFileLoader("__main__", full)
    main.__dict__["__loader__"] = loader
    if shown != path:  # a folder is run like a package without a name
        main.__spec__ = importlib.machinery.ModuleSpec("__main__", loader, origin=full)
        main.__package__ = ""
    return Program(code, main, shown, folder)


def _why_not_read(error: OSError, *, is_folder: bool) -> str:
    if is_folder and isinstance(error, FileNotFoundError):
        return "the folder has no __main__.py"
    return f"cannot be read: {error.strerror or error}"


def module(name: str) -> Program:
    sys.path.insert(0, os.getcwd())
    try:
        spec = _spec(name)
        code = spec.loader.get_code(spec.name)  # type: ignore[union-attr]
    finally:
        sys.path.pop(0)
    if code is None:
        raise NoProgram(f"-m {name}: there is no code in it")
    main = _main_module(spec.origin or "")
    main.__dict__["__spec__"] = spec
    main.__dict__["__loader__"] = spec.loader
    main.__package__ = spec.parent
    return Program(code, main, spec.origin or name, os.getcwd())


def _spec(name: str) -> importlib.machinery.ModuleSpec:
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except (ImportError, ValueError, AttributeError) as error:
        raise NoProgram(f"-m {name}: {error}") from error
    if spec is None or not hasattr(spec.loader, "get_code"):
        raise NoProgram(f"-m {name}: no such module, or a package without __main__")
    return spec


def _main_module(file: str) -> ModuleType:
    main = ModuleType("__main__")
    main.__file__ = file
    main.__dict__["__builtins__"] = builtins
    main.__dict__["__cached__"] = None
    if sys.version_info < (3, 14):
        main.__annotations__ = {}
    return main
