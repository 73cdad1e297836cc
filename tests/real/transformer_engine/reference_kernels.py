"""Quantizing and dequantizing by plain torch, after the formats' descriptions: stand-ins.

Real kernels lay scales out in other orders and round in other places: numbers are not those of a
GPU; types, devices and storages are what TransformerEngine's own Python makes of them."""

from __future__ import annotations

import enum
import math
from typing import Any

import torch

E4M3_MAX, E2M1_MAX = 448.0, 6.0
E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0)
NAME = "transformer_engine_torch"


class DType(enum.IntEnum):
    kByte = 0
    kInt32 = 2
    kFloat32 = 4
    kFloat16 = 5
    kBFloat16 = 6
    kFloat8E4M3 = 7
    kFloat8E5M2 = 8
    kFloat4E2M1 = 10


DType.__module__ = NAME
TORCH = {
    DType.kFloat32: torch.float32,
    DType.kFloat16: torch.float16,
    DType.kBFloat16: torch.bfloat16,
}


def quantize(tensor: Any, quantizer: Any, out: Any = None, noop: Any = None) -> Any:
    if out is None:
        shape, dtype, device = tuple(tensor.shape), tensor.dtype, tensor.device
        out = create_empty_quantized_tensor(quantizer, shape, dtype, device, False)
    values = tensor.detach().float().reshape(-1, tensor.shape[-1])
    with torch.no_grad():
        FORMATS[_format(quantizer)].fill(values, quantizer, out)
    return out


def dequantize(tensor: Any, dtype: DType) -> Any:
    kind = FORMATS[_format(tensor._get_quantizer())]
    return kind.values(tensor).reshape(tuple(tensor.size())).to(TORCH[dtype])


def create_empty_quantized_tensor(
    quantizer: Any, shape: Any, dtype: Any, device: Any, pin_memory: bool
) -> Any:
    """2.16 lets the extension do what the quantizers of 2.15 do themselves."""
    made = FORMATS[_format(quantizer)]
    on = {"device": device, "pin_memory": pin_memory}
    rows, columns = math.prod(shape[:-1]), shape[-1] if len(shape) else 1
    return made.empty(quantizer, tuple(shape), rows, columns, dtype, on)


def fp8_transpose(data: Any, dtype: Any, out: Any = None) -> Any:
    turned = data.reshape(-1, data.shape[-1]).t().contiguous()
    return turned if out is None else out.copy_(turned)


class Float8:
    @staticmethod
    def empty(quantizer: Any, shape: Any, rows: int, columns: int, dtype: Any, on: Any) -> Any:
        from transformer_engine.pytorch.tensor.float8_tensor import Float8Tensor

        data = torch.empty(shape, dtype=torch.uint8, **on) if quantizer.rowwise_usage else None
        turned = None
        if quantizer.columnwise_usage:
            turned = torch.empty((columns, *shape[:-1]), dtype=torch.uint8, **on)
        return Float8Tensor(
            shape=shape,
            dtype=dtype,
            data=data,
            fp8_scale_inv=torch.empty(1, dtype=torch.float32, **on),
            fp8_dtype=quantizer.dtype,
            data_transpose=turned,
            quantizer=quantizer,
            device=on["device"],
        )

    @staticmethod
    def fill(values: Any, quantizer: Any, out: Any) -> None:
        scale = getattr(quantizer, "scale", None)
        if scale is None or "Current" in type(quantizer).__name__:
            scale = E4M3_MAX / values.abs().amax().clamp(min=1e-12)
        data = _to_e4m3(values * scale)
        out._scale_inv.copy_(1.0 / scale)
        if out._data is not None:
            out._data.copy_(data.reshape(out._data.shape))
        if out._transpose is not None:
            out._transpose.copy_(data.t().reshape(out._transpose.shape))
            out._transpose_invalid = False

    @staticmethod
    def values(tensor: Any) -> Any:
        return tensor._data.view(torch.float8_e4m3fn).float() * tensor._scale_inv


class MXFP8:
    @staticmethod
    def empty(quantizer: Any, shape: Any, rows: int, columns: int, dtype: Any, on: Any) -> Any:
        from transformer_engine.pytorch.tensor.mxfp8_tensor import MXFP8Tensor

        return MXFP8Tensor(
            shape=shape,
            dtype=dtype,
            fp8_dtype=quantizer.dtype,
            **_buffers(quantizer, shape, shape, torch.uint8, on),
            quantizer=quantizer,
            with_gemm_swizzled_scales=False,
            device=on["device"],
        )

    @staticmethod
    def fill(values: Any, quantizer: Any, out: Any) -> None:
        if out._rowwise_data is not None:
            data, scales = MXFP8.blocks(values)
            out._rowwise_data.copy_(data.reshape(out._rowwise_data.shape))
            _into_padded(out._rowwise_scale_inv, scales)
        if out._columnwise_data is not None:
            data, scales = MXFP8.blocks(values.t())
            out._columnwise_data.copy_(data.t().reshape(out._columnwise_data.shape))
            _into_padded(out._columnwise_scale_inv, scales.t())

    @staticmethod
    def blocks(values: Any) -> tuple[Any, Any]:
        blocks = values.reshape(values.shape[0], -1, 32)
        amax = blocks.abs().amax(-1, keepdim=True).clamp(min=2.0**-100)
        exponents = (amax / E4M3_MAX).log2().ceil()
        data = _to_e4m3(blocks / exponents.exp2()).reshape(values.shape)
        return data, (exponents.squeeze(-1) + 127).to(torch.uint8)

    @staticmethod
    def values(tensor: Any) -> Any:
        data = tensor._rowwise_data.reshape(-1, tensor._rowwise_data.shape[-1])
        scales = _unpadded(tensor._rowwise_scale_inv, data.shape[0], data.shape[1] // 32)
        blocks = data.view(torch.float8_e4m3fn).float().reshape(data.shape[0], -1, 32)
        return blocks * (scales.float() - 127).exp2().unsqueeze(-1)


class Float8Block:
    """128 x 128 elements share a scale."""

    @staticmethod
    def empty(quantizer: Any, shape: Any, rows: int, columns: int, dtype: Any, on: Any) -> Any:
        from transformer_engine.pytorch.tensor.float8_blockwise_tensor import (
            Float8BlockwiseQTensor,
        )

        turned = tuple(quantizer.get_columnwise_shape(shape))
        return Float8BlockwiseQTensor(
            shape=shape,
            dtype=dtype,
            fp8_dtype=quantizer.dtype,
            **_buffers(quantizer, shape, turned, torch.float32, on),
            quantizer=quantizer,
            is_2D_scaled=quantizer.block_scaling_dim == 2,
            device=on["device"],
        )

    @staticmethod
    def fill(values: Any, quantizer: Any, out: Any) -> None:
        tiles = values.reshape(values.shape[0] // 128, 128, values.shape[1] // 128, 128)
        scales = tiles.abs().amax((1, 3)).clamp(min=1e-12) / E4M3_MAX
        data = _to_e4m3(tiles / scales[:, None, :, None]).reshape(values.shape)
        if out._rowwise_data is not None:
            out._rowwise_data.copy_(data.reshape(out._rowwise_data.shape))
            _into_padded(out._rowwise_scale_inv, scales)
        if out._columnwise_data is not None:
            out._columnwise_data.copy_(data.t().reshape(out._columnwise_data.shape))
            _into_padded(out._columnwise_scale_inv, scales.t())

    @staticmethod
    def values(tensor: Any) -> Any:
        return tensor.dequantize(dtype=torch.float32)  # its own Python does it


class NVFP4:
    """16 elements share an E4M3 scale, the whole tensor an FP32 one."""

    @staticmethod
    def empty(quantizer: Any, shape: Any, rows: int, columns: int, dtype: Any, on: Any) -> Any:
        from transformer_engine.pytorch.tensor.nvfp4_tensor import NVFP4Tensor

        halved = (*shape[:-1], columns // 2)
        turned = (columns, rows // 2)
        amax = {
            f"amax_{way}": torch.zeros(1, dtype=torch.float32, **on) if used else None
            for way, used in _ways(quantizer)
        }
        return NVFP4Tensor(
            shape=shape,
            dtype=dtype,
            fp4_dtype=quantizer.dtype,
            **_buffers(quantizer, halved, turned, torch.uint8, on, shape),
            **amax,
            quantizer=quantizer,
            with_gemm_swizzled_scales=False,
            device=on["device"],
        )

    @staticmethod
    def fill(values: Any, quantizer: Any, out: Any) -> None:
        for way, given in (("rowwise", values), ("columnwise", values.t())):
            data = getattr(out, f"_{way}_data")
            if data is not None:
                packed, scales, amax = NVFP4.blocks(given)
                data.copy_(packed.reshape(data.shape))
                _into_padded(getattr(out, f"_{way}_scale_inv"), scales)
                getattr(out, f"_amax_{way}").copy_(amax)

    @staticmethod
    def blocks(values: Any) -> tuple[Any, Any, Any]:
        amax = values.abs().amax().clamp(min=1e-12)
        encode = E4M3_MAX * E2M1_MAX / amax
        blocks = values.reshape(values.shape[0], -1, 16)
        scales = (blocks.abs().amax(-1) / E2M1_MAX * encode).to(torch.float8_e4m3fn)
        decode = scales.float().unsqueeze(-1) / encode
        table = torch.tensor(E2M1, device=values.device)
        wanted = (blocks / decode.clamp(min=1e-30)).unsqueeze(-1)
        codes = (wanted - table).abs().argmin(-1).to(torch.uint8).reshape(values.shape)
        packed = codes[:, 0::2] | (codes[:, 1::2] << 4)
        return packed, scales.view(torch.uint8), amax

    @staticmethod
    def values(tensor: Any) -> Any:
        packed = tensor._rowwise_data.reshape(-1, tensor._rowwise_data.shape[-1])
        codes = torch.stack((packed & 15, packed >> 4), -1).reshape(packed.shape[0], -1)
        table = torch.tensor(E2M1, device=packed.device)
        scales = _unpadded(tensor._rowwise_scale_inv, codes.shape[0], codes.shape[1] // 16)
        decode = scales.contiguous().view(torch.float8_e4m3fn).float()
        decode = decode * tensor._amax_rowwise / (E4M3_MAX * E2M1_MAX)
        return table[codes.long()].reshape(codes.shape[0], -1, 16) * decode.unsqueeze(-1)


FORMATS: dict[str, Any] = {
    "Float8Quantizer": Float8,
    "Float8CurrentScalingQuantizer": Float8,
    "MXFP8Quantizer": MXFP8,
    "Float8BlockQuantizer": Float8Block,
    "NVFP4Quantizer": NVFP4,
}


def _format(quantizer: Any) -> str:
    return type(quantizer).__name__


def _ways(quantizer: Any) -> tuple[tuple[str, bool], ...]:
    return (("rowwise", quantizer.rowwise_usage), ("columnwise", quantizer.columnwise_usage))


def _buffers(
    quantizer: Any, rowwise: Any, columnwise: Any, scales: torch.dtype, on: Any, whole: Any = None
) -> dict[str, Any]:
    """Data and scales of each direction the quantizer is to fill."""
    shapes = {"rowwise": rowwise, "columnwise": columnwise}
    made: dict[str, Any] = {}
    for way, used in _ways(quantizer):
        scale_shape = quantizer.get_scale_shape(whole or rowwise, columnwise=way == "columnwise")
        data = torch.empty(shapes[way], dtype=torch.uint8, **on) if used else None
        made[f"{way}_data"] = data
        made[f"{way}_scale_inv"] = torch.empty(scale_shape, dtype=scales, **on) if used else None
    return made


def _to_e4m3(values: Any) -> Any:
    clamped = values.clamp(-E4M3_MAX, E4M3_MAX)
    return clamped.to(torch.float8_e4m3fn).view(torch.uint8)


def _into_padded(target: Any, scales: Any) -> None:
    target.zero_()
    target[: scales.shape[0], : scales.shape[1]].copy_(scales)


def _unpadded(scales: Any, rows: int, columns: int) -> Any:
    return scales[:rows, :columns]
