"""What the other functions of a file move to a device before they use it, and one does not."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Sequence

from tensortrail.rules.devices.shared.moves.moved_beside import LeftAlone, moved_to
from tensortrail.rules.shared.moves import MOVES
from tensortrail.rules.shared.objects import last_name
from tensortrail.rules.view import FunctionNode, Module

_LEADS_AWAY = MOVES | {"type_as", "item", "tolist", "numpy", "shape", "size"}
_NO_USES = frozenset({"len", "print", "isinstance", "range", "zip", "enumerate", "type"})
_OF_PYTHON = frozenset({"zip", "enumerate", "getattr", "dict", "list", "tuple", "copy", "deepcopy"})

Key = tuple[str, str]
Where = tuple[FunctionNode, ast.expr]


def left_unlike_elsewhere(module: Module, moves: Sequence[ast.Call]) -> Iterator[LeftAlone]:
    """`batch["image"]`, or what one function gives, that one function of the file does not move."""
    moved: dict[Key, list[ast.Call]] = {}
    for move in moves:
        function, key = module.function_of(move), _key(module, move)
        if function is not None and key is not None:
            moved.setdefault(key, []).append(move)
    if not moved:
        return
    places: dict[Key, list[Where]] = {}
    for function, key, node in _all(module, moved):
        places.setdefault(key, []).append((function, node))
    for key, found in places.items():
        makers = {module.function_of(each) for each in moved[key]}
        left = [(function, node) for function, node in found if function not in makers]
        if len({function for function, _ in left}) != 1:
            continue
        unmoved = [node for _, node in left if _is_used(module, node)]
        if len(unmoved) == len(left):
            yield LeftAlone(unmoved[0], moved[key], moved_to(module, moved[key][0]))


def _key(module: Module, move: ast.Call) -> Key | None:
    """What is moved, if another function can have the like of it."""
    value = move.func.value if isinstance(move.func, ast.Attribute) else None
    if isinstance(value, ast.Name):
        return _bound_key(module, module.function_of(move), value.id)
    return _key_of(module, value) if value is not None else None


def _key_of(module: Module, node: ast.expr) -> Key | None:
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        is_name = isinstance(node.value, ast.Name) and isinstance(node.slice.value, str)
        return ("member", module.text(node)) if is_name else None
    if isinstance(node, ast.Call) and _is_of_the_project(module, node):
        return "result", module.text(node.func)
    return None


def _bound_key(module: Module, function: FunctionNode | None, name: str) -> Key | None:
    """`ids` of `ids, mask = self.encoded(text)`: the first of what that gives."""
    return module.once(_bound_keys, function).get(name) if function is not None else None


def _bound_keys(module: Module, function: FunctionNode) -> dict[str, Key | None]:
    """By name, what it is bound to first."""
    found: dict[str, Key | None] = {}
    for statement in module.nodes(ast.Assign, function):
        for target, at in _pairs(statement):
            if target not in found:
                found[target] = value_key(module, statement.value, at)
    return found


def _pairs(statement: ast.Assign) -> Iterator[tuple[str, int]]:
    """The names that an assignment binds, and which part of the value each is; -1 for all."""
    target = statement.targets[0]
    if isinstance(target, ast.Name):
        yield target.id, -1
    elif isinstance(target, ast.Tuple):
        yield from ((e.id, at) for at, e in enumerate(target.elts) if isinstance(e, ast.Name))


def value_key(module: Module, value: ast.expr, at: int) -> Key | None:
    key = _key_of(module, value)
    return (key[0], f"{key[1]}[{at}]" if at >= 0 else key[1]) if key is not None else None


def _is_of_the_project(module: Module, call: ast.Call) -> bool:
    name = module.qualified(call.func)
    last = name.rpartition(".")[2]
    if name.startswith(("torch", "numpy", "super")) or last in _LEADS_AWAY | _OF_PYTHON:
        return False
    plain = isinstance(call.func, ast.Name) or (
        isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, (ast.Name, ast.Attribute))
    )
    return plain and not last[:1].isupper()


def _all(module: Module, moved: Container[Key]) -> Iterator[tuple[FunctionNode, Key, ast.expr]]:
    for node in module.nodes(ast.Subscript):
        function, key = module.function_of(node), _key_of(module, node)
        if function is None or key is None or key not in moved:
            continue
        if isinstance(node.ctx, ast.Load):
            yield function, key, node
    for call in module.nodes(ast.Call):
        function, key = module.function_of(call), _key_of(module, call)
        above = module.parent(call)
        if function is None or key is None:
            continue
        if not isinstance(above, ast.Assign):
            if key in moved:
                yield function, key, call
            continue
        for name, at in _pairs(above):
            bound = value_key(module, call, at)
            if bound is not None and bound in moved:
                reads = module.once(_reads, function).get(name, ())
                yield from ((function, bound, each) for each in reads)


def _reads(module: Module, function: FunctionNode) -> dict[str, list[ast.Name]]:
    found: dict[str, list[ast.Name]] = {}
    for each in module.nodes(ast.Name, function):
        if isinstance(each.ctx, ast.Load):
            found.setdefault(each.id, []).append(each)
    return found


def _is_used(module: Module, node: ast.expr) -> bool:
    """As a tensor, as far as can be seen, and as it is."""
    above = module.parent(node)
    if _is_moved_in_part(module, node):
        return False
    if isinstance(above, ast.Attribute):
        leads_away = above.attr in _LEADS_AWAY or above.attr == "device"
        return not leads_away and not _is_only_counted(module, above)
    if isinstance(above, ast.keyword):
        return True
    if isinstance(above, ast.Call):
        return node is not above.func and not _names_no_use(above)
    return isinstance(above, (ast.BinOp, ast.Assign))


def _is_only_counted(module: Module, part: ast.Attribute) -> bool:
    """`len(tokenizer(text).input_ids)`."""
    above = module.parent(part)
    return isinstance(above, ast.Call) and part in above.args and _names_no_use(above)


def _names_no_use(call: ast.Call) -> bool:
    return last_name(call.func) in _NO_USES


def _is_moved_in_part(module: Module, node: ast.expr) -> bool:
    """`tokenizer(text).input_ids.to(device)`: of a result its part is moved."""
    above = module.parent(node)
    while isinstance(above, (ast.Attribute, ast.Subscript, ast.Call)) and node is not above:
        if isinstance(above, ast.Call) and node is not above.func:
            return False
        if isinstance(above, ast.Subscript) and node is not above.value:
            return False
        if isinstance(above, ast.Attribute) and above.attr in MOVES:
            return True
        node, above = above, module.parent(above)
    return False
