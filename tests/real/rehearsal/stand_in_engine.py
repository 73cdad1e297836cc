"""What a machine without TensorRT needs so that the Python of torch_tensorrt runs as it is: an
empty module `tensorrt`, and a stand-in for the engine. Export and compilation are genuine, with no
block large enough for TensorRT; the stand-in engine is a copy of what they give, on its device,
and its refit writes weights into the copy. Which device the user's own model is on afterwards is
decided by the genuine code."""

from __future__ import annotations

import copy
import importlib
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class Name(type):
    """A class for every name of TensorRT's, wherever it is looked up; it does nothing."""

    known: dict[str, Name] = {}

    def __call__(cls, *_: Any, **__: Any) -> Any:
        made: Any = cls
        return object.__new__(made)

    def __getattr__(cls, name: str) -> Name:
        if name.startswith("__"):
            raise AttributeError(name)
        return Name.known.setdefault(name, Name.__new__(Name, name, (), {}))


class Empty(ModuleType):
    """A module in which every name is there."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Name.known.setdefault(name, Name.__new__(Name, name, (), {}))


def engine_of(compile_: Any) -> Any:
    """The genuine compilation; its result has weights of its own, as an engine has."""

    def compiled(exported: Any, *args: Any, **settings: Any) -> Any:
        settings["min_block_size"] = 1_000_000
        return copy.deepcopy(compile_(exported, *args, **settings))

    return compiled


def refitted(engine: Any, exported: Any, *_: Any, **__: Any) -> Any:
    engine.load_state_dict(exported.state_dict, strict=False)
    return engine


def stub_tensorrt() -> None:
    stub: Any = Empty("tensorrt")
    stub.__version__, stub.__file__, stub.__path__ = "10.9.0", "stub", []
    stub.__spec__ = ModuleSpec("tensorrt", None)
    sys.modules["tensorrt"] = stub


def mutable_module() -> Any:
    """The genuine class; engine and refit are the stand-ins."""
    stub_tensorrt()
    genuine: Any = importlib.import_module(
        "torch_tensorrt.dynamo.runtime._MutableTorchTensorRTModule"
    )
    genuine.dynamo_compile = engine_of(genuine.dynamo_compile)
    genuine.refit_module_weights = refitted
    return genuine.MutableTorchTensorRTModule
