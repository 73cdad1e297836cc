"""Which operations a wrapper class answers, and what becomes of the others."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Protocol

from tensortrail.analyzer.syntax.guards import Guards
from tensortrail.analyzer.syntax.names import dotted_name
from tensortrail.analyzer.syntax.tree import Tree
from tensortrail.analyzer.syntax.walk import in_order
from tensortrail.rules.words import Branch

_REWRAPS = ("tree_map", "tree_map_only", "return_and_correct_aliasing")


class ClassFile(Protocol):
    """What is asked of the file a class stands in."""

    path: str
    name: str
    tree: Tree

    def qualified(self, node: ast.AST) -> str: ...


def op_name(dotted: str) -> str:
    """ "aten.new_empty" of any spelling of an overload of it; "" if it is no op."""
    parts = dotted.split(".")
    for namespace in ("aten", "c10d_functional", "_c10d_functional", "prims"):
        if namespace in parts:
            after = parts[parts.index(namespace) + 1 :]
            return f"{namespace}.{after[0]}" if after else ""
    if dotted.startswith("torch.Tensor.") and len(parts) == 3:
        return f"aten.{parts[2]}"
    return ""


def _ops_in(file: ClassFile, node: ast.AST) -> Iterable[str]:
    for below in file.tree.below(node):
        if isinstance(below, ast.Attribute):
            name = op_name(file.qualified(below) or dotted_name(below))
            if name:
                yield name


def ops_compared(file: ClassFile, dispatch: ast.AST) -> Iterable[str]:
    """Ops the dispatch compares its function with, looks up, or matches."""
    for below in file.tree.below(dispatch):
        if isinstance(below, (ast.Compare, ast.Dict, ast.Set, ast.match_case)):
            yield from _ops_in(file, below.pattern if isinstance(below, ast.match_case) else below)


def ops_registered(file: ClassFile, cls: ast.ClassDef, dispatches: bool) -> Iterable[str]:
    """Ops registered by decorators or tables of the file, for this class."""
    if not dispatches:
        return
    aliases = _implements_aliases(file)
    for function in file.tree.nodes(ast.FunctionDef):
        for decorator in function.decorator_list:
            if not isinstance(decorator, ast.Call):
                continue
            called = dotted_name(decorator.func)
            owner = aliases.get(called, called.rpartition(".")[0])
            if owner and owner.rpartition(".")[2] not in (cls.name, "cls", "self"):
                known_class = any(
                    other.name == owner.rpartition(".")[2]
                    for other in file.tree.nodes(ast.ClassDef)
                )
                if known_class:
                    continue
            for argument in decorator.args:
                yield from _ops_in(file, argument)
    for statement in file.tree.root.body:
        value = getattr(statement, "value", None)
        if isinstance(value, (ast.Dict, ast.Set, ast.List, ast.Call)):
            if isinstance(value, ast.Dict):
                for key in value.keys:
                    if key is not None:
                        yield from _ops_in(file, key)
            elif isinstance(value, (ast.Set, ast.List)):
                yield from _ops_in(file, value)
        elif isinstance(statement, ast.For):
            yield from _ops_in(file, statement.iter)


def _implements_aliases(file: ClassFile) -> dict[str, str]:
    """`implements = MyTensor.implements` -> {"implements": "MyTensor"}."""
    found: dict[str, str] = {}
    for statement in file.tree.root.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            dotted = dotted_name(statement.value)
            if "." in dotted and not isinstance(statement.value, ast.Call):
                found[statement.targets[0].id] = dotted.rpartition(".")[0]
    return found


def rewraps_rest_of(file: ClassFile, dispatch: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    last = dispatch.body[-1]
    assigned = _assigned_once(dispatch)

    def origins(name: ast.expr) -> tuple[ast.expr, ...]:
        made = assigned.get(name.id) if isinstance(name, ast.Name) else None
        return (made,) if made is not None else ()

    for branch in Guards(file.tree, origins).branches(dispatch):
        if branch.body[-1] is not last and _keeps_some_plain(branch):
            return False
    if not isinstance(last, ast.Return) or last.value is None:
        return False
    returned = next(iter(origins(last.value)), last.value)
    called = [dotted_name(below) for below in in_order(returned) if isinstance(below, ast.Call)]
    return any(
        name.rpartition(".")[2] in _REWRAPS or name == "cls" or "wrap" in name.rpartition(".")[2]
        for name in called
    ) and not any(name.startswith("super") or "unwrap" in name for name in called)


def _assigned_once(dispatch: ast.AST) -> dict[str, ast.expr]:
    """Names of the function that one plain assignment binds, with what it gives them."""
    found: dict[str, list[ast.expr]] = {}
    for each in in_order(dispatch):
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
            found.setdefault(each.targets[0].id, []).append(each.value)
    return {name: values[0] for name, values in found.items() if len(values) == 1}


def _keeps_some_plain(branch: Branch) -> bool:
    """`if func not in preserved: return out`."""
    asked = any(
        isinstance(each.test, ast.Compare)
        and isinstance(each.test.ops[0], ast.NotIn if each.holds else ast.In)
        for each in branch.guards
    )
    return asked and isinstance(branch.body[-1], ast.Return)
