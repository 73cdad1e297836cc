"""What is moved beside each other: members of one call or container, statements of one block,
names that were bound together."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tensortrail.rules.devices.shared.written_for.makers import outermost
from tensortrail.rules.shared import objects
from tensortrail.rules.shared.given_devices import said_device
from tensortrail.rules.shared.moves import MOVERS
from tensortrail.rules.unchanging import unchanging
from tensortrail.rules.view import FunctionNode, Module


@unchanging(frozen=True, slots=True)
class LeftAlone:
    """An expression that is not moved, beside others of its form that are."""

    node: ast.AST
    moved: Sequence[ast.Call]
    device: str


def left_beside(module: Module, moves: Sequence[ast.Call]) -> Iterator[LeftAlone]:
    seen: set[tuple[ast.AST, int]] = set()
    for group in _groups(module, moves):
        if group and (group[0], len(group)) not in seen:
            seen.add((group[0], len(group)))
            yield from _odd_ones(module, group)
    for function in outermost(module, moves):
        yield from _bound_together(module, function, moves)


def moved_to(module: Module, node: ast.expr) -> str:
    """The device that `x.to(device)` moves to, as it is written; "" if it is no such call."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return ""
    device = said_device(module, node) if node.func.attr == "to" else None
    said = module.text(device) if device is not None else ""
    of_a_kernel = device is not None and module.qualified(device).startswith("triton.")
    return "" if "type" in said or of_a_kernel else said


def _groups(module: Module, moves: Sequence[ast.Call]) -> Iterator[Sequence[ast.expr]]:
    """The members of what a move is a member of, and the values of the block it is bound in."""
    for move in moves:
        around = module.parent(move)
        if isinstance(around, ast.keyword):
            around = module.parent(around)
        if isinstance(around, ast.Dict):
            yield around.values
        elif isinstance(around, (ast.Tuple, ast.List)):
            yield around.elts
            yield [each for each in around.elts if _is_of_own_name(module, around, each)]
        elif isinstance(around, ast.Call) and move is not around.func:
            yield [*around.args, *(each.value for each in around.keywords)]
        elif isinstance(around, ast.Assign):
            yield _values_of_block(module, around)


def _values_of_block(module: Module, statement: ast.Assign) -> Sequence[ast.expr]:
    """Values bound in the statements just before and after, one after the other."""
    above = module.parent(statement)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(above, name, [])
        if isinstance(block, list) and statement in block:
            at = block.index(statement)
            first = last = at
            while first > 0 and isinstance(block[first - 1], ast.Assign):
                first -= 1
            while last + 1 < len(block) and isinstance(block[last + 1], ast.Assign):
                last += 1
            return [each.value for each in block[first : last + 1]]
    return []


def _odd_ones(module: Module, group: Sequence[ast.expr]) -> Iterator[LeftAlone]:
    by_form: dict[str, list[ast.expr]] = {}
    for each in group:
        inner = _unmoved(module, each)
        if inner is not None:
            by_form.setdefault(_form(module, inner), []).append(each)
    for form, members in by_form.items():
        moved = [each for each in members if moved_to(module, each)]
        rest = [each for each in members if not moved_to(module, each)]
        calls = [each for each in moved if isinstance(each, ast.Call)]
        devices = {moved_to(module, each) for each in moved}
        if form and len(rest) == 1 and len(moved) > 0 and len(devices) == 1:
            yield LeftAlone(rest[0], calls, devices.pop())


def _unmoved(module: Module, node: ast.expr) -> ast.expr | None:
    if moved_to(module, node) and isinstance(node, ast.Call):
        return node.func.value if isinstance(node.func, ast.Attribute) else None
    return node


def _form(module: Module, node: ast.expr) -> str:
    """Alike are members of one object, results of one function, and what one method gives of
    several tensors; a name is like another if both are bound again at once."""
    if isinstance(node, ast.Subscript):
        return f"{module.text(node.value)}[]"
    if isinstance(node, ast.Attribute) and (
        module.text(node.value) != "self" or _is_in_a_mover(module, node)
    ):
        return f"{module.text(node.value)}."
    if isinstance(node, ast.Name):
        if _is_of_own_name(module, module.parent(node), node):
            return "name"
        return "tensor" if _is_a_tensor_argument(module, node) else ""
    if isinstance(node, ast.Call) and (node.args or node.keywords):
        func = node.func
        if isinstance(func, ast.Attribute) and not module.qualified(func).startswith("torch"):
            given = ", ".join(map(module.text, node.args))
            return f".{func.attr}({given})"
        return f"{module.text(func)}()"
    return ""


def _is_in_a_mover(module: Module, node: ast.AST) -> bool:
    """`to()` of a class, which moves what the object keeps."""
    function = module.function_of(node)
    return function is not None and function.name in MOVERS


def _is_a_tensor_argument(module: Module, node: ast.Name) -> bool:
    """Passed to a call, and annotated as a tensor where the function is given it."""
    function, above = module.function_of(node), module.parent(node)
    if isinstance(above, ast.Attribute):  # of a move
        above = module.parent(module.parent(above) or above)
    if function is None or not isinstance(above, (ast.Call, ast.keyword)):
        return False
    return any(
        each.arg == node.id and each.annotation is not None
        and module.text(each.annotation).endswith(("Tensor", "Tensor]", "Tensor | None"))
        for each in ast.walk(function.args) if isinstance(each, ast.arg)
    )  # fmt: skip


def _is_of_own_name(module: Module, around: ast.AST | None, node: ast.expr) -> bool:
    """`x` or `x.to(d)` of `x, y = x.to(d), y`, at the place of `x`."""
    if isinstance(around, ast.Attribute):  # of a move
        around = module.parent(module.parent(around) or around)
    statement = module.parent(around) if isinstance(around, ast.Tuple) else None
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if not isinstance(target, ast.Tuple) or not isinstance(around, ast.Tuple):
        return False
    names = {each.id for each in target.elts if isinstance(each, ast.Name)}
    return isinstance(node, (ast.Name, ast.Call)) and (
        (root(node) if isinstance(node, ast.Call) else node.id) in names
    )


def _bound_together(
    module: Module, function: FunctionNode, moves: Sequence[ast.Call]
) -> Iterator[LeftAlone]:
    """`ids, labels = batch`, of which one is moved and the other is used as it is."""
    own = [each for each in moves if function in module.ancestors(each)]
    for names in _unpacked(module, function):
        moved = [each for each in own if root(each) in {name.id for name in names}]
        roots = {root(each) for each in moved}
        devices = {moved_to(module, each) for each in moved}
        rest = [each for each in names if each.id not in roots and each.id != "_"]
        if len(devices) == 1 and len(rest) == 1 and _is_passed(module, function, rest[0].id):
            yield LeftAlone(rest[0], moved, devices.pop())


def _unpacked(module: Module, function: FunctionNode) -> Iterator[list[ast.Name]]:
    for statement in module.nodes(ast.Assign, function):
        target = statement.targets[0]
        if isinstance(target, ast.Tuple) and _may_be_a_batch(module, statement.value):
            names = [each for each in target.elts if isinstance(each, ast.Name)]
            if len(names) == len(target.elts) > 1:
                yield names


def _may_be_a_batch(module: Module, value: ast.expr) -> bool:
    """A name, or what a function of the project or a method gives."""
    if isinstance(value, ast.Call):
        dotted = module.qualified(value.func)
        return not dotted.startswith(("torch", "numpy", "zip")) and not dotted.endswith("size")
    return isinstance(value, ast.Name)


def root(call: ast.Call) -> str:
    value = call.func.value if isinstance(call.func, ast.Attribute) else None
    return value.id if isinstance(value, ast.Name) else ""


def _is_passed(module: Module, function: FunctionNode, name: str) -> bool:
    """To a call, as an argument of its own."""
    return any(
        isinstance(each, ast.Name) and each.id == name
        for call in module.nodes(ast.Call, function)
        for each in objects.given(call)
        if not isinstance(call.func, ast.Name) or call.func.id not in ("len", "zip", "enumerate")
    )
