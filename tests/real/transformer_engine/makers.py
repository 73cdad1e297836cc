"""Weights of every quantized class of TransformerEngine, for programs and for `--make`.

The kernels are stand-ins; the quantizers and the tensors are TransformerEngine's own."""

from __future__ import annotations

from typing import Any

from tensortrail.doctor.subclass.families.transformer_engine import MAKERS
from tests.real.transformer_engine import stand_in_kernels


def float8() -> Any:
    return _made("Float8Tensor")


def mxfp8() -> Any:
    return _made("MXFP8Tensor")


def blockwise() -> Any:
    return _made("Float8BlockwiseQTensor")


def nvfp4() -> Any:
    return _made("NVFP4Tensor")


def _made(kind: str) -> Any:
    stand_in_kernels.install()
    return MAKERS[kind]()
