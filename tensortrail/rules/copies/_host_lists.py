"""Copies to the CPU that are collected in a list or dict, and the lines that read its elements."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules import Module
from tensortrail.rules.copies._host_reads import read_in, waits
from tensortrail.rules.shared.objects import called, receiver, root_of

_THROUGH = ("values", "items")
_JOINS = ("torch.stack", "torch.cat", "numpy.stack", "numpy.concatenate")


def early_reads_of_elements(module: Module, copy: ast.Call) -> Iterator[ast.expr]:
    """The first read of an element of the list that the copy is put into, with no wait before."""
    collected = _collected(module, copy)
    if collected is None or _waited_at_each_turn(module, copy, collected[1]):
        return
    name, statement = collected
    key = _key(module, copy)
    own = {name, *_element_names(module, name, statement)}
    for node in module.later(statement, ast.expr):
        if isinstance(node, ast.Call) and waits(module, node, copy) and not _is_of(node, own):
            return
        if not isinstance(node, ast.Name) or node.id != name:
            continue
        if isinstance(node.ctx, ast.Store):
            return
        read = None if _is_of_another_key(module, node, key) else _read(module, node)
        if read is not None:
            yield read
            return


def _key(module: Module, copy: ast.Call) -> ast.expr | None:
    """`"dones"` of `parts["dones"] = copy`."""
    up = module.parent(copy)
    target = up.targets[0] if isinstance(up, ast.Assign) else None
    return target.slice if isinstance(target, ast.Subscript) else None


def _is_of_another_key(module: Module, use: ast.Name, key: ast.expr | None) -> bool:
    """`parts["valids"]`: both keys are written out, and differ."""
    up = module.parent(use)
    if not isinstance(up, ast.Subscript) or not isinstance(up.slice, ast.Constant):
        return False
    return isinstance(key, ast.Constant) and key.value != up.slice.value


def _waited_at_each_turn(module: Module, copy: ast.Call, loop: ast.stmt) -> bool:
    """Under no other condition than the copy is made, and after it."""
    known = {(guard.test, guard.holds) for guard in module.guards_of(copy)}
    return any(
        (call.lineno, call.col_offset) > (copy.lineno, copy.col_offset)
        and waits(module, call, copy)
        and known.issuperset((guard.test, guard.holds) for guard in module.guards_of(call))
        for call in module.nodes(ast.Call, loop)
    )


def _collected(module: Module, put: ast.expr) -> tuple[str, ast.stmt] | None:
    """`parts.append(copy)`, `parts[i] = copy`, `parts = [copy for ...]`, and after which statement
    the list is complete."""
    up, name = module.parent(put), None
    if isinstance(up, ast.Assign) and isinstance(up.targets[0], ast.Name):
        handed = _handed_on(module, up, up.targets[0].id)
        return _collected(module, handed) if handed is not None else None
    if isinstance(up, ast.Call) and called(up) == "append" and put in up.args:
        name = receiver(up)
    elif isinstance(up, ast.Assign) and isinstance(up.targets[0], ast.Subscript):
        name = up.targets[0].value
    elif isinstance(up, (ast.ListComp, ast.DictComp)):
        above = module.parent(up)
        name = above.targets[0] if isinstance(above, ast.Assign) else None
    if not isinstance(name, ast.Name):
        return None
    return name.id, _outermost_loop(module, module.statement_of(put), name.id)


def _handed_on(module: Module, assign: ast.Assign, name: str) -> ast.Name | None:
    """`copy` of `parts.append(copy)`, if that is the next thing done with the name."""
    uses = (each for each in module.later(assign, ast.Name) if each.id == name)
    use = next(uses, None)
    up = module.parent(use) if use is not None else None
    return use if isinstance(up, ast.Call) and called(up) == "append" else None


def _outermost_loop(module: Module, statement: ast.stmt, name: str) -> ast.stmt:
    """The loop that fills the list, unless each round begins a new one."""
    found = statement
    for up in module.ancestors(statement):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
        if isinstance(up, (ast.For, ast.While)):
            bound = (each for each in module.nodes(ast.Name, up) if each.id == name)
            if any(isinstance(each.ctx, ast.Store) for each in bound):
                break
            found = up
    return found


def _element_names(module: Module, name: str, statement: ast.stmt) -> Iterator[str]:
    """`each` of `for each in parts`."""
    for use in module.later(statement, ast.Name):
        target, _ = _looped(module, use) if use.id == name else (None, None)
        if isinstance(target, ast.Name):
            yield target.id


def _is_of(call: ast.Call, own: set[str]) -> bool:
    """`parts[0].item()` reads an element and waits for nothing."""
    root = root_of(call)
    return isinstance(root, ast.Name) and root.id in own


def _read(module: Module, use: ast.Name) -> ast.expr | None:
    """What needs the values of an element: `parts[0].item()`, `[x.numpy() for x in parts]`."""
    up = module.parent(use)
    if isinstance(up, ast.Subscript) and up.value is use:
        return read_in(module, use)
    if isinstance(up, ast.Call) and use in up.args[:1] and module.qualified(up.func) in _JOINS:
        return up
    target, loop = _looped(module, use)
    if not isinstance(target, ast.Name) or loop is None:
        return None
    for element in module.nodes(ast.Name, loop):
        if element.id == target.id and isinstance(element.ctx, ast.Load):
            return read_in(module, element)
    return None


def _looped(module: Module, use: ast.Name) -> tuple[ast.expr | None, ast.AST | None]:
    """The name that each element has in the loop over the list, and that loop."""
    over: ast.expr = use
    up = module.parent(use)
    last = False
    if isinstance(up, ast.Attribute) and up.attr in _THROUGH:
        call = module.parent(up)
        if isinstance(call, ast.Call):
            over, last, up = call, up.attr == "items", module.parent(call)
    elif isinstance(up, ast.Call) and called(up) == "enumerate":
        over, last, up = up, True, module.parent(up)
    if not isinstance(up, (ast.For, ast.comprehension)) or up.iter is not over:
        return None, None
    target = up.target
    if last:
        target = target.elts[-1] if isinstance(target, ast.Tuple) else target
    return target, up if isinstance(up, ast.For) else module.parent(up)
