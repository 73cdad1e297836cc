"""Copies to the CPU that nobody waits for, and the lines that read them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.rules import Module
from tensortrail.rules.devices.shared.written_for.callers import comes_from_the_cpu
from tensortrail.rules.places import Where
from tensortrail.rules.shared.objects import called, is_true, keyword, receiver

_READS = frozenset(
    "tolist numpy item any all sum max min mean argmax argmin nonzero equal allclose".split()
)
_READERS = frozenset("int float bool print list".split())
_WAITS = re.compile(r"sync|wait|barrier|join|result", re.IGNORECASE)
_BLOCKS = frozenset("item tolist cpu".split())
_LOOKS_UP = frozenset(("pop", "get"))


def unfinished(module: Module, node: ast.expr) -> ast.Call | None:
    """The `x.to("cpu", non_blocking=True)` that gave the value."""
    for each in (node, *module.value_of(node).origins):
        if not isinstance(each, ast.Call) or not is_true(keyword(each, "non_blocking")):
            continue
        subject = receiver(each)
        if called(each) != "to" or subject is None:
            continue
        arrives, leaves = module.placement_at(each).device, module.placement_at(subject).device
        if arrives == "cpu" != leaves and not _is_there(module, subject):
            return each
    return None


def _is_there(module: Module, subject: ast.expr) -> bool:
    """All callers of the function have what it follows on the CPU: nothing is copied."""
    function = module.function_of(subject)
    held = module.places(function).seen.get(subject) if function is not None else None
    if function is None or held is None or not held.places:
        return False
    return all(
        at.where is Where.OF and comes_from_the_cpu(module, function, at.subject)
        for at in held.places
    )


def read_in(module: Module, use: ast.expr) -> ast.expr | None:
    """The expression that needs the values: `x.tolist()`, `int(x)`, `x[0].item()`."""
    node: ast.AST = use
    up = module.parent(node)
    while isinstance(up, ast.Subscript) and up.value is node:
        node, up = up, module.parent(up)
    if isinstance(up, ast.Attribute) and up.attr in _READS:
        call = module.parent(up)
        return call if isinstance(call, ast.Call) and call.func is up else None
    if isinstance(up, ast.Call) and node in up.args:
        dotted = module.qualified(up.func)
        if dotted in _READERS or dotted.startswith("numpy."):
            return up
    return None


def waits(module: Module, call: ast.Call, copy: ast.Call) -> bool:
    """The CPU waits here, for this copy or for all that was queued before."""
    if call is copy:
        return False
    if _WAITS.search(called(call)):
        return True
    blocking = called(call) == "to" and not is_true(keyword(call, "non_blocking"))
    if called(call) in _BLOCKS or blocking:
        subject = receiver(call)
        place = module.placement_at(call).device
        known = module.placement_at(subject).device if subject is not None else ""
        return known != "cpu" and (called(call) != "to" or place == "cpu")
    return False


def early_reads(module: Module, copy: ast.Call) -> Iterator[ast.expr]:
    """Reads of the copy at once, `x.to("cpu", non_blocking=True).numpy()`, or of the variable that
    it is assigned to, with no wait before them."""
    at_once = read_in(module, copy)
    if at_once is not None and not _is_read_after_a_wait(module, copy, at_once):
        yield at_once
    assign = module.parent(copy)
    if isinstance(assign, ast.Assign) and isinstance(assign.targets[0], ast.Name):
        yield from _reads_of(module, copy, assign.targets[0].id)


def _is_read_after_a_wait(module: Module, copy: ast.Call, read: ast.expr) -> bool:
    """`rows = x.to("cpu", non_blocking=True).numpy()` only gives the memory another form; what
    reads `rows` may come behind a wait further down."""
    if not isinstance(read, ast.Call) or called(read) != "numpy":
        return False
    later = module.later(module.statement_of(copy), ast.Call)
    return any(waits(module, each, copy) for each in later)


def early_reads_of_pinned(module: Module, copy: ast.Call) -> Iterator[ast.expr]:
    """Reads of `host` behind `host.copy_(x, non_blocking=True)`, where `host` is pinned memory: a
    copy to other memory of the CPU is done when the call returns."""
    host = receiver(copy)
    if not isinstance(host, ast.Name) or not is_true(keyword(copy, "non_blocking")):
        return
    sources = [module.placement_at(each).device for each in copy.args[:1]]
    if "cpu" not in sources and _is_pinned(module, host):
        yield from _reads_of(module, copy, host.id)


def _is_pinned(module: Module, host: ast.Name) -> bool:
    made = module.value_of(host).origins
    return bool(made) and all(
        isinstance(each, ast.Call)
        and (called(each) == "pin_memory" or is_true(keyword(each, "pin_memory")))
        for each in made
    )


def _reads_of(module: Module, copy: ast.Call, name: str) -> Iterator[ast.expr]:
    for node in module.later(module.statement_of(copy), ast.expr):
        if isinstance(node, ast.Name) and node.id == name:
            if not isinstance(node.ctx, ast.Load):
                return
            read = read_in(module, node)
            if read is not None:
                yield read
                return
        elif isinstance(node, ast.Call) and not _is_about(node, name) and waits(module, node, copy):
            return


def _is_about(call: ast.Call, name: str) -> bool:
    """`x.tolist()` reads the copy itself and waits for nothing."""
    subject = receiver(call)
    while isinstance(subject, (ast.Subscript, ast.Attribute)):
        subject = subject.value
    return isinstance(subject, ast.Name) and subject.id == name


def kept_keys(module: Module, cls: ast.ClassDef) -> dict[str, ast.Call]:
    """Keys of dicts in which methods of the class put such a copy, handed on or not."""
    found: dict[str, ast.Call] = {}
    for display in module.nodes(ast.Dict, cls):
        for key, value in zip(display.keys, display.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                copy = unfinished(module, value) or _handed(module, cls, value)
                if copy is not None:
                    found[key.value] = copy
    return found


def _handed(module: Module, cls: ast.ClassDef, value: ast.expr) -> ast.Call | None:
    """The copy that another method of the class gives as this parameter."""
    function = module.function_of(value)
    if not isinstance(value, ast.Name) or function is None:
        return None
    names = [each.arg for each in function.args.args if each.arg not in ("self", "cls")]
    if value.id not in names:
        return None
    position = names.index(value.id)
    for call in module.calls(function.name, inside=cls):
        given = module.argument(call, position, value.id)
        copy = unfinished(module, given) if given is not None else None
        if copy is not None:
            return copy
    return None


def lookups(module: Module, cls: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    """`record["key"]` and `record.pop("key")` that read a value."""
    for item in module.nodes(ast.Subscript, cls):
        if isinstance(item.ctx, ast.Load) and isinstance(item.slice, ast.Constant):
            yield str(item.slice.value), item
    for call in module.nodes(ast.Call, cls):
        if called(call) in _LOOKS_UP and call.args and isinstance(call.args[0], ast.Constant):
            yield str(call.args[0].value), call


def waits_in(module: Module, function: ast.AST, copy: ast.Call) -> bool:
    return any(
        _WAITS.search(called(call)) or called(call) == "cpu"
        for call in module.nodes(ast.Call, function)
        if call is not copy
    )
