"""The parameters of what a call calls: a function, a method, or the constructor of a class."""

from __future__ import annotations

import ast

from tensortrail.analyzer.facts import hints
from tensortrail.analyzer.facts.project_file import ProjectFile
from tensortrail.analyzer.syntax.tree import SCOPES
from tensortrail.analyzer.values.functions import params_of
from tensortrail.rules.view import FunctionNode
from tensortrail.rules.words import TENSORS

_MAKERS = ("__init__", "__new__")
_ANCESTORS = 5
"""How many classes are looked into for a constructor."""


def parameters_of(file: ProjectFile, call: ast.Call) -> tuple[str, ...]:
    """In order, without `self`; empty if the callee is not known or takes `*args`."""
    owner, function = _called(file, call)
    if function is None or function.args.vararg is not None:
        return ()
    return parameters(owner, function)


def chosen_defaults(file: ProjectFile, call: ast.Call) -> frozenset[str]:
    """Parameters of the callee whose default is a value, and not None."""
    _, function = _called(file, call)
    if function is None:
        return frozenset()
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    pairs = [*zip(reversed(positional), reversed(given.defaults), strict=False)]
    pairs += [
        (each, default)
        for each, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
        if default is not None
    ]
    is_none = {
        each.arg: isinstance(default, ast.Constant) and default.value is None
        for each, default in pairs
    }
    return frozenset(name for name, none in is_none.items() if not none)


def _called(file: ProjectFile, call: ast.Call) -> tuple[ProjectFile, FunctionNode | None]:
    """The function that runs, with its file; the constructor of a class."""
    owner, node = _definition(file, file.qualified(call.func), call)
    for _ in range(_ANCESTORS):
        if not isinstance(node, ast.ClassDef):
            break
        made_by = [each for each in node.body if isinstance(each, SCOPES) and each.name in _MAKERS]
        if made_by:
            node = made_by[0]
        elif node.bases:
            owner, node = _definition(owner, owner.qualified(node.bases[0]), None)
    return owner, node if isinstance(node, SCOPES) else None


def parameters(file: ProjectFile, function: FunctionNode) -> tuple[str, ...]:
    return params_of(function, isinstance(file.tree.parent(function), ast.ClassDef))


def tensor_parameters(file: ProjectFile, function: FunctionNode) -> frozenset[int | str | None]:
    """Positions and names of the parameters that a function annotates as tensors."""
    wanted = parameters(file, function)
    given = function.args
    said = {
        each.arg: hints.read(each.annotation, file.qualified, file.kind_of_class_named)
        for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)
        if each.annotation is not None
    }
    tensors = [n for n in wanted if n in said and said[n].kinds and said[n].kinds <= TENSORS]
    return frozenset([*tensors, *(wanted.index(name) for name in tensors)])


def is_defined(file: ProjectFile, dotted: str) -> bool:
    """A function or class of the project that has this name, and no method."""
    if dotted.partition(".")[0] in ("", "self", "cls"):
        return False
    owner, node = _definition(file, dotted, None)
    return isinstance(node, (ast.ClassDef, *SCOPES)) and owner.tree.parent(node) is owner.tree.root


def _definition(
    file: ProjectFile, dotted: str, call: ast.Call | None
) -> tuple[ProjectFile, ast.AST | None]:
    first, _, rest = dotted.partition(".")
    if call is not None and first in ("self", "cls"):
        cls = file.tree.class_of(call)
        around = file.tree.qualname_of(cls) if cls is not None else ""
        return file, file.definition_named(f"{around}.{rest}")
    node = file.definition_named(dotted.removeprefix(f"{file.name}.") if file.name else dotted)
    if node is not None or "." not in dotted:
        return file, node
    return file.project.definition(file, dotted) or (file, None)
