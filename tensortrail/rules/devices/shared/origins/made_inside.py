"""The operand is a value inside of compiled code: the function that was traced shows its making."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeGuard, TypeVar

from tensortrail.findings import Fix, Safety, Site
from tensortrail.rules.devices.shared.origins.case import Case, Origin, advice
from tensortrail.rules.devices.shared.origins.made import MAKERS
from tensortrail.rules.shared.lines import place
from tensortrail.rules.shared.mends import registered, statement_at
from tensortrail.rules.shared.objects import names_in

ASKED = ("shape", "size", "ndim", "dtype")
Function = ast.FunctionDef
Node = TypeVar("Node", ast.FunctionDef, ast.ClassDef)
NAMES = {each.rpartition(".")[2] for each in MAKERS if not each.endswith("_like")}


def origin(case: Case) -> Origin | None:
    site = case.event.site
    if case.odd.storage is not None or site is None or case.odd.device != "cpu":
        return None
    tree = case.timeline.tree(site.file)
    used = statement_at(tree, site.line) if tree else None
    function = _around(tree, site.line, ast.FunctionDef) if tree else None
    if used is None or function is None:
        return None
    makers = list(_makers(function, used))
    if not makers:
        return _kept_by_object(case, site, tree, used)
    if len(makers) != 1:
        return None
    name, maker = makers[0]
    shown = ast.unparse(maker.func)
    at = place(Site(site.file, maker.lineno))
    why = f"`{name}` is made on the CPU{at} by `{shown}`, which is given no device"
    return Origin(why, fixes=(_with_device(case, site, function, maker),))


def _kept_by_object(
    case: Case, site: Site, tree: ast.Module | None, used: ast.stmt
) -> Origin | None:
    """`self.mean`, a plain attribute that the class makes: a module does not move it."""
    owner = _around(tree, site.line, ast.ClassDef) if tree else None
    read = {each.attr for each in ast.walk(used) if _is_own(each)}
    made = [
        (node, target.attr)
        for node in (ast.walk(owner) if owner else ())
        if isinstance(node, ast.Assign) and node is not used and _makes(node.value)
        for target in node.targets
        if isinstance(target, ast.Attribute) and _is_own(target) and target.attr in read
    ]
    if len(made) != 1:
        return None
    at, name = Site(site.file, made[0][0].lineno), made[0][1]
    why = (
        f"`self.{name}` is neither a parameter nor a buffer (assigned{place(at)}), so it stays on "
        "the CPU when its module is moved"
    )
    fix = registered(case.timeline, at, name, ())
    return Origin(
        why, fixes=(fix or advice(f"make it a buffer: `register_buffer({name!r}, ...)`"),)
    )


def _is_own(node: ast.AST) -> TypeGuard[ast.Attribute]:
    value = node.value if isinstance(node, ast.Attribute) else None
    return isinstance(value, ast.Name) and value.id == "self"


def _around(tree: ast.Module, line: int, kind: type[Node]) -> Node | None:
    """The innermost one over that line."""
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, kind) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return max(around, key=lambda node: node.lineno, default=None)


def _makers(function: Function, used: ast.stmt) -> Iterator[tuple[str, ast.Call]]:
    """Names that the statement uses, or that these were computed of, which were given a tensor
    made without a device, and the call."""
    names, given = names_in(used), [*_given_before(function, used)]
    for name, value in reversed(given):
        if name in names:
            names |= names_in(value)
    for name, value in given:
        yield from ((name, each) for each in ast.walk(value) if name in names and _makes(each))


def _given_before(function: Function, used: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    found = (each for each in ast.walk(function) if isinstance(each, ast.Assign))
    for node in sorted(found, key=lambda each: each.lineno):
        target = node.targets[0]
        if len(node.targets) == 1 and isinstance(target, ast.Name) and node.lineno < used.lineno:
            yield target.id, node.value


def _makes(node: ast.AST) -> TypeGuard[ast.Call]:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    of_torch = isinstance(node.func.value, ast.Name) and node.func.value.id == "torch"
    return of_torch and node.func.attr in NAMES and all(k.arg != "device" for k in node.keywords)


def _with_device(case: Case, site: Site, function: Function, maker: ast.Call) -> Fix:
    text = f"give `{ast.unparse(maker.func)}` the device of what it is used with"
    tensor = _tensor_at_hand(function, maker)
    if not tensor:
        return advice(text)
    given = [*map(ast.unparse, maker.args), *map(ast.unparse, maker.keywords)]
    call = f"{ast.unparse(maker.func)}({', '.join([*given, f'device={tensor}.device'])})"
    edit = case.timeline.replace(site.file, maker, call)
    return case.timeline.fix(text, Safety.UNSAFE, edit) or advice(text)


def _tensor_at_hand(function: Function, maker: ast.Call) -> str:
    """The argument of the function that the call takes sizes of, as `x` in `x.shape[1]`."""
    arguments = {each.arg for each in function.args.args}
    for node in ast.walk(maker):
        owner = node.value if isinstance(node, ast.Attribute) and node.attr in ASKED else None
        if isinstance(owner, ast.Name) and owner.id in arguments:
            return owner.id
    return ""
