"""A stand-in for what TransformerEngine has compiled: `transformer_engine_torch` and Triton.

What quantizes is in `reference_kernels`; everything else of the extension is only a name. The
Python of TransformerEngine is the real one. Without a GPU the current one is only a name too."""

from __future__ import annotations

import os
import sys
from types import FunctionType, ModuleType
from typing import Any

import torch

from tests.real.transformer_engine import reference_kernels
from tests.real.transformer_engine.reference_kernels import NAME

GPU = torch.device("cuda", 0)
KERNELS = ("DType", "quantize", "dequantize", "create_empty_quantized_tensor", "fp8_transpose")


class _Nothing:
    """A decorator, a type, a number: whatever is done with it at import, it takes."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Nothing()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return args[0] if len(args) == 1 and isinstance(args[0], FunctionType) else _Nothing()


class _OnlyNames(ModuleType):
    __path__: list[str] = []
    __version__ = "0"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return 0 if name.isupper() else _numbered(name)


class _NoTriton(_OnlyNames):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Nothing()


def _numbered(name: str) -> Any:
    """A class whose attributes are numbers: the extension's enumerations."""

    class Numbers(type):
        def __getattr__(cls, member: str) -> int:
            if member.startswith("__"):
                raise AttributeError(member)
            return 0

    return Numbers(name, (), {"__module__": NAME})


def _on_the_host(module: Any, name: str) -> None:
    """What a quantizer makes on the current GPU, of which there is none."""
    original = getattr(module, name)
    setattr(module, name, lambda with_signs, device: original(with_signs, "cpu"))


def install() -> None:
    """Make `import transformer_engine.pytorch` work without its compiled half."""
    if NAME in sys.modules:
        return
    import torch._dynamo  # looks for Triton too, and must not find this one
    import torch._inductor.utils

    kernels = _OnlyNames(NAME)
    for name in KERNELS:
        setattr(kernels, name, getattr(reference_kernels, name))
    sys.modules[NAME] = kernels
    os.environ["NVTE_PROJECT_BUILDING"] = "1"
    triton = ("triton", "triton.language", "triton.language.core", "triton.language.standard")
    for name in triton:
        sys.modules[name] = _NoTriton(name)
    try:
        if not torch.cuda.is_available():
            torch.cuda.current_device = lambda: GPU  # where wrappers made without a device are
        import transformer_engine.common as common

        common.load_framework_extension = lambda framework: None
        import transformer_engine.pytorch  # noqa: F401
        from transformer_engine.pytorch.tensor import nvfp4_tensor

        if not torch.cuda.is_available():
            for name in ("get_rht_matrix", "get_random_sign_mask_for_rht"):
                _on_the_host(nvfp4_tensor, name)
    finally:
        for name in triton:
            del sys.modules[name]
