"""State dicts that outlive the function that took them, and what reads them later."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.shards._replaced import state_dict_of
from tensortrail.rules.shared.objects import called, root_of
from tensortrail.rules.view import FunctionNode, Module


def keeper(module: Module, target: ast.expr) -> str:
    """What holds it beyond the function: `CACHE` of `CACHE[key]`, a global name, `self.first`; ""
    if nothing does."""
    if isinstance(target, ast.Subscript):
        return keeper(module, target.value)
    function, root = module.function_of(target), root_of(target)
    if function is None or not isinstance(root, ast.Name):
        return ""
    if isinstance(target, ast.Attribute):
        return module.text(target) if root.id == "self" else ""
    if not isinstance(target, ast.Name):
        return ""
    declared = {name for each in module.nodes(ast.Global, function) for name in each.names}
    of_file = isinstance(target.ctx, ast.Load) and _is_of_file(module, function, root.id)
    return root.id if root.id in declared or of_file else ""


def is_explicit_copy(module: Module, value: ast.expr) -> bool:
    """`m.state_dict().copy()`, `dict(m.state_dict())`: who writes this wants a copy."""
    return isinstance(value, (ast.Call, ast.DictComp)) and not state_dict_of(module, value)


def read_by_loading(module: Module, assign: ast.Assign, kept: str) -> ast.expr | None:
    """Another use of what was kept, in a file that loads state dicts."""
    if not any(True for _ in module.calls("load_state_dict")):
        return None
    return next(_reads(module, assign, kept), None)


def _reads(module: Module, assign: ast.Assign, kept: str) -> Iterator[ast.expr]:
    """Uses of it as a value: not to look for a key, to count or to delete."""
    for node in (*module.nodes(ast.Name), *module.nodes(ast.Attribute)):
        if module.text(node) != kept or module.statement_of(node) is assign:
            continue
        use = module.parent(node)
        whole = use if isinstance(use, ast.Subscript) and use.value is node else node
        if isinstance(getattr(whole, "ctx", None), ast.Load) and _is_passed_on(module, whole):
            yield node


def _is_passed_on(module: Module, node: ast.AST) -> bool:
    up = module.parent(node)
    if isinstance(up, ast.keyword):
        up = module.parent(up)
    if isinstance(up, ast.Call):
        return called(up) not in ("len", "bool", "print", "next", "iter", "list", "set")
    return isinstance(up, (ast.Return, ast.Assign))


def _is_of_file(module: Module, function: FunctionNode, name: str) -> bool:
    """Bound at the top of the file, and not in the function."""
    own = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    if name in {each.arg for each in own}:
        return False
    stores = [
        each
        for each in module.nodes(ast.Name)
        if each.id == name and isinstance(each.ctx, ast.Store)
    ]
    return bool(stores) and all(module.function_of(each) is None for each in stores)
