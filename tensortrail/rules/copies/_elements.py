"""Elements that a block fills on a side stream, and who reads them before the stream is done."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules import Module
from tensortrail.rules.copies._streams import SideBlock, is_stream_context
from tensortrail.rules.shared.objects import called, given, receiver
from tensortrail.rules.shared.values import reads_values

_SIDE_WAITS = ("wait_event", "wait_stream")
_WAIT_WORDS = ("sync", "wait", "barrier", "join")


def early_elements(
    module: Module, block: SideBlock
) -> Iterator[tuple[ast.Subscript, ast.Subscript]]:
    """An element that the block fills, and one of the same list that is read too early."""
    said: set[str] = set()
    for filled in _filled(module, block):
        name = module.text(filled.value)
        use = None if name in said else _early_use(module, block, filled)
        if use is not None:
            said.add(name)
            yield filled, use


def _filled(module: Module, block: SideBlock) -> Iterator[ast.Subscript]:
    """`parts[i] = ...`: an element per round, not one that is named."""
    for element in module.nodes(ast.Subscript, block.node):
        plain = isinstance(element.value, (ast.Name, ast.Attribute))
        if isinstance(element.ctx, ast.Store) and plain and _is_counted(element.slice):
            yield element


def _is_counted(index: ast.expr) -> bool:
    return isinstance(index, (ast.Name, ast.BinOp))


def _early_use(module: Module, block: SideBlock, filled: ast.Subscript) -> ast.Subscript | None:
    end, name = block.node.end_lineno or 0, module.text(filled.value)
    for use in module.later(block.node, ast.Subscript):
        if use.lineno <= end or module.text(use.value) != name:
            continue
        if _on_a_stream(module, use) or not _is_counted(use.slice):
            continue
        if _is_work(module, use):
            return None if _waited(module, block, use) else use
    return None


def _on_a_stream(module: Module, node: ast.AST) -> bool:
    return any(is_stream_context(module, each) for each in module.contexts_of(node))


def _is_work(module: Module, use: ast.Subscript) -> bool:
    """A kernel reads it: an operator, a method, a function of torch."""
    if not isinstance(use.ctx, ast.Load) or not reads_values(module, use):
        return False
    up = module.parent(use)
    if isinstance(up, ast.Attribute):
        return isinstance(module.parent(up), ast.Call)
    if isinstance(up, ast.Call):
        return use in up.args and module.qualified(up.func).startswith("torch.")
    return isinstance(up, (ast.BinOp, ast.AugAssign)) and module.value_of(use).is_tensor


def _waited(module: Module, block: SideBlock, use: ast.AST) -> bool:
    """Somebody else than the side stream itself waits between the block and the use."""
    begin, end = block.node.end_lineno or 0, getattr(use, "lineno", 0)
    function = module.function_of(block.node)
    return any(
        begin < call.lineno <= end and _waits(module, call, block)
        for call in module.nodes(ast.Call, function)
    )


def _waits(module: Module, call: ast.Call, block: SideBlock) -> bool:
    last = called(call)
    if not any(word in last for word in _WAIT_WORDS):
        return False
    who = receiver(call)
    if last not in _SIDE_WAITS or who is None:
        return True
    if _same(module, who, block.stream):
        return False
    if last == "wait_event":
        return True
    return any(_same(module, each, block.stream) for each in given(call))


def _same(module: Module, one: ast.expr, other: ast.expr) -> bool:
    """The same stream, as far as is known, or streams of one list."""
    forms = {module.text(each) for each in _forms(module, one)}
    return any(module.text(each) in forms for each in _forms(module, other))


def _forms(module: Module, stream: ast.expr) -> list[ast.expr]:
    """The stream, what its name was bound to, and the list it is taken from with its members."""
    forms: list[ast.expr] = [stream, *module.value_of(stream).origins]
    if any("current_stream" in module.text(each) for each in forms):
        return [stream]
    for each in tuple(forms):
        if isinstance(each, ast.Subscript):
            origins = module.value_of(each.value).origins
            lists = (origin for origin in origins if isinstance(origin, ast.List))
            members = (member for shown in lists for member in shown.elts)
            forms += [each.value, *(m for m in members if "current_stream" not in module.text(m))]
    return forms
