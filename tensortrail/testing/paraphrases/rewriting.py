"""What every rewrite is made of: source in, other source out, or None where it does not apply."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Rewritten:
    source: str
    files: Mapping[str, str] = field(default_factory=dict)
    """Other files that the source now needs."""


Rewrite = Callable[[str], Rewritten | None]


def of_tree(change: Callable[[ast.Module], None]) -> Rewrite:
    """A rewrite that changes the tree in place."""

    def rewrite(source: str) -> Rewritten | None:
        tree = ast.parse(source)
        change(tree)
        return finished(tree, source)

    return rewrite


def finished(
    tree: ast.Module, source: str, files: Mapping[str, str] | None = None
) -> Rewritten | None:
    """The source of the changed tree; None if nothing has changed or it is no Python any more."""
    _give_lines(tree)
    after = ast.unparse(tree)
    if after == as_unparsed(source):
        return None
    try:
        compile(after, "paraphrase", "exec")
    except SyntaxError:
        return None
    return Rewritten(after + "\n", files or {})


def _give_lines(tree: ast.Module) -> None:
    """`ast` asks made statements for a line before it writes them, and nothing else."""
    for block in blocks(tree):
        for statement in block:
            if not hasattr(statement, "lineno"):
                statement.lineno = 0


@lru_cache(maxsize=8)
def as_unparsed(source: str) -> str:
    """The source as `ast` writes it: each rewrite of an example compares with it."""
    return ast.unparse(ast.parse(source))


def blocks(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    """Every list of statements, outer ones first."""
    todo: deque[ast.AST] = deque([tree])
    while todo:
        node = todo.popleft()
        for name in ("body", "handlers", "cases", "orelse", "finalbody"):
            block = getattr(node, name, [])
            todo.extend(block)
            if block and isinstance(block[0], ast.stmt):
                yield block


def replaced(block: list[ast.stmt], change: Callable[[ast.stmt], Sequence[ast.stmt]]) -> None:
    """Every statement of the block becomes those that `change` makes of it."""
    block[:] = [new for statement in list(block) for new in change(statement)]


def functions_of(tree: ast.Module) -> list[FunctionNode]:
    """The functions at the top of the file that carry no decorator."""
    return [each for each in tree.body if isinstance(each, FUNCTIONS) and not each.decorator_list]


def is_generator(function: FunctionNode) -> bool:
    return any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in ast.walk(function))


def after_docstring(body: list[ast.stmt]) -> int:
    first = body[0] if body else None
    is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return 1 if is_text else 0
