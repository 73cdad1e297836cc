"""What a machine without TensorRT needs so that the Python of torch_tensorrt runs as it is: an
empty module `tensorrt`, and a stand-in for export, compilation and refit. The stand-in engine is a
copy of the model on its device. Which device the user's own model is on afterwards is decided by
the genuine code of MutableTorchTensorRTModule."""

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


class Exported:
    """In the place of an ExportedProgram."""

    def __init__(self, model: Any) -> None:
        self._state_dict = model.state_dict()
        self._model = copy.deepcopy(model)

    def module(self) -> Any:
        return self._model


def compiled(exported: Exported, **_: Any) -> Any:
    return copy.deepcopy(exported.module())


def refitted(engine: Any, exported: Exported, *_: Any, **__: Any) -> Any:
    engine.load_state_dict(exported._state_dict)
    return engine


def stub_tensorrt() -> None:
    stub: Any = Empty("tensorrt")
    stub.__version__, stub.__file__, stub.__path__ = "10.9.0", "stub", []
    stub.__spec__ = ModuleSpec("tensorrt", None)
    sys.modules["tensorrt"] = stub


def mutable_module() -> Any:
    """The genuine class, its engine replaced."""
    stub_tensorrt()
    genuine: Any = importlib.import_module(
        "torch_tensorrt.dynamo.runtime._MutableTorchTensorRTModule"
    )
    genuine.dynamo_compile = compiled
    genuine.refit_module_weights = refitted
    found = genuine.MutableTorchTensorRTModule
    found.get_exported_program = lambda self: Exported(self.original_model)
    return found
