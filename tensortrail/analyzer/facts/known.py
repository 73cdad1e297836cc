"""What is known of libraries without reading them: names, and what a call of them gives."""

from __future__ import annotations

import re

from tensortrail.patterns import pattern
from tensortrail.rules.shared.moves import GIVES_ITSELF
from tensortrail.rules.words import Kind

DEVICE_NAME = pattern(
    r"(cpu|cuda|meta|mps|xpu|npu|hpu|xla|mlu|musa|sdaa|hip|ipu|vulkan|neuron|privateuseone)(:\d+)?"
)

TORCH_FACTORIES = frozenset(
    f"torch.{name}"
    for name in (
        "arange as_tensor bartlett_window blackman_window complex empty empty_permuted "
        "empty_strided eye from_numpy frombuffer full hamming_window hann_window kaiser_window "
        "linspace logspace normal ones rand randint randn randperm scalar_tensor "
        "sparse_coo_tensor sparse_csr_tensor tensor tril_indices triu_indices zeros"
    ).split()
)
TORCH_LIKE = frozenset(
    f"torch.{name}_like" for name in "empty full ones rand randint randn zeros".split()
)
TORCH_OPS = frozenset(
    f"torch.{name}"
    for name in (
        "abs add addmm allclose_ argmax argmin bmm cat chunk_ clamp clone concat cos cumsum "
        "dequantize detach diag div einsum exp flatten flip gather ge gt hstack index_select "
        "isinf isnan layer_norm log logical_and logical_not logical_or lt le masked_select matmul "
        "max mean min mm mul multinomial ne nonzero norm permute pow prod quantize_per_channel "
        "quantize_per_tensor relu repeat_interleave reshape roll round rsqrt scatter sigmoid sin "
        "softmax sort_ sqrt square squeeze stack sub sum tanh tile transpose tril triu "
        "unsqueeze vstack where zeros_like view_as_real view_as_complex outer"
    ).split()
)
TENSOR_FUNCTIONS = TORCH_FACTORIES | TORCH_LIKE | TORCH_OPS

_OF_SEVERAL = frozenset(f"torch.{name}" for name in "cat concat hstack stack vstack".split())
_OF_ANYTHING = frozenset(f"torch.{name}" for name in "einsum max min where norm".split())
COLLECTIVES = frozenset(
    f"torch.distributed.{name}"
    for name in "all_reduce broadcast reduce send isend recv irecv".split()
)
TAKES_A_TENSOR = (
    (TORCH_OPS - _OF_SEVERAL - _OF_ANYTHING)
    | (TORCH_LIKE - {"torch.full_like"})
    | COLLECTIVES
    | frozenset(
        f"torch.nn.functional.{name}"
        for name in "cross_entropy gelu interpolate layer_norm linear log_softmax mse_loss "
        "normalize one_hot pad relu sigmoid silu softmax".split()
    )
)
"""Their first argument is a tensor."""
TAKES_TENSORS = _OF_SEVERAL
"""Their first argument is a list of tensors."""

TENSOR_METHODS = frozenset(
    (
        "abs add add_ addmm all any argmax argmin as_strided bfloat16 bmm bool clamp clamp_ clone "
        "contiguous copy_ cos cpu cuda cumsum dequantize detach detach_ diagonal div div_ double "
        "exp expand expand_as fill_ flatten flip float gather half index_copy index_select int "
        "int_repr log long masked_fill masked_fill_ matmul max mean min mm mul mul_ narrow "
        "new_empty new_full new_ones new_zeros nonzero norm permute pin_memory pow "
        "requires_grad_ repeat repeat_interleave reshape resize_ round rsqrt scatter select short "
        "sigmoid sin softmax sqrt square squeeze std sub sub_ sum t tanh to tile transpose tril "
        "triu type_as unflatten unfold uniform_ unsqueeze values var view view_as xpu zero_"
    ).split()
)
ONLY_TENSOR_METHODS = frozenset(
    (
        "contiguous clone detach detach_ unsqueeze squeeze permute reshape new_empty new_full "
        "new_ones new_zeros expand_as type_as view_as masked_fill masked_fill_ pin_memory "
        "index_select requires_grad_ as_strided narrow flatten"
    ).split()
)
"""Methods hardly anything but a tensor has: the value is one, though only believed to be."""
PROVES_A_TENSOR = frozenset(
    (
        "contiguous unsqueeze permute new_empty new_full new_ones new_tensor new_zeros expand_as "
        "type_as view_as masked_fill masked_fill_ index_select index_copy_ index_add_ as_strided "
        "copy_ add_ sub_ mul_ div_ zero_ fill_ clamp_ normal_ uniform_ is_contiguous "
        "storage_offset is_floating_point repeat_interleave record_stream"
    ).split()
)
"""Methods that nothing but a tensor has, whatever it is called: the value is one."""
PROVES_A_TENSOR_ALONE = frozenset("detach clone pin_memory backward numel".split())
"""The same, where the call has no argument and a tensor is believed already."""
VIEW_METHODS = frozenset(
    (
        "as_strided detach diagonal expand expand_as flatten narrow permute reshape select "
        "squeeze t transpose unflatten unfold unsqueeze view view_as"
    ).split()
)
PLAIN_METHODS = frozenset(
    (
        "data_ptr dim element_size get_device is_contiguous is_floating_point is_pinned item "
        "ndimension nelement numel numpy size storage_offset stride tolist"
    ).split()
)
"""Methods of a tensor that give something else."""
TENSOR_ATTRIBUTES = frozenset("T mT H data grad real imag".split())
WEIGHT_ATTRIBUTES = frozenset("weight bias weights qweight weight_scale".split())
SAME_MODULE_METHODS = GIVES_ITSELF | {"share_memory"}
SUBMODULE_METHODS = frozenset(
    "get_submodule get_input_embeddings get_output_embeddings get_encoder get_decoder "
    "get_base_model".split()
)

LAYERS = frozenset(
    f"torch.nn.{name}"
    for name in (
        "Linear Bilinear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d "
        "BatchNorm1d BatchNorm2d BatchNorm3d LayerNorm GroupNorm RMSNorm InstanceNorm2d Embedding "
        "EmbeddingBag Dropout Dropout2d ReLU GELU SiLU Sigmoid Tanh Softmax LogSoftmax Softplus "
        "LeakyReLU ELU MaxPool2d AvgPool2d AdaptiveAvgPool2d Upsample Flatten PixelShuffle "
        "CrossEntropyLoss MSELoss L1Loss BCEWithLogitsLoss"
    ).split()
)
"""Modules whose result is one tensor."""

CALL_KINDS: dict[str, Kind] = {
    "torch.device": Kind.DEVICE,
    "torch.get_default_device": Kind.DEVICE,
    "torch.Tensor": Kind.TENSOR,
    "torch.FloatTensor": Kind.TENSOR,
    "torch.LongTensor": Kind.TENSOR,
    "torch.nn.Parameter": Kind.PARAMETER,
    "torch.nn.Buffer": Kind.TENSOR,
    "torch.UntypedStorage": Kind.STORAGE,
    "torch.fx.GraphModule": Kind.MODULE,
    "torch.jit.load": Kind.MODULE,
    "safetensors.torch.load_file": Kind.STATE_DICT,
    "safetensors.torch.load": Kind.STATE_DICT,
}
_SORTED = (Kind.TENSOR, Kind.TENSOR)
TUPLE_KINDS: dict[str, tuple[Kind, ...]] = {
    "torch._C._nn._parse_to": (Kind.DEVICE, Kind.OTHER, Kind.OTHER, Kind.OTHER),
    "torch.sort": _SORTED,
    "torch.topk": _SORTED,
    "torch.aminmax": _SORTED,
}
"""Functions that return a tuple, and what its parts are."""
SHARING_CALLS = frozenset(
    {"torch.export.export", "torch.export._trace._export", "torch.fx.symbolic_trace"}
)
"""Their result shares the parameters of their first argument."""
MODULE_FACTORIES = pattern(
    r"(transformers\..*|.*\b(AutoModel\w*|\w*ForCausalLM|\w*Pipeline))\.from_pretrained$"
)

MODULE_BASES = pattern(
    r"^torch\.nn\.((modules|parallel)\.(\w+\.)*)?_?(?!(Uninitialized)?(Parameter|Buffer)$)[A-Z]\w*$"
    r"|\b(\w*Pre[tT]rainedModel|LightningModule|GraphModule|ModelMixin|MegatronModule)$"
    r"|^torchmetrics\.(\w+\.)*Metric$|^gpytorch\.(models|kernels|means|likelihoods)\.[A-Z]\w*$"
    r"|^(mmengine\.model|mmcv\.runner)\.Base(Module|Model)$|^composer\.models\.\w+Model$"
    r"|^nemo\.core\.(\w+\.)*(NeuralModule|ModelPT)$|^tensordict\.nn\.TensorDictModule\w*$"
    r"|^fairseq\.(models|modules|criterions)\.(\w+\.)*\w*(Model|Encoder|Decoder|Criterion)$"
)
"""Modules of libraries, by their names."""
WRAPPER_BASES = frozenset(
    (
        "TorchAOBaseTensor DTensor QuantizedTensor AffineQuantizedTensor Float8Tensor NF4Tensor "
        "MXFP8Tensor NVFP4Tensor MXTensor Float8TrainingTensor WrapperTensor QTensor"
    ).split()
)
"""Wrapper subclasses of libraries by their last name, for a base that cannot be read."""

REGISTERING = frozenset({"register_buffer", "register_parameter", "add_module", "register_module"})
"""Methods that give a module something of its own, by name."""

PLAIN_BASES = frozenset(
    "object ABC abc.ABC Generic typing.Generic Protocol typing.Protocol Exception Enum enum.Enum "
    "torch.Tensor torch.nn.Parameter torch.nn.Module torch.autograd.Function dict list tuple str "
    "int float NamedTuple typing.NamedTuple TypedDict typing.TypedDict".split()
)
"""Bases whose own methods are known not to matter: a class of these alone is completely known."""

MOVERS: dict[str, tuple[int, str, str]] = {
    "deallocate_module": (0, "module", "cpu"),
    "accelerate.cpu_offload": (0, "model", "offloaded"),
    "accelerate.disk_offload": (0, "model", "offloaded"),
    "accelerate.big_modeling.cpu_offload": (0, "model", "offloaded"),
    "accelerate.big_modeling.disk_offload": (0, "model", "offloaded"),
    "accelerate.dispatch_model": (0, "model", "offloaded"),
    "accelerate.big_modeling.dispatch_model": (0, "model", "offloaded"),
    "torch_tensorrt.MutableTorchTensorRTModule": (0, "pytorch_model", "offloaded"),
    "torch_tensorrt.runtime.MutableTorchTensorRTModule": (0, "pytorch_model", "offloaded"),
    "torch_tensorrt.dynamo.runtime.MutableTorchTensorRTModule": (0, "pytorch_model", "offloaded"),
}
"""Function -> (position, keyword, device) of the module argument it moves."""
SWITCHED_MOVERS: dict[str, tuple[int, str, str, str]] = {
    "torch_tensorrt.compile": (0, "module", "cpu", "offload_module_to_cpu"),
    "torch_tensorrt.dynamo.compile": (0, "exported_program", "cpu", "offload_module_to_cpu"),
}
"""Functions that move their argument only when the named switch is given as True."""
MOVER_SHORT_NAMES = frozenset({"deallocate_module", "MutableTorchTensorRTModule"})

OFFLOAD_SWITCH = pattern(r"offload", re.IGNORECASE)
NOT_A_SWITCH = pattern(
    r"(dir|folder|path|device|stream|hook|index|buffers?|state_dict|config|manager|handler|fn|func"
    r"|map|params|weights|keys?|list|names?|cache|thread|event|size|gb|ratio|type)s?$"
)


def is_offload_switch(name: str) -> bool:
    """The name reads like a yes-or-no setting about offloading."""
    return bool(OFFLOAD_SWITCH.search(name)) and not NOT_A_SWITCH.search(name.lower())


def kind_by_name(name: str) -> frozenset[Kind]:
    """What a parameter of this name is by convention, when nothing better is known."""
    return _BY_NAME.get(name.rstrip("0123456789_"), frozenset())


_BY_NAME = {
    **dict.fromkeys(
        ("model", "module", "submodule", "net", "pytorch_model", "gm"), frozenset({Kind.MODULE})
    ),
    **dict.fromkeys(("tensor", "weight", "grad", "logits"), frozenset({Kind.TENSOR})),
    **dict.fromkeys(("param", "parameter"), frozenset({Kind.PARAMETER})),
    **dict.fromkeys(("state_dict", "sd", "shard_state_dict"), frozenset({Kind.STATE_DICT})),
    **dict.fromkeys(
        ("device", "target_device", "exec_device", "execution_device"),
        frozenset({Kind.DEVICE, Kind.DEVICE_STRING}),
    ),
}

LIBRARY_HANDLES: dict[str, frozenset[str]] = {
    # registered for every subclass by the base's __init_subclass__
    "TorchAOBaseTensor": frozenset(
        f"aten.{op}" for op in "detach clone alias contiguous copy_ _to_copy".split()
    )
}
"""Ops that base classes of libraries answer, for when their file cannot be read."""

FUNCTION_WORTH_READING = pattern(
    r"load|offload|dealloc|free|move|device|cpu|cuda|gpu|dispatch|release|place|align|evict|_to\b"
    r"|to_|suspend|restore|swap",
    re.IGNORECASE,
)
"""Functions of other files are read only if their name says they may move or free something."""
RETURN_WORTH_READING = pattern(r"device|tensor|param|storage|state_dict|module|weight")
CLASS_WORTH_READING = pattern(
    r"Tensor|Param|Module|Model|Layer|Linear|Embedding|Block|Net|Device|Storage|Weight|Buffer"
)
"""Classes of other files are read for an annotation only if they may be of a kind we tell."""
MOVING_WORDS = (".to(", ".cpu(", ".cuda(", "deallocate_module", "resize_(", ".data =", "offload")
