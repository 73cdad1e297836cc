"""The parts of models whose parameters the groups of an optimizer hold."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.rules.shared.objects import called, keyword, name_of, receiver
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.view import Module

_GIVE_ALL = ("parameters",)
_KEEP_ALL = ("list", "tuple", "iter")


class Part(NamedTuple):
    at: ast.expr
    path: str
    """`model.head`, whose parameters are all in the group."""


def groups_of(module: Module, made: ast.Call) -> list[list[Part]]:
    """Of `Adam([{"params": a.parameters()}, ...])`, as far as it is written out."""
    given = module.argument(made, 0, "params")
    whole = behind(module, given) if given is not None else None
    elements = whole.elts if isinstance(whole, (ast.List, ast.Tuple)) else []
    params = (_params(behind(module, each)) for each in elements)
    return [list(_parts(module, each)) for each in params if each is not None]


def _params(group: ast.expr) -> ast.expr | None:
    if isinstance(group, ast.Call) and called(group) == "dict":
        return keyword(group, "params")
    if isinstance(group, ast.Dict):
        named = zip(group.keys, group.values, strict=True)
        return next((v for k, v in named if getattr(k, "value", None) == "params"), None)
    return None


def _parts(module: Module, params: ast.expr) -> Iterator[Part]:
    """`m.head.parameters()`, `[*m.a.parameters(), *m.b.parameters()]`, `[m.head.weight]`; what is
    filtered is left out."""
    params = behind(module, params)
    if isinstance(params, ast.Starred):
        yield from _parts(module, params.value)
    elif isinstance(params, (ast.List, ast.Tuple)):
        for each in params.elts:
            yield from _parts(module, each)
    elif isinstance(params, ast.BinOp) and isinstance(params.op, ast.Add):
        yield from _parts(module, params.left)
        yield from _parts(module, params.right)
    elif isinstance(params, ast.Attribute):
        yield Part(params, name_of(module, params))
    elif isinstance(params, ast.Call):
        owner = receiver(params)
        if called(params) in _KEEP_ALL and len(params.args) == 1 and owner is None:
            yield from _parts(module, params.args[0])
        elif called(params) in _GIVE_ALL and owner is not None and not params.keywords:
            yield Part(params, name_of(module, owner))


def shared(module: Module, one: Part, other: Part) -> str:
    """The part that both hold: one contains the other, or their class ties them; "" if none."""
    for whole, part in ((one.path, other.path), (other.path, one.path)):
        if whole and (part == whole or part.startswith((f"{whole}.", f"{whole}["))):
            return part
    owners = {each.path.rpartition(".")[0] for each in (one, other)}
    names = {each.path.rpartition(".")[2] for each in (one, other)}
    tied = module.once(_ties, module.top) if len(owners) == 1 and len(names) == 2 else {}
    return tied.get(frozenset(names), "")


def _ties(module: Module, file: ast.AST) -> dict[frozenset[str], str]:
    """`{head, embed}` -> `head.weight` of `self.head.weight = self.embed.weight`, in the file's one
    class with parts of these names."""
    found: dict[frozenset[str], str] = {}
    for assign in module.nodes(ast.Assign):
        target, value = assign.targets[0], assign.value
        if not isinstance(target, ast.Attribute) or not isinstance(value, ast.Attribute):
            continue
        if target.attr != value.attr or target.attr != "weight":
            continue
        (owner, _, to), (of, _, by) = (
            module.text(each.value).rpartition(".") for each in (target, value)
        )
        if owner == of and owner and to != by:
            found[frozenset((to, by))] = f"{to}.{target.attr}"
    return found
