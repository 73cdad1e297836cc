"""Tensors that a function changes in place and returns: its caller has two names for one then."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.analyzer.facts.project_file import ProjectFile
from tensortrail.analyzer.facts.texts.written_calls import is_off
from tensortrail.analyzer.syntax.tree import SCOPES
from tensortrail.analyzer.values.signatures import tensor_parameters
from tensortrail.patterns import pattern
from tensortrail.rules.defaults import with_defaults
from tensortrail.rules.project_facts import Changed
from tensortrail.rules.shared.objects import names_in
from tensortrail.rules.shared.values import CHANGES, VIEWS
from tensortrail.rules.view import FunctionNode

_IN_PLACE = tuple(sorted(CHANGES))
WORTH_READING = pattern(
    r"step|mask|norm|clip|clamp|scale|fill|apply|update|add|shift|rot|zero|drop|warp|transf|process"
    r"|noise|mix|pad|flip|blend|forward|predict|correct|set|clean|augment|replace|enforce|adjust"
)
"""What functions of other files are called that are looked up: to ask of all takes too long."""


def changed_and_returned(file: ProjectFile, function: ast.AST) -> dict[str, Changed]:
    """The parameters whose tensor, as it is given or as a view, is changed and returned."""
    if not isinstance(function, SCOPES) or not _may_change(file, function):
        return {}
    tensors = {each for each in tensor_parameters(file, function) if isinstance(each, str)}
    arguments = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    same = {each.arg: each.arg for each in arguments}
    changed, returned = dict[str, int](), dict[str, int]()
    for statement in file.tree.nodes(ast.stmt, function):
        if file.tree.function_of(statement) is not function:
            continue
        for name in _changed(statement, same, tensors):
            if not _is_asked_for(file, function, statement):
                changed.setdefault(same[name], statement.lineno)
        if isinstance(statement, ast.Return) and statement.value is not None:
            for place, part in _parts(statement.value):
                if _viewed(part) in same:
                    returned[same[_viewed(part)]] = place
        _bind(statement, same)
    return {
        name: Changed(place, file.path, changed[name])
        for name, place in returned.items()
        if name in changed
    }


def _is_asked_for(file: ProjectFile, function: FunctionNode, statement: ast.stmt) -> bool:
    """`if in_place: x.mul_(2)`, where the function does not do so by default."""
    options = {each.arg for each, default in with_defaults(function.args) if is_off(default)}
    return any(
        isinstance(above, ast.If) and not options.isdisjoint(names_in(above.test))
        for above in file.tree.ancestors(statement)
    )


def _parts(value: ast.expr) -> Iterator[tuple[int, ast.expr]]:
    yield from enumerate(value.elts) if isinstance(value, ast.Tuple) else [(-1, value)]


def _may_change(file: ProjectFile, function: FunctionNode) -> bool:
    stores = (each.ctx for each in file.tree.nodes(ast.Subscript, function))
    return (
        next(file.calls(*_IN_PLACE, inside=function), None) is not None
        or bool(file.tree.nodes(ast.AugAssign, function))
        or any(isinstance(each, ast.Store) for each in stores)
    )


def _changed(statement: ast.stmt, same: dict[str, str], tensors: set[str]) -> Iterator[str]:
    """The names through which the statement changes a tensor: the numbers of a number or a list do
    not count, so that `x += 1` needs an annotation."""
    target: ast.expr | None = None
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr=method))):
            name = _viewed(owner)
            if method in CHANGES and name in same:
                yield name
        case ast.AugAssign(target=target) | ast.Assign(targets=[ast.Subscript() as target]):
            name = _viewed(target, written=True)
            if name in same and same[name] in tensors:
                yield name


def _bind(statement: ast.stmt, same: dict[str, str]) -> None:
    """What the names stand for after the statement."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            viewed = _viewed(value)
            if viewed in same:
                same[name] = same[viewed]
            else:
                same.pop(name, None)
        case ast.AugAssign() | ast.Assign(targets=[ast.Subscript()]):
            pass
        case ast.Assign(targets=targets):
            _forget(targets, same)
        case ast.For(target=target) | ast.AsyncFor(target=target):
            _forget([target], same)
        case ast.With(items=items) | ast.AsyncWith(items=items):
            _forget([each.optional_vars for each in items if each.optional_vars], same)


def _forget(targets: list[ast.expr], same: dict[str, str]) -> None:
    for target in targets:
        for each in ast.walk(target):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                same.pop(each.id, None)


def _viewed(node: ast.expr, written: bool = False) -> str:
    """`x` of `x`, `x[0, 1:]`, `x.squeeze(2)` and `x.mul_(2)`: the same memory. What is written to
    may be picked by anything: `x[mask] = 0`."""
    while not isinstance(node, ast.Name):
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr=method)) if (
                method in VIEWS or method in CHANGES
            ):
                node = owner
            case ast.Subscript(value=owner, slice=picked) if written or _is_plain(picked):
                node = owner
            case _:
                return ""
    return node.id


def _is_plain(picked: ast.expr) -> bool:
    """Numbers and slices give a view, a mask or a list of numbers a copy."""
    parts = picked.elts if isinstance(picked, ast.Tuple) else [picked]
    return all(isinstance(each, (ast.Constant, ast.Slice)) for each in parts)
