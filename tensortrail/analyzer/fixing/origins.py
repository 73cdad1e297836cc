"""Where the argument of a call comes from: the call itself, or a dict that is unpacked into it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Site
from tensortrail.rules.unchanging import unchanging

Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_NAMED = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.ExceptHandler,
    ast.MatchAs,
    ast.MatchStar,
)


@unchanging(frozen=True, slots=False)
class Origin:
    """What has to change."""

    node: ast.expr
    function: str
    """Of the call that gives the argument or can be given it; "" if it is a value in a dict."""


class Refused(Exception):
    """An argument that cannot be given without guessing; says why."""


def call_at(tree: ast.Module, at: Site, function: str) -> ast.Call:
    """The only call of that name on the lines of the site."""
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and node.lineno <= at.end_line
        and at.line <= (node.end_lineno or node.lineno)
        and name_of(node) == function
    ]
    if len(found) != 1:
        many = f"{len(found)} calls" if found else "no call"
        raise Refused(f"line {at.line} has {many} of {function}")
    return found[0]


def name_of(call: ast.Call) -> str:
    """The last name of what is called."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def origin(tree: ast.Module, call: ast.Call, argument: str, position: int) -> Origin:
    """Where the call's argument is given, or can be."""
    here = Origin(call, name_of(call))
    if any(each.arg == argument for each in call.keywords):
        return here
    if position >= 0 and any(isinstance(each, ast.Starred) for each in call.args[: position + 1]):
        raise Refused(f"`*` may give {argument} already")
    for keyword in call.keywords:
        if keyword.arg is None and (found := _unpacked(tree, call, keyword.value, argument)):
            return found
    return here


def _unpacked(tree: ast.Module, call: ast.Call, given: ast.expr, argument: str) -> Origin | None:
    """None if the dict does not hold the argument."""
    made = _made(tree, call, given) if isinstance(given, ast.Name) else given
    if isinstance(made, ast.Dict):
        keys = [each.value if isinstance(each, ast.Constant) else None for each in made.keys]
        if all(isinstance(key, str) for key in keys):
            held = [value for key, value in zip(keys, made.values, strict=True) if key == argument]
            return Origin(held[-1], "") if held else None
    if isinstance(made, ast.Call) and isinstance(made.func, ast.Name) and made.func.id == "dict":
        names = [each.arg for each in made.keywords]
        if not made.args and None not in names:
            return Origin(made, "dict") if argument in names else None
    raise Refused(f"`**{ast.unparse(given)}` may give {argument} already")


def _made(tree: ast.Module, call: ast.Call, name: ast.Name) -> ast.expr | None:
    """What the name is bound to, if that is done once and it is only read besides."""
    scope = _scope_of(tree, call, name.id)
    uses = [each for each in ast.walk(scope) if isinstance(each, ast.Name) and each.id == name.id]
    bound = [
        each.value
        for each in _inside(scope)
        if (isinstance(each, ast.Assign) and [ast.dump(t) for t in each.targets] == [_bare(name)])
        or (isinstance(each, ast.AnnAssign) and ast.dump(each.target) == _bare(name))
    ]
    stores = [each for each in uses if not isinstance(each.ctx, ast.Load)]
    if len(stores) != 1 or len(bound) != 1 or _is_bound_otherwise(tree, scope, name.id):
        return None
    readers = {id(each) for each in _only_read(scope)} | {id(name)}
    others = [each for each in uses if each not in stores and id(each) not in readers]
    return None if others else bound[0]


def _bare(name: ast.Name) -> str:
    return ast.dump(ast.Name(name.id, ast.Store()))


def _scope_of(tree: ast.Module, call: ast.Call, name: str) -> Scope:
    """The innermost scope around the call that binds the name, else the module."""
    around = [
        each
        for each in ast.walk(tree)
        if isinstance(each, _SCOPES) and any(node is call for node in ast.walk(each))
    ]
    for scope in reversed(around):  # ast.walk gives outer ones first
        binds = (
            isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
            for each in _inside(scope)
        )
        if any(binds) or name in _parameters(scope):
            return scope
    return tree


def _inside(scope: Scope) -> Iterator[ast.AST]:
    """The nodes of a scope, without those of scopes in it."""
    todo: list[ast.AST] = list(ast.iter_child_nodes(scope))
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, (*_SCOPES, ast.ClassDef)):
            todo += ast.iter_child_nodes(node)


def _parameters(scope: Scope) -> set[str]:
    if isinstance(scope, ast.Module):
        return set()
    return {each.arg for each in ast.walk(scope.args) if isinstance(each, ast.arg)}


def _is_bound_otherwise(tree: ast.Module, scope: Scope, name: str) -> bool:
    """By an import, a definition, a parameter, an `except ... as` or from another scope."""
    if name in _parameters(scope):
        return True
    for each in ast.walk(tree):
        names: list[str | None] = []
        if isinstance(each, (ast.Global, ast.Nonlocal)):
            names = list(each.names)
        elif isinstance(each, (ast.Import, ast.ImportFrom)):
            names = [alias.asname or alias.name.partition(".")[0] for alias in each.names]
        elif isinstance(each, _NAMED):
            names = [each.name]
        if name in names:
            return True
    return False


def _only_read(scope: Scope) -> Iterator[ast.expr]:
    """`d` in `d["x"]` and `d.get("x")`."""
    for each in ast.walk(scope):
        match each:
            case ast.Subscript(value=held, ctx=ast.Load()):
                yield held
            case ast.Call(func=ast.Attribute(value=held, attr="get" | "keys" | "values" | "items")):
                yield held
