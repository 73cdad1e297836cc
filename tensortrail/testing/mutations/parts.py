"""Changes of a part of a statement: each yields what stands in place of one node."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any

from tensortrail.testing.conditions import denied

_LIBRARIES = ("torch", "nn", "aten")
_COPIES = ("clone", "contiguous", "copy", "deepcopy")


def _with(node: ast.AST, **fields: Any) -> Any:
    """The same node with other fields."""
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def _without_each(values: list[Any], least: int = 0) -> Iterator[list[Any]]:
    for at in range(len(values)) if len(values) > least else ():
        yield values[:at] + values[at + 1 :]


def _turned(node: ast.AST) -> Iterator[ast.AST]:
    """`if c:` -> `if not c:`; `assert not c` -> `assert c`."""
    if isinstance(node, (ast.If, ast.IfExp, ast.Assert)):
        yield _with(node, test=denied(node.test))


def _halved(node: ast.AST) -> Iterator[ast.AST]:
    """`a and b` -> `a`, and `b`."""
    if isinstance(node, ast.BoolOp):
        for values in _without_each(node.values):
            yield values[0] if len(values) == 1 else _with(node, values=values)


def _truth(node: ast.AST) -> Iterator[ast.AST]:
    """`x is None` -> `not x`, `x is not None` -> `x`."""
    if isinstance(node, ast.Compare) and ast.unparse(node.comparators[-1]) == "None":
        if isinstance(node.ops[0], ast.Is):
            yield ast.UnaryOp(ast.Not(), node.left)
        elif isinstance(node.ops[0], ast.IsNot):
            yield node.left


def _without_keyword(node: ast.AST) -> Iterator[ast.AST]:
    """`f(x, device=d, **more)` -> `f(x, **more)`, and `f(x, device=d)`."""
    if isinstance(node, ast.Call):
        for keywords in _without_each(node.keywords):
            yield _with(node, keywords=keywords)


def _without_arguments(node: ast.AST) -> Iterator[ast.AST]:
    """`f(a, b, c)` -> `f(a, b)` and `f(a)`; `super().f(a)` -> `super().f()`."""
    if isinstance(node, ast.Call):
        least = 0 if ast.unparse(node.func).startswith("super()") else 1
        for count in range(least, len(node.args)):
            yield _with(node, args=node.args[:count])


def _without_element(node: ast.AST) -> Iterator[ast.AST]:
    """`(a, b)` -> `(a,)`, and `(b,)`."""
    if isinstance(node, ast.Set) or (
        isinstance(node, (ast.Tuple, ast.List)) and isinstance(node.ctx, ast.Load)
    ):
        for elts in _without_each(node.elts, least=1):
            yield _with(node, elts=elts)


def _without_call(methods: Collection[str], node: ast.AST) -> Iterator[ast.AST]:
    """`x.to(d)` -> `x`."""
    func = node.func if isinstance(node, ast.Call) else None
    if isinstance(func, ast.Attribute) and func.attr in methods:
        yield func.value


def _uncopied(node: ast.AST) -> Iterator[ast.AST]:
    """`x.clone()` -> `x`, `copy.deepcopy(x)` -> `x`."""
    if not isinstance(node, ast.Call):
        return
    if ast.unparse(node.func).rpartition(".")[2] in _COPIES and len(node.args) == 1:
        yield node.args[0]
    elif not node.args:
        yield from _without_call(_COPIES, node)


def _uncalled(node: ast.AST) -> Iterator[ast.AST]:
    """`f()` -> `f`."""
    if isinstance(node, ast.Call) and not node.args and not node.keywords:
        yield node.func


def _without_attribute(node: ast.AST) -> Iterator[ast.AST]:
    """`a.b.c` -> `a.c`, where `a` is no library."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Attribute):
        return
    if ast.unparse(node).partition(".")[0] not in _LIBRARIES:
        yield _with(node, value=node.value.value)


def _named(node: ast.AST) -> Iterator[ast.AST]:
    """`x.device` -> `"cuda"`."""
    if not isinstance(node, ast.Attribute) or node.attr != "device":
        return
    if isinstance(node.ctx, ast.Load) and ast.unparse(node) != "torch.device":
        yield ast.Constant("cuda")


def _without_cause(node: ast.AST) -> Iterator[ast.AST]:
    """`raise A from b` -> `raise A`."""
    if isinstance(node, ast.Raise) and node.cause:
        yield _with(node, cause=None)


def _unfiltered(node: ast.AST) -> Iterator[ast.AST]:
    """`[x for x in y if c]` -> `[x for x in y]`."""
    if isinstance(node, ast.comprehension):
        for ifs in _without_each(node.ifs):
            yield _with(node, ifs=ifs)


PARTS: dict[str, Callable[[ast.AST], Iterator[ast.AST]]] = {
    "condition turned": _turned,
    "half a condition": _halved,
    "truth for None": _truth,
    "keyword left out": _without_keyword,
    "arguments left out": _without_arguments,
    "element left out": _without_element,
    "move left out": partial(_without_call, ("to", "cpu", "cuda", "pin_memory")),
    "copy left out": _uncopied,
    "detach left out": partial(_without_call, ("detach", "item")),
    "not called": _uncalled,
    "attribute left out": _without_attribute,
    "device named": _named,
    "cause left out": _without_cause,
    "filter left out": _unfiltered,
}
"""By the name of the change."""
