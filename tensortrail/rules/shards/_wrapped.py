"""State dicts of wrappers, whose keys carry the name under which the wrapper holds its module."""

from __future__ import annotations

import ast

from tensortrail.rules import Module
from tensortrail.rules.shared.objects import called, receiver

PREFIXES = {
    "torch.compile": "_orig_mod.",
    "torch.nn.DataParallel": "module.",
    "torch.nn.parallel.DataParallel": "module.",
    "torch.nn.parallel.DistributedDataParallel": "module.",
    "torch.nn.parallel.distributed.DistributedDataParallel": "module.",
}
_ITSELF = ("to", "cuda", "cpu", "train", "eval", "half", "float", "bfloat16", "requires_grad_")
"""Methods of a module that give it back."""
_WRITERS = ("save", "save_file", "safe_save_file", "save_model")
_UNWRAPS = ("unwrap", "extract_model", "removeprefix", "replace", "consume_prefix", "_orig_mod")


def wrapped_by(module: Module, name: ast.Name) -> ast.Call | None:
    """The call that made the wrapper, if it is one on every path."""
    origins = module.value_of(name).origins
    made = [wrapper for each in origins if (wrapper := _wrapper(module, each)) is not None]
    return made[0] if made and len(made) == len(origins) else None


def _wrapper(module: Module, node: ast.AST) -> ast.Call | None:
    """`torch.compile(net)` of `torch.compile(net).to("cuda").train()`."""
    while isinstance(node, ast.Call):
        if module.qualified(node.func) in PREFIXES:
            return node
        owner = receiver(node)
        if owner is None or called(node) not in _ITSELF:
            return None
        node = owner
    return None


def writer_of(module: Module, call: ast.Call) -> ast.Call | None:
    """The call that writes the result into a file, at once or through a variable."""
    for up in module.ancestors(call):
        if isinstance(up, ast.Call) and called(up) in _WRITERS:
            return up
    assign = module.parent(call)
    if not isinstance(assign, ast.Assign) or not isinstance(assign.targets[0], ast.Name):
        return None
    name = assign.targets[0].id
    writers = (each for each in module.later(assign, ast.Call) if called(each) in _WRITERS)
    return next((each for each in writers if _is_given(each, name)), None)


def _is_given(writer: ast.Call, name: str) -> bool:
    return any(
        isinstance(each, ast.Name) and each.id == name
        for argument in writer.args
        for each in ast.walk(argument)
    )


def renames_keys(module: Module, call: ast.Call) -> bool:
    function = module.function_of(call)
    text = module.text(function) if function is not None else ""
    return any(word in text for word in _UNWRAPS)


def cuts_keys(module: Module, call: ast.Call, prefix: str) -> bool:
    """The function of the call renames keys, or cuts as much off them as the prefix is long."""
    return renames_keys(module, call) or any(
        isinstance(each.slice, ast.Slice)
        and isinstance(each.slice.lower, ast.Constant)
        and each.slice.lower.value == len(prefix)
        for each in module.nodes(ast.Subscript, module.function_of(call))
    )
