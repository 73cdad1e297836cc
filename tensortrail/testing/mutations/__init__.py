"""Good examples made bad by one small change: a guard removed, a keyword, a statement, a move or a
copy left out, two statements turned round. A rule whose good example holds by it must notice."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from tensortrail.rules.examples import Good
from tensortrail.testing.mutations.blocks import BLOCKS
from tensortrail.testing.mutations.parts import PARTS

CHANGES = (*PARTS, *BLOCKS)
"""The name of every kind of change."""


@dataclass(frozen=True)
class Mutant:
    """A good example that may no longer be one."""

    name: str
    """Of the change."""
    source: str


def mutants(example: Good, kinds: Collection[str] = CHANGES) -> Iterator[Mutant]:
    """Every change of these kinds that can be made to the example, one at a time."""
    tree = ast.parse(example.source)
    before = ast.unparse(tree)
    for name in CHANGES:
        for _ in _changed(tree, name) if name in kinds else ():
            after = ast.unparse(tree)
            if after != before and _compiles(after):
                yield Mutant(name, f"{after}\n")


def _changed(tree: ast.AST, name: str) -> Iterator[None]:
    """The tree is changed at each turn, and is as before in the end."""
    for node in list(ast.walk(tree)):
        for field, value in list(ast.iter_fields(node)):
            for other in _others(node, value, name):
                setattr(node, field, other)
                yield
            setattr(node, field, value)


def _others(node: ast.AST, value: object, name: str) -> Iterator[object]:
    """What the change makes of a field of the node."""
    if isinstance(value, ast.AST) and name in PARTS:
        yield from PARTS[name](value)
    if not isinstance(value, list) or not value:
        return
    if name in BLOCKS and isinstance(value[0], ast.stmt):
        yield from (block or [ast.Pass()] for block in BLOCKS[name](node, value))
    for at, each in enumerate(value):
        if isinstance(each, ast.AST) and name in PARTS:
            yield from ([*value[:at], other, *value[at + 1 :]] for other in PARTS[name](each))


def _compiles(source: str) -> bool:
    try:
        compile(source, "mutant", "exec")
    except SyntaxError:
        return False
    return True
