"""Files for which it matters little from which device they were saved: those mapped into memory,
converted once, or read by an engine of TensorRT."""

from __future__ import annotations

import ast

from tensortrail.patterns import pattern
from tensortrail.rules.devices._of_this_run import taker
from tensortrail.rules.view import Module

_WRITES = ("torch.save", "torch.onnx.export", "safetensors.torch.save_file", "save_pretrained")
_CHOSEN = pattern(
    r"(^|_)(device|dev|cuda|gpu|npu|xpu)s?(_|$)|is_available|local_rank|current_accelerator"
)
"""Names by which code is told, or asks, where to compute."""
_MOVES = ("cuda", "to")


def is_from_the_cpu(module: Module, call: ast.Call) -> bool:
    if any(each.arg == "mmap" for each in call.keywords):
        return True
    return _is_an_engine(module, call) or module.once(_only_converts, module.top)


def _is_an_engine(module: Module, call: ast.Call) -> bool:
    """`TRTModule().load_state_dict(torch.load(path))`: it runs on the GPU it was built for."""
    owner = taker(module, call)
    if owner is None:
        return False
    made = (owner, *module.value_of(owner).origins)
    return any("TRTModule" in module.text(each) for each in made)


def _only_converts(module: Module, top: ast.AST) -> bool:
    """The file writes files, and nothing in it is told where to compute, or computes on a GPU."""
    if next(module.calls(*_WRITES), None) is None:
        return False
    words = (
        *(each.id for each in module.nodes(ast.Name)),
        *(each.attr for each in module.nodes(ast.Attribute)),
        *(each.arg for each in module.nodes(ast.arg)),
        *(each.arg or "" for each in module.nodes(ast.keyword)),
    )
    return not any(_CHOSEN.search(each) for each in words)
