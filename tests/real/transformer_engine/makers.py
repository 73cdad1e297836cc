"""Weights of every quantized class of TransformerEngine, for `tensortrail doctor subclass --make`.

The kernels are stand-ins; the quantizers and the tensors are TransformerEngine's own."""

from __future__ import annotations

from typing import Any

import torch

from tests.real.transformer_engine import stand_in_kernels

ROWS, COLUMNS = 256, 256
HOME = "cuda" if torch.cuda.is_available() else "cpu"


def float8() -> Any:
    te, tex = _engine()
    scale, amax = torch.full((1,), 64.0, device=HOME), torch.zeros(1, device=HOME)
    return te.Float8Quantizer(scale=scale, amax=amax, fp8_dtype=tex.DType.kFloat8E4M3)(_weight())


def current_scaling() -> Any:
    te, tex = _engine()
    device = torch.device(HOME)
    return te.Float8CurrentScalingQuantizer(tex.DType.kFloat8E4M3, device=device)(_weight())


def mxfp8() -> Any:
    te, tex = _engine()
    return te.MXFP8Quantizer(tex.DType.kFloat8E4M3)(_weight())


def blockwise() -> Any:
    te, tex = _engine()
    return te.Float8BlockQuantizer(tex.DType.kFloat8E4M3, rowwise=True, columnwise=True)(_weight())


def nvfp4() -> Any:
    te, _ = _engine()
    return te.NVFP4Quantizer()(_weight())


def _weight() -> Any:
    return torch.randn(ROWS, COLUMNS, device=HOME, dtype=torch.bfloat16)


def _engine() -> tuple[Any, Any]:
    stand_in_kernels.install()
    import transformer_engine.pytorch as te
    import transformer_engine_torch as tex

    return te, tex
