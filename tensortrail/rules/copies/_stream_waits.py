"""Who waits for the work of a side stream."""

from __future__ import annotations

import ast
import re

from tensortrail.rules import Module
from tensortrail.rules.copies._streams import NOT_A_SIDE_STREAM, STREAM_CONTEXT, SideBlock
from tensortrail.rules.shared.functions import names_of_parameters
from tensortrail.rules.shared.objects import (
    all_given,
    called,
    name_of,
    names_in,
    receiver,
    root_of,
)

_WAITS = re.compile(r"sync|wait|barrier|fence", re.IGNORECASE)


def waits_for(module: Module, call: ast.Call, block: SideBlock) -> bool:
    """The call makes somebody wait for the work of the block, or may do so out of sight."""
    last = called(call)
    if last in ("record", "record_event", "record_stream"):
        return _concerns(module, call, block) or not _names_a_stream(module, call)
    if not _WAITS.search(last):
        return _is_handed(module, call, block)
    if receiver(call) is not None and name_of(module, _waiter(call)) == block.name:
        return last != "wait_stream" and last != "wait_event"
    return _concerns(module, call, block) or not _names_a_stream(module, call)


def _waiter(call: ast.Call) -> ast.expr:
    """`s` of `s.synchronize()` and of `s.record_event().wait()`."""
    node = receiver(call) or call
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    return node


def _concerns(module: Module, call: ast.Call, block: SideBlock) -> bool:
    names = {name_of(module, each) for each in call.args}
    names |= {name_of(module, each.value) for each in call.keywords}
    return block.name in names or name_of(module, _waiter(call)) == block.name


def _names_a_stream(module: Module, call: ast.Call) -> bool:
    """It is about a stream that is named, and so about no other one."""
    given = all_given(call)
    if called(call) in ("wait_stream", "record"):
        return bool(given)
    owner = receiver(call)
    if called(call) == "synchronize" and isinstance(owner, ast.Call):
        return called(owner) in NOT_A_SIDE_STREAM  # `torch.cuda.current_stream().synchronize()`
    waiter = _waiter(call)
    return isinstance(waiter, (ast.Name, ast.Attribute)) and "stream" in ast.unparse(waiter).lower()


def _is_handed(module: Module, call: ast.Call, block: SideBlock) -> bool:
    """The stream is given to somebody else, who may wait for it."""
    if any(item.context_expr is call for item in block.node.items):
        return False
    given = all_given(call)
    handed = any(name_of(module, each) == block.name for each in given)
    return handed and not STREAM_CONTEXT.match(called(call))


def class_waits(module: Module, block: SideBlock) -> bool:
    """Some other method waits for this stream; for one that is handed in, or kept by another
    object, its owner may."""
    root = root_of(block.stream)
    function = module.function_of(block.node)
    if _is_of_another_object(block.stream, root):
        return True
    if isinstance(block.stream, ast.Name) and function is not None:
        made_of = (block.stream, *module.value_of(block.stream).origins)
        if any(names_in(each) & names_of_parameters(function) for each in made_of):
            return True
    cls = module.class_of(block.node)
    around = cls if isinstance(root, ast.Name) and root.id == "self" else None
    last = block.name.rpartition(".")[2]
    return any(
        (
            "wait_stream" in module.text(call.func)
            and any(name_of(module, each).rpartition(".")[2] == last for each in call.args)
        )
        or (called(call) == "synchronize" and last in _synchronized(module, call))
        for call in module.nodes(ast.Call, around)
    )


def _synchronized(module: Module, call: ast.Call) -> set[str]:
    """The last names of what it waits for: `s.synchronize()`, `torch.cuda.synchronize(s)`."""
    owner = receiver(call)
    waited = [*call.args, owner if owner is not None else call]
    return {name_of(module, each).rpartition(".")[2] for each in waited}


def _is_of_another_object(stream: ast.expr, root: ast.expr) -> bool:
    """`batch.stream`: whoever is given the batch has it."""
    is_own = isinstance(root, ast.Name) and root.id in ("self", "cls")
    return isinstance(stream, ast.Attribute) and not is_own
