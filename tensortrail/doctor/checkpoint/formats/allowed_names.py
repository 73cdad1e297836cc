"""The names that a pickle of weights may import: those torch.load takes with weights_only=True."""

from __future__ import annotations

import re

from tensortrail.doctor.checkpoint.formats.element_types import TORCH
from tensortrail.doctor.checkpoint.formats.pickle_values import Name

_ELEMENTS = "BFloat16|Bool|Byte|Char|ComplexDouble|ComplexFloat|Double|Float|Half|Int|Long|Short"
_ALLOWED = re.compile(
    "|".join((
        r"_codecs\.encode|builtins\.(bytearray|complex|set)|collections\.(Counter|OrderedDict)",
        rf"torch\.(cuda\.)?({_ELEMENTS})Storage|torch\.Q(Int8|Int32|UInt8|UInt4x2|UInt2x4)Storage",
        rf"torch\.((cuda|sparse|cuda\.sparse)\.)?({_ELEMENTS})Tensor",
        r"torch\.(Size|Tensor|device|nn\.parameter\.Parameter)",
        r"torch\.storage\.(TypedStorage|UntypedStorage)|torch\.serialization\._get_layout",
        r"torch\._utils\._rebuild_(tensor|tensor_v2|tensor_v3|parameter|parameter_with_state)",
        r"torch\._utils\._rebuild_(qtensor|sparse_tensor|nested_tensor|wrapper_subclass)",
        r"torch\._utils\._rebuild_(meta_tensor_no_storage|device_tensor_from_(numpy|cpu_tensor))",
        r"torch\._tensor\._rebuild_from_type_v2",
        rf"torch\.({'|'.join(TORCH)}|u?int[1-7]|bits\d+(x\d+)?)",
        r"torch\.per_(tensor|channel)_(affine|symmetric|affine_float_qparams)",
    ))
)  # fmt: skip
_REGISTERED = re.compile(
    r"(torchao|torch\.distributed\.tensor|torch\.distributed\.device_mesh)\..*"
    r"|torch\.nested\._internal\.nested_tensor\..*"
)
"""Of libraries that tell torch of their classes when they are imported."""
_OLD_NAMES = {
    "__builtin__": "builtins", "copy_reg": "copyreg", "torch.tensor": "torch._tensor",
}  # fmt: skip
_RUNS_CODE = re.compile(
    r"(os|nt|posix|subprocess|sys|socket|shutil|pty|runpy|importlib|ctypes|code|codeop|commands"
    r"|webbrowser|multiprocessing|asyncio|http|urllib|requests|pickle|_pickle|marshal|pdb|bdb"
    r"|timeit|cProfile|profile|trace|pip|ensurepip|venv|tempfile|pathlib|io|_io|types|inspect"
    r"|operator|_operator|functools|linecache|zipimport|threading|signal|distutils|setuptools)"
    r"(\..*)?|builtins\.(eval|exec|compile|getattr|setattr|delattr|__import__|open|input|globals"
    r"|locals|vars|apply|execfile|breakpoint|map|filter|memoryview|type)|torch\.hub\..*"
    r"|torch\.(load|jit\.load)|torch\.serialization\.load|numpy\.(load|testing\..*|f2py\..*)"
    r"|copyreg\.extension.*|.*\.(system|popen|exec|eval|runstring)"
)


def full_name(name: Name) -> str:
    """As today's Python writes it."""
    return f"{_OLD_NAMES.get(name.module, name.module)}.{name.name}"


def is_allowed(name: Name) -> bool:
    name_ = full_name(name)
    return bool(_ALLOWED.fullmatch(name_) or _REGISTERED.fullmatch(name_))


def runs_code(name: Name) -> bool:
    """There is no use for it in a checkpoint but to run something."""
    return bool(_RUNS_CODE.fullmatch(full_name(name)))
