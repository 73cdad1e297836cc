"""What flows into a value, by the names that a function assigns: in a run's own source.

The order of statements is not asked: in a loop the later one comes first as well."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tensortrail.rules.timeline import Timeline

Frame = tuple[str, int, str]
"""File, line and function of a call that was running."""
MODULE, SELF = "<module>", "self"


def flows_into(timeline: Timeline, source: Sequence[Frame], use: Sequence[Frame]) -> bool:
    """Whether what the innermost line of one stack made may have come to that of the other. Both
    begin with the innermost function. Where the source is not known, it may."""
    one, other = source[::-1], use[::-1]
    depth = 0
    while depth < min(len(one), len(other)) and one[depth] == other[depth]:
        depth += 1
    if depth == len(one):
        depth -= 1  # in one line, or what it called
    if depth < len(other) and not _feeds(timeline, one[depth], other[depth]):
        return False
    return all(_feeds(timeline, each, None) for each in one[depth + 1 :])


def _feeds(timeline: Timeline, frame: Frame, use: Frame | None) -> bool:
    """The line gives its function's result something; or, with a use, that line of it."""
    file, line, name = frame
    tree = timeline.tree(file)
    body = function_at(tree, line) if tree is not None else None
    if body is None or (name.endswith(">") and name != MODULE):
        return True
    if use is not None and (use[0] != file or line == use[1]):
        return True
    return line in lines_behind(body, use[1] if use is not None else 0)


def function_at(tree: ast.Module, line: int) -> ast.AST:
    """The innermost function around the line, or the module."""
    around: ast.AST = tree
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if first <= line <= (node.end_lineno or line):
                around = node
    return around


def lines_behind(body: ast.AST, use: int) -> set[int]:
    """The lines whose values come to what is read at a line, or to what is returned."""
    own = list(_own(body))
    needed = set(_wanted(own, use))
    lines: set[int] = set()
    while True:
        before = len(needed), len(lines)
        for node in own:
            if _gives(node, needed, bool(use)):
                needed |= set(names_in(node))
                lines |= _range(node)
        if (len(needed), len(lines)) == before:
            return lines


def _wanted(own: list[ast.AST], use: int) -> Iterator[str]:
    for node in own:
        if use:
            reads = isinstance(node, ast.expr) and node.lineno <= use <= (node.end_lineno or 0)
        else:
            reads = isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom))
        if reads:
            yield from names_in(node)


def _gives(node: ast.AST, needed: set[str], inside: bool) -> bool:
    """The statement gives one of these names a value, or changes what it stands for."""
    match node:
        case ast.Assign():
            return any(_is_kept(each, needed, inside) for each in node.targets)
        case ast.AugAssign() | ast.AnnAssign() | ast.For() | ast.AsyncFor() | ast.NamedExpr():
            return _is_kept(node.target, needed, inside)
        case ast.comprehension():
            return _is_kept(node.target, needed, inside)
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner))):
            return key(owner, called=True) in needed or (
                key(owner, called=True) == SELF and any(each.startswith(SELF) for each in needed)
            )
        case ast.Return() | ast.Yield() | ast.YieldFrom():
            return not inside
    return False


def _is_kept(target: ast.expr, needed: set[str], inside: bool) -> bool:
    """What an object keeps leaves the function with it."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return any(_is_kept(each, needed, inside) for each in target.elts)
    kept = key(target)
    of_self = kept.startswith(f"{SELF}.")
    return kept in needed or (of_self and (SELF in needed or not inside))


def key(node: ast.expr, called: bool = False) -> str:
    """`x` of `x[0].y` and of `x.f(...)`; `self.x` of what an object keeps in `x`."""
    found = ""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call, ast.Starred)):
        found = node.attr if isinstance(node, ast.Attribute) and not called else ""
        called = isinstance(node, ast.Call)
        node = node.func if isinstance(node, ast.Call) else node.value
    name = node.id if isinstance(node, ast.Name) else ""
    return f"{SELF}.{found}" if name == SELF and found else name


def _root(node: ast.expr) -> ast.expr:
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call, ast.Starred)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node


def names_in(node: ast.AST) -> Iterator[str]:
    """The names that are read."""
    whole = node.iter if isinstance(node, (ast.For, ast.AsyncFor)) else node
    inner = set()
    for each in ast.walk(whole):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute):
            yield key(each)
            inner.add(id(_root(each)))
        elif isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name):
            if id(each.value) not in inner:
                yield key(each)
                inner.add(id(each.value))
        elif isinstance(each, ast.Name) and id(each) not in inner:
            yield each.id


def _range(node: ast.AST) -> set[int]:
    last = node.iter if isinstance(node, (ast.For, ast.AsyncFor)) else node
    if not isinstance(node, (ast.stmt, ast.expr)):
        return set()
    return set(range(node.lineno, (getattr(last, "end_lineno", None) or node.lineno) + 1))


def _own(body: ast.AST) -> Iterator[ast.AST]:
    """What stands in the function itself, and in no other function in it."""
    for child in ast.iter_child_nodes(body):
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield child
            yield from _own(child)
