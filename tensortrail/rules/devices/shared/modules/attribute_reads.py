"""How the methods of a class read an attribute: with tensors of the module, or by itself."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tensortrail.rules.devices.shared.written_for.preparing import prepares
from tensortrail.rules.shared.objects import called, is_self
from tensortrail.rules.view import FunctionNode, Module

ASKED = frozenset({"device", "shape", "dtype", "size", "item"})
_NUMBERS = frozenset({"int", "float", "bool"})


def is_used_as_it_is(
    module: Module, cls: ast.ClassDef, name: str, stores: Sequence[ast.Attribute]
) -> bool:
    """A method other than the one that makes it reads more of it than its form."""
    makers = {module.function_of(each) for each in stores}
    return not _is_filled_from_the_cpu(module, cls, name) and any(
        isinstance(node.ctx, ast.Load)
        and is_self(node.value)
        and _outside(module, module.function_of(node), makers)
        and not _asks_for_form(module, node)
        and not is_an_index(module, node)
        and not _is_taken_apart(module, node)
        and not _is_read_as_number(module, node)
        and not _is_filled_with_numbers(module, node)
        for node in module.members(name, cls)
    )


def _outside(
    module: Module, function: FunctionNode | None, makers: set[FunctionNode | None]
) -> bool:
    """Another method, that works where the module is."""
    if function is None or function in makers or function.name == "extra_repr":
        return False
    return not prepares(module, function)


def _is_taken_apart(module: Module, node: ast.Attribute) -> bool:
    """`for each in self.steps`: what it gives has no dimension; or it is compared with None, or
    says how often an index is drawn."""
    above = module.parent(node)
    if isinstance(above, ast.Call):
        return module.text(above.func) == "torch.multinomial"
    looped = isinstance(above, (ast.For, ast.comprehension)) and above.iter is node
    return looped or isinstance(above, ast.Compare)


def is_an_index(module: Module, node: ast.AST) -> bool:
    """`x[:, self.ids]`, or by a name that only indexes: an index may lie on the CPU."""
    if _stands_in_brackets(module, node):
        return True
    stored = module.parent(node)
    target = stored.targets[0] if isinstance(stored, ast.Assign) else None
    if not isinstance(target, ast.Name):
        return False
    uses = [each for each in module.uses(target.id, module.function_of(node)) if each is not target]
    reads = [each for each in uses if isinstance(each.ctx, ast.Load)]
    return bool(reads) and all(_stands_in_brackets(module, each) for each in reads)


def _stands_in_brackets(module: Module, node: ast.AST) -> bool:
    index: ast.AST = node
    above = module.parent(index)
    if isinstance(above, ast.Tuple):
        index, above = above, module.parent(above)
    return isinstance(above, ast.Subscript) and above.slice is index


def _asks_for_form(module: Module, node: ast.Attribute) -> bool:
    above = module.parent(node)
    return isinstance(above, ast.Attribute) and above.attr in ASKED


def is_counted(module: Module, node: ast.Attribute) -> bool:
    """`len(self.ids)`, or a text that shows it."""
    above = module.parent(node)
    counted = isinstance(above, ast.Call) and called(above) in ("len", "range", "str")
    return counted or isinstance(above, ast.FormattedValue)


def _is_read_as_number(module: Module, node: ast.expr) -> bool:
    """`int(self.strides.max())`, or one element of it, which is compared or put into another
    tensor: that may be anywhere."""
    above: ast.AST | None = node
    while isinstance(up := module.parent(above) if above else None, (ast.Attribute, ast.Call)):
        if isinstance(up, ast.Call) and module.text(up.func) in _NUMBERS:
            return True
        above = up
    item = module.parent(node)
    if not isinstance(item, ast.Subscript) or isinstance(item.slice, (ast.Slice, ast.Tuple)):
        return False
    taken = module.parent(item)
    put = isinstance(taken, ast.Assign) and isinstance(taken.targets[0], ast.Subscript)
    return put or isinstance(taken, ast.Compare)


def _is_filled_with_numbers(module: Module, node: ast.expr) -> bool:
    """`self.chances[:-1].uniform_()` takes no other tensor."""
    above = module.parent(node)
    if isinstance(above, ast.Subscript):
        above = module.parent(above)
    call = module.parent(above) if isinstance(above, ast.Attribute) else None
    if not isinstance(call, ast.Call) or not isinstance(above, ast.Attribute):
        return False
    return above.attr.endswith("_") and all(isinstance(each, ast.Constant) for each in call.args)


def _is_filled_from_the_cpu(module: Module, cls: ast.ClassDef, name: str) -> bool:
    """`self.seen[i] = codes.cpu()`: it is meant to be there."""
    for assign in module.nodes(ast.Assign, cls):
        target, value = assign.targets[0], assign.value
        if isinstance(target, ast.Subscript) and isinstance(value, ast.Call):
            kept = target.value
            own = isinstance(kept, ast.Attribute) and kept.attr == name and is_self(kept.value)
            if own and called(value) == "cpu":
                return True
    return False
