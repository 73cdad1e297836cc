"""TransformerEngine: what its quantizers make of a weight. They need its kernels and a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensortrail.doctor.subclass.families import home

LIBRARY = "transformer_engine"
ROWS, COLUMNS = 256, 256


def _quantized(quantizer: str, **options: Any) -> Callable[[], Any]:
    def make() -> Any:
        import torch
        import transformer_engine.pytorch as te
        import transformer_engine_torch as tex

        asked = dict(options)
        if quantizer == "Float8Quantizer":
            asked |= {"scale": torch.full((1,), 64.0, device=home())}
            asked |= {"amax": torch.zeros(1, device=home())}
        if quantizer != "NVFP4Quantizer":
            asked["fp8_dtype"] = tex.DType.kFloat8E4M3
        weight = torch.randn(ROWS, COLUMNS, device=home(), dtype=torch.bfloat16)
        return getattr(te, quantizer)(**asked)(weight)

    return make


MAKERS: dict[str, Callable[[], Any]] = {
    "Float8Tensor": _quantized("Float8Quantizer"),
    "MXFP8Tensor": _quantized("MXFP8Quantizer"),
    "Float8BlockwiseQTensor": _quantized("Float8BlockQuantizer", rowwise=True, columnwise=True),
    "NVFP4Tensor": _quantized("NVFP4Quantizer"),
}
