"""Which names hold the whole size of a tensor, and tests of whether it is empty."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from tensortrail.patterns import pattern
from tensortrail.rules import Kind, Module
from tensortrail.rules.shared.objects import root_of
from tensortrail.rules.view import FunctionNode

_SIZE = pattern(r"(^|_|\.)(size|shape|sizes)$")
_INT = pattern(r"(^|[\[ \"'])int\b(?!.*(Size|Sequence))")
_COUNT = pattern(r"(world|group|batch|hidden|vocab|chunk|block|page|tp|dp|ep|cp|step)_?size$")


def filling(module: Module) -> Iterable[FunctionNode | None]:
    """The functions that give a name the size of a tensor; None for the whole file."""
    sizes = [
        each
        for each in module.nodes(ast.Assign)
        if isinstance(each.targets[0], ast.Name) and _size_of_tensor(each.value) is not None
    ]
    places = {module.function_of(each) for each in sizes if _is_alone(module, each)}
    return [None] if None in places else places


def _is_alone(module: Module, statement: ast.stmt) -> bool:
    """It is all of a branch, or all that is left of its block."""
    above = module.parent(statement)
    blocks = [getattr(above, name, None) for name in ("body", "orelse", "finalbody")]
    return any(isinstance(each, list) and each[-1:] == [statement] for each in blocks)


def non_empty_test(test: ast.expr) -> ast.expr | None:
    """`x` of `len(x) > 0`, `len(x)`, `len(x) != 0` and plain `x`."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        right = test.comparators[0]
        if not (isinstance(right, ast.Constant) and right.value == 0):
            return None
        if not isinstance(test.ops[0], (ast.Gt, ast.NotEq)):
            return None
        test = test.left
        if not isinstance(test, ast.Call):
            return None
    if isinstance(test, ast.Call):
        is_len = isinstance(test.func, ast.Name) and test.func.id == "len" and len(test.args) == 1
        return test.args[0] if is_len else None
    return test if isinstance(test, (ast.Name, ast.Attribute)) else None


def empty_test(test: ast.expr) -> ast.expr | None:
    """`x` of `not x`, `not len(x)` and `len(x) == 0`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return non_empty_test(test.operand)
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq) and _counts(test.left):
        right = test.comparators[0]
        is_zero = isinstance(right, ast.Constant) and right.value == 0
        return non_empty_test(test.left) if is_zero else None
    return None


def _counts(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len"


def is_size(module: Module, size: ast.expr, instead: ast.expr) -> bool:
    """A name for which the whole size of a tensor is taken, and not a number of something."""
    tensor = _size_of_tensor(instead)
    if tensor is None or not isinstance(size, ast.Name):
        return False
    holder, value = module.value_of(tensor), module.value_of(size)
    if _COUNT.search(size.id) or (value.is_only(Kind.OTHER) and _is_number(module, size)):
        return False
    if holder.kinds and not holder.is_tensor:
        return False
    if isinstance(instead, ast.Attribute) and not isinstance(value.constant, int):
        return True  # what has a shape is an array
    if _is_imported(module, root_of(tensor)):
        return False  # what a package counts, as `hvd.size()` its processes
    return (holder.is_tensor and holder.sure) or bool(_SIZE.search(size.id))


def _is_imported(module: Module, root: ast.expr) -> bool:
    if not isinstance(root, ast.Name):
        return False
    found = [each for node in module.nodes(ast.Import) for each in node.names]
    found += [each for node in module.nodes(ast.ImportFrom) for each in node.names]
    return any(root.id == (each.asname or each.name) for each in found)


def _is_number(module: Module, size: ast.Name) -> bool:
    function = module.function_of(size)
    noted = [each.annotation for each in module.nodes(ast.arg, function) if each.arg == size.id]
    noted += [
        each.annotation
        for each in module.nodes(ast.AnnAssign, function)
        if module.text(each.target) == size.id
    ]
    said = " ".join(module.text(each) for each in noted if each is not None)
    constant = module.value_of(size).constant
    return isinstance(constant, int) or bool(_INT.search(said))


def _size_of_tensor(node: ast.expr) -> ast.expr | None:
    """`t` of `t.size()` or `t.shape`, whole."""
    if isinstance(node, ast.Call) and not node.args and not node.keywords:
        named = isinstance(node.func, ast.Attribute) and node.func.attr == "size"
        return node.func.value if named and isinstance(node.func, ast.Attribute) else None
    return node.value if isinstance(node, ast.Attribute) and node.attr == "shape" else None
