"""Expressions that stand for the address of a tensor's storage."""

from __future__ import annotations

import ast
import os
import re

from tensortrail.findings import Severity
from tensortrail.patterns import pattern
from tensortrail.rules import Event, Kind, Module, Timeline
from tensortrail.rules.shared.functions import called_here, matched
from tensortrail.rules.shared.lines import reader_of

_DEEPEST = 2
"""Functions that give the address they got from another one."""
# Functions of other files and libraries: what they give is read off their public names.
_BY_NAME = pattern(r"^_?(get_)?(storage_ptr|unique_id|storage_id|unique_storage_id)$")

ALSO_ASKED = (
    "numel", "nbytes", "storage_offset", "!= 0", "is_cuda", "device ==", "is_fake",
    "FakeTensor", "__tensor_flatten__", "is_traceable_wrapper_subclass", "type(", "element_size",
    "storage_size", ".size()",
)  # fmt: skip
"""Words of a condition that rules out tensors without a storage."""
_POINTER = r"(data_ptr|storage_ptr)\("
_COMPARED = pattern(rf"{_POINTER}[^=!<>]*\)\s*(==|(not\s+)?in\s)|==[^=]*{_POINTER}")
_KEY = pattern(rf"(\w\[|\{{|\b(add|get|setdefault|pop|discard|remove)\()[^\]}}]*{_POINTER}")
_STORAGES = ("untyped_storage", "storage", "_typed_storage")


def pointed_at(module: Module, node: ast.expr, depth: int = _DEEPEST) -> ast.expr | None:
    """The tensor of `t.data_ptr()`, `t.untyped_storage().data_ptr()` or `storage_ptr(t)`,
    or of a name bound to one of them; None for anything else."""
    if isinstance(node, ast.NamedExpr):
        node = node.value
    if isinstance(node, ast.Name):
        origins = module.value_of(node).origins
        if any(isinstance(each, ast.Name) for each in origins):
            return None
        made = [each for each in origins if not isinstance(each, ast.Constant)]
        found = [pointed_at(module, each, depth) for each in made]
        return next((each for each in found if each is not None), None)
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr == "data_ptr":
        inner = node.func.value
        called = inner.func if isinstance(inner, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr in _STORAGES:
            return called.value
        return None if module.kind_of(inner) is Kind.STORAGE else inner
    if len(node.args) != 1:
        return None
    name = module.qualified(node.func).rpartition(".")[2]
    return (
        node.args[0] if _BY_NAME.match(name) or _gives_it_of_its_own(module, node, depth) else None
    )


def _gives_it_of_its_own(module: Module, call: ast.Call, depth: int) -> bool:
    """A function of the file that gives such an expression of what it is given."""
    function = called_here(module, call) if depth else None
    if function is None:
        return False
    given = [name for name, _ in matched(function, call)]
    return any(
        isinstance(subject, ast.Name) and subject.id in given
        for each in module.nodes(ast.Return, function)
        if each.value is not None
        and (subject := pointed_at(module, each.value, depth - 1)) is not None
    )


def is_plain(module: Module, tensor: ast.expr) -> bool:
    """Known to have a storage of its own: an inner buffer, a fresh tensor, a narrowed type."""
    if isinstance(tensor, ast.Attribute) and re.match(
        r"_(data|rowwise|columnwise|scale|local_shard|local_tensor|tensor)", tensor.attr
    ):
        return True
    text = module.text(tensor)
    return "storage" in text.lower() or "static" in text


def proves_sameness(timeline: Timeline, event: Event) -> bool:
    """The line that got the address compares by it or makes a key of it, and asks nothing else."""
    line = _reading_line(timeline, event)
    if line.startswith("assert") or any(word in line for word in (*ALSO_ASKED, "meta")):
        return False
    return bool(_COMPARED.search(line)) or _makes_key(timeline, event)


def where_read(event: Event) -> str:
    by = event.by
    return f"at {os.path.basename(by.file)}:{by.line}" if by else "here"


def harm(timeline: Timeline, event: Event, why: str) -> Severity:
    """Of a key most: whatever is kept under it belongs to the last of them. A library that asks
    whether the address is known may know no 0."""
    if why == "it is empty":
        return Severity.NOTE
    if _makes_key(timeline, event):
        return Severity.ERROR
    return Severity.NOTE if event.by else Severity.WARNING


def _makes_key(timeline: Timeline, event: Event) -> bool:
    return bool(_KEY.search(_reading_line(timeline, event)))


def _reading_line(timeline: Timeline, event: Event) -> str:
    at = reader_of(event)
    return timeline.line(at) if at else ""
