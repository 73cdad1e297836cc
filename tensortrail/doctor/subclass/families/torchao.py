"""torchao: by `quantize_` with a configuration where there is one, else by the class itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensortrail.doctor.subclass.families import home

LIBRARY = "torchao"
ROWS, COLUMNS = 128, 256


def _weight(dtype: str = "bfloat16") -> Any:
    import torch

    return torch.randn(ROWS, COLUMNS, dtype=getattr(torch, dtype), device=home())


def _quantized(config: str, dtype: str = "bfloat16", **options: Any) -> Callable[[], Any]:
    """The weight of a linear layer after `quantize_(layer, Config(...))`."""

    def make() -> Any:
        import torch
        from torchao.quantization import quantize_

        layer = torch.nn.Linear(COLUMNS, ROWS, bias=False, device=home())
        asked = {key: value() if callable(value) else value for key, value in options.items()}
        layer.to(getattr(torch, dtype))
        quantize_(layer, _named(config)(**asked))
        return layer.weight

    return make


def _made(
    maker: str, *arguments: Any, dtype: str = "bfloat16", **options: Any
) -> Callable[[], Any]:
    """`Class.from_hp(weight, ...)` and its kin; the arguments that are functions are called."""

    def make() -> Any:
        given = [each() if callable(each) else each for each in arguments]
        asked = {key: value() if callable(value) else value for key, value in options.items()}
        return _named(maker)(_weight(dtype), *given, **asked)

    return make


def _named(path: str) -> Any:
    """`torchao.quantization:Int8WeightOnlyConfig`, `module:Class.from_hp`"""
    import importlib

    module, _, attribute = path.partition(":")
    found: Any = importlib.import_module(module)
    for name in attribute.split("."):
        found = getattr(found, name)
    return found


def _value(path: str, *arguments: Any) -> Callable[[], Any]:
    """An object of a library, looked up when it is needed: `torch:int4`, `...:PerRow` called."""

    def make() -> Any:
        found = _named(path)
        return found(*arguments) if isinstance(found, type) else found

    return make


def _optimizer_state(path: str, **options: Any) -> Callable[[], Any]:
    def make() -> Any:
        import torch

        made = _named(path).zeros((ROWS, COLUMNS), device=home(), **options)
        return made.copy_(torch.randn(ROWS, COLUMNS, device=home()).abs())

    return make


Q, P, W = "torchao.quantization", "torchao.prototype", "torchao.quantization.quantize_.workflows"
E4M3 = _value("torch:float8_e4m3fn")
MAKERS: dict[str, Callable[[], Any]] = {
    "Int8Tensor": _quantized(f"{Q}:Int8WeightOnlyConfig"),
    "Float8Tensor": _quantized(f"{Q}:Float8WeightOnlyConfig"),
    "Int4Tensor": _made(f"{Q}:Int4Tensor.from_hp", [1, 128]),
    "Int4PlainInt32Tensor": _made(f"{Q}:Int4PlainInt32Tensor.from_hp", [1, 128]),
    "Int4TilePackedTo4dTensor": _made(f"{Q}:Int4TilePackedTo4dTensor.from_hp", [1, 128]),
    "Int4PreshuffledTensor": _made(f"{Q}:Int4PreshuffledTensor.from_hp", [1, 128]),
    "IntxUnpackedToInt8Tensor": _quantized(f"{Q}:IntxWeightOnlyConfig"),
    "NF4Tensor": _made(f"{W}.nf4.nf4_tensor:to_nf4", 64, 256),
    "Float8TrainingTensor": _made(
        "torchao.float8.float8_scaling_utils:hp_tensor_to_float8_dynamic", E4M3,
        _value("torchao.float8.float8_training_tensor:LinearMMConfig"),
    ),
    "WeightWithDynamicFloat8CastTensor": _made(
        "torchao.float8.fsdp_utils:WeightWithDynamicFloat8CastTensor",
        _value("torchao.float8.float8_training_tensor:LinearMMConfig"), E4M3, dtype="float32",
    ),
    "Float8Sparse2x4_1DData1DMetadataTensor": _made(
        f"{W}.float8.float8_sparse_2x4_1d_data_1d_metadata_tensor"
        ":Float8Sparse2x4_1DData1DMetadataTensor.from_hp"
    ),
    "Float8Sparse2x4_2DData2DMetadataTensor": _made(
        f"{W}.float8.float8_sparse_2x4_2d_data_2d_metadata_tensor"
        ":Float8Sparse2x4_2DData2DMetadataTensor.from_hp"
    ),
    "BlockSparseTensor": _made(
        "torchao.sparsity.blocksparse:BlockSparseTensor.from_dense", 64, dtype="float32"
    ),
    "_AffineFakeQuantizedTensor": _made(
        "torchao.quantization.qat.affine_fake_quantized_tensor:"
        "_AffineFakeQuantizedTensor.from_float",
        _value("torchao.quantization:MappingType.SYMMETRIC"), (1, COLUMNS), _value("torch:int8"),
    ),
    "OptimState8bit": _optimizer_state("torchao.optim.subclass_8bit:OptimState8bit"),
    "OptimState4bit": _optimizer_state("torchao.optim.subclass_4bit:OptimState4bit"),
    "OptimStateFp8": _optimizer_state("torchao.optim.subclass_fp8:OptimStateFp8"),
    "MXTensor": _made(f"{P}.mx_formats.mx_tensor:MXTensor.to_mx", E4M3, 32),
    "NVFP4Tensor": _made(f"{P}.mx_formats.nvfp4_tensor:NVFP4Tensor.to_nvfp4"),
    "UIntxBitPackedTensor": _made(
        f"{P}.quantization.uintx.uintx_bit_packed_tensor:UIntxBitPackedTensor.from_hp"
    ),
    "PrototypeFloat8Tensor": _made(
        f"{P}.quantization.float8_static_quant.prototype_float8_tensor"
        ":PrototypeFloat8Tensor.from_hp"
    ),
    "Float8OpaqueTensor": _made(f"{P}.float8_opaque_tensor:Float8OpaqueTensor.from_hp", [1, 128]),
    "Int4OpaqueTensor": _made(f"{P}.quantization.int4:Int4OpaqueTensor.from_hp", [1, 128]),
    "GPTQObserverTensor": _made(f"{P}.gptq.observer:GPTQObserverTensor.from_hp"),
    "BitNetTrainingLinearWeight": _made(
        f"{P}.quantized_training.bitnet:BitNetTrainingLinearWeight"
    ),
    "Int8QuantizedTrainingLinearWeight": _made(
        f"{P}.quantized_training.int8:Int8QuantizedTrainingLinearWeight.from_float"
    ),
    "Int8MixedPrecisionTrainingLinearWeight": _made(
        f"{P}.quantized_training.int8_mixed_precision:Int8MixedPrecisionTrainingLinearWeight",
        _value(f"{P}.quantized_training.int8_mixed_precision:Int8MixedPrecisionTrainingConfig"),
    ),
    f"{P}.quantization.codebook.codebook_quantized_tensor.CodebookQuantizedTensor": _made(
        f"{P}.quantization.codebook.codebook_quantized_tensor:CodebookQuantizedTensor.from_float",
        (1, 1), _value("torch:uint8"), 64, dtype="float32",
    ),
    "GGUFQuantizedTensor": _made(
        f"{P}.quantization.gguf.gguf_quantized_tensor:GGUFQuantizedTensor.from_float",
        8, _value("torch:uint4"), dtype="float32",
    ),
}  # fmt: skip
