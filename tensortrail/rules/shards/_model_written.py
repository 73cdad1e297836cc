"""The model that a call writes to a file, and whether its weights have values there."""

from __future__ import annotations

import ast

from tensortrail.patterns import pattern
from tensortrail.rules import Kind, Module
from tensortrail.rules.shared.objects import keyword

_EMPTY = pattern(r"init_empty_weights|init_on_device|torch\.device\(.meta.\)|device\(.meta.\)")
_FILLS = pattern(r"from_pretrained|load_checkpoint|to_empty|materiali[sz]e|dispatch")
_READS = frozenset(
    {
        "state_dict",
        "eval",
        "train",
        "requires_grad_",
        "half",
        "bfloat16",
        "float",
        "save_pretrained",
    }
)
"""Methods of a model that give its weights no data."""
_WRITERS = ("torch.save", "safetensors.torch.save_file", "safetensors.torch.save_model",
            "accelerate.utils.save")  # fmt: skip
_DISPATCHES = ("accelerate.dispatch_model", "accelerate.big_modeling.dispatch_model")


def written(module: Module, call: ast.Call) -> ast.expr | None:
    """The model that a call writes to a file."""
    if is_save_pretrained(call) and isinstance(call.func, ast.Attribute):
        return None if keyword(call, "state_dict") is not None else call.func.value
    if module.qualified(call.func) not in _WRITERS:
        return None
    given = module.argument(call, 0, "obj") or module.argument(call, 0, "tensors")
    if given is None:
        return None
    origins = module.value_of(given).origins
    if isinstance(given, ast.Name) and len(origins) == 1:
        if _is_changed(module, given, call):
            return None
        given = origins[0]
    if isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute):
        if given.func.attr == "state_dict":
            return given.func.value
        return None
    return given if module.kind_of(given) is Kind.MODULE else None


def keeps_values(module: Module, by: ast.AST | None) -> bool:
    """`dispatch_model` to GPUs alone leaves the weights where they can be read."""
    return isinstance(by, ast.Call) and _dispatches(module, by) and not _to_disk(by)


def dispatched(module: Module, written: ast.expr) -> ast.Call | None:
    """The call that gave the model back, with some of its weights on disk."""
    origins = module.value_of(written).origins
    sent = [each for each in origins if isinstance(each, ast.Call) and _dispatches(module, each)]
    return sent[0] if len(sent) == len(origins) and sent and _to_disk(sent[0]) else None


def _dispatches(module: Module, call: ast.Call) -> bool:
    return module.qualified(call.func) in _DISPATCHES


def _to_disk(call: ast.Call) -> bool:
    return keyword(call, "offload_dir") is not None


def is_save_pretrained(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "save_pretrained"


def _is_changed(module: Module, weights: ast.Name, writer: ast.Call) -> bool:
    """Entries of the dict are set, or it is handed to something else, before it is written."""
    for node in module.earlier(writer, ast.Name):
        if node.id != weights.id or not isinstance(node.ctx, ast.Load):
            continue
        up = module.parent(node)
        if isinstance(up, ast.Call) or isinstance(getattr(up, "ctx", None), (ast.Store, ast.Del)):
            return True
        if isinstance(up, ast.Attribute) and up.attr in ("update", "pop", "setdefault"):
            return True
    return False


def built_empty(module: Module, written: ast.expr, call: ast.Call) -> ast.expr | None:
    """The construction under an empty-weights context that nothing has filled since."""
    origins = module.value_of(written).origins
    if len(origins) != 1 or not isinstance(written, ast.Name):
        return None
    built = origins[0]
    if _FILLS.search(module.text(built)):
        return None
    around = [module.qualified(each) + module.text(each) for each in module.contexts_of(built)]
    if not any(_EMPTY.search(each) for each in around):
        return None
    for use in module.later(built, ast.Name):
        before = (use.lineno, use.col_offset) < (call.lineno, call.col_offset)
        if use.id == written.id and before and not _only_reads(module, use):
            return None
    return built


def _only_reads(module: Module, use: ast.Name) -> bool:
    if isinstance(use.ctx, ast.Store):
        return False
    up = module.parent(use)
    return isinstance(up, ast.Attribute) and up.attr in _READS
