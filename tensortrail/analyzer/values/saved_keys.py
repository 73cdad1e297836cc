"""The keys of the mapping that `torch.save` writes, as far as they are written out."""

from __future__ import annotations

import ast

from tensortrail.analyzer.facts.project_file import ProjectFile

_CHANGES = frozenset({"update", "setdefault"})
_LOOKS = frozenset({"print", "len", "sorted", "list"})


def keys_of(file: ProjectFile, what: ast.expr) -> frozenset[str] | None:
    """Of `{"model": ...}`, of `dict(model=...)`, and of a variable that holds one and is added to
    in the same function; None where they are not known."""
    match what:
        case ast.Name():
            return _of_name(file, what)
        case ast.Dict(keys=keys):
            texts = [each.value if isinstance(each, ast.Constant) else None for each in keys]
            known = frozenset(each for each in texts if isinstance(each, str))
            return known if len(known) == len(texts) else None
        case ast.Call(func=ast.Name(id="dict"), args=[], keywords=given):
            names = [each.arg for each in given]
            return None if None in names else frozenset(each for each in names if each)
    return None


def _of_name(file: ProjectFile, name: ast.Name) -> frozenset[str] | None:
    origins = file.value_of(name).origins
    made = origins[0] if len(origins) == 1 else None
    keys = keys_of(file, made) if isinstance(made, (ast.Dict, ast.Call)) else None
    added = _added(file, name) if keys is not None else None
    return keys | added if keys is not None and added is not None else None


def _added(file: ProjectFile, name: ast.Name) -> frozenset[str] | None:
    """Keys that are stored into the variable; None if any may be."""
    found: set[str] = set()
    function = file.tree.function_of(name)
    for item in file.tree.nodes(ast.Subscript, function):
        if isinstance(item.ctx, ast.Store) and _is(item.value, name):
            if not isinstance(item.slice, ast.Constant):
                return None
            found.add(str(item.slice.value))
    for call in file.tree.nodes(ast.Call, function):
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr in _CHANGES and _is(func.value, name):
            return None
        passed = any(_is(each, name) for each in call.args)
        last = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
        if passed and last not in _LOOKS and file.qualified(func) != "torch.save":
            return None
    return frozenset(found)


def _is(node: ast.expr, name: ast.Name) -> bool:
    return isinstance(node, ast.Name) and node.id == name.id
