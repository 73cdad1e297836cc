"""torchao: by `quantize_` with a configuration where there is one, else by the class itself.

Classes whose content only a GPU's kernels can make hold numbers of no meaning."""

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


def _of_parts(path: str, *parts: Any, **options: Any) -> Callable[[], Any]:
    """The class around tensors of any content, where its kernels are for GPUs only."""

    def make() -> Any:
        given = [each() if callable(each) else each for each in parts]
        asked = {key: value() if callable(value) else value for key, value in options.items()}
        return _named(path)(*given, **asked)

    return make


def _numbers(dtype: str, *shape: int) -> Callable[[], Any]:
    def make() -> Any:
        import torch

        kind = getattr(torch, dtype)
        if kind.is_floating_point:
            return torch.randn(shape, device=home()).to(kind)
        return torch.randint(0, 100, shape, device=home(), dtype=kind)

    return make


def _optimizer_state(path: str, **options: Any) -> Callable[[], Any]:
    def make() -> Any:
        import torch

        made = _named(path).zeros((ROWS, COLUMNS), device=home(), **options)
        return made.copy_(torch.randn(ROWS, COLUMNS, device=home()).abs())

    return make


Q, P, W = "torchao.quantization", "torchao.prototype", "torchao.quantization.quantize_.workflows"
E4M3 = _value("torch:float8_e4m3fn")
GROUP = 128
GROUPS = (
    _numbers("bfloat16", COLUMNS // GROUP, ROWS),
    _numbers("bfloat16", COLUMNS // GROUP, ROWS),
)
MAKERS: dict[str, Callable[[], Any]] = {
    "Int8Tensor": _quantized(f"{Q}:Int8WeightOnlyConfig"),
    "Float8Tensor": _quantized(f"{Q}:Float8WeightOnlyConfig"),
    "Int4Tensor": _of_parts(
        f"{Q}:Int4Tensor", _numbers("int8", ROWS, COLUMNS // 2), *GROUPS, [1, GROUP],
        (ROWS, COLUMNS),
    ),
    "Int4PlainInt32Tensor": _of_parts(
        f"{Q}:Int4PlainInt32Tensor", _numbers("int32", ROWS, COLUMNS // 8),
        _numbers("bfloat16", COLUMNS // GROUP, ROWS), _numbers("int8", COLUMNS // GROUP, ROWS),
        [1, GROUP], (ROWS, COLUMNS),
    ),
    "Int4TilePackedTo4dTensor": _of_parts(
        f"{Q}:Int4TilePackedTo4dTensor", _numbers("int32", ROWS // 8, COLUMNS // 128, 32, 4),
        _numbers("bfloat16", COLUMNS // GROUP, ROWS, 2), [1, GROUP], (ROWS, COLUMNS),
    ),
    "Int4PreshuffledTensor": _of_parts(
        f"{Q}:Int4PreshuffledTensor", _numbers("int8", ROWS, COLUMNS // 2),
        _numbers("bfloat16", COLUMNS // GROUP, ROWS), [1, GROUP], (ROWS, COLUMNS),
        _numbers("bfloat16", COLUMNS // GROUP, ROWS),
    ),
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
    "Float8Sparse2x4_2DData2DMetadataTensor": _of_parts(
        f"{W}.float8.float8_sparse_2x4_2d_data_2d_metadata_tensor"
        ":Float8Sparse2x4_2DData2DMetadataTensor",
        _numbers("float8_e4m3fn", ROWS, COLUMNS // 2), _numbers("uint8", ROWS, COLUMNS // 8),
        _numbers("float32", ROWS, 1), block_size=[1, COLUMNS], dtype=_value("torch:bfloat16"),
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
    "PrototypeFloat8Tensor": _made(
        f"{P}.quantization.float8_static_quant.prototype_float8_tensor"
        ":PrototypeFloat8Tensor.from_hp"
    ),
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
    f"{P}.quantization.codebook.codebook_quantized_tensor.CodebookQuantizedTensor": _of_parts(
        f"{P}.quantization.codebook.codebook_quantized_tensor:CodebookQuantizedTensor",
        _numbers("uint8", ROWS, COLUMNS), _numbers("float32", 256, 1, 1), (1, 1),
        _numbers("float32", ROWS, COLUMNS // 64, 1), (ROWS, COLUMNS),
        dtype=_value("torch:float32"),
    ),
    "BitNetPacked2bitLinearWeight": _of_parts(
        f"{P}.quantized_training.bitnet:BitNetPacked2bitLinearWeight",
        _numbers("int8", ROWS, COLUMNS // 4), _numbers("bfloat16"),
    ),
    "ActivationLoggingTensor": _made(
        f"{P}.quant_logger.quant_logger:ActivationLoggingTensor", "layer.weight"
    ),
    "UintxTensor": _of_parts(
        f"{P}.dtypes.uintx.uintx_utils:UintxTensor.from_uint8", _numbers("uint8", ROWS, COLUMNS),
        _value("torch:uint7"),
    ),
    "Float8TrainingWeightWrapperTensor": _made(
        f"{P}.moe_training.tensor:Float8TrainingWeightWrapperTensor",
        _value(f"{P}.moe_training.config:Float8TrainingOpConfig"),
    ),
    "MXFP8TrainingWeightWrapperTensor": _made(
        f"{P}.moe_training.tensor:MXFP8TrainingWeightWrapperTensor",
        _value(f"{P}.moe_training.config:MXFP8TrainingOpConfig"),
    ),
    "GGUFQuantizedTensor": _made(
        f"{P}.quantization.gguf.gguf_quantized_tensor:GGUFQuantizedTensor.from_float",
        8, _value("torch:uint4"), dtype="float32",
    ),
}  # fmt: skip
