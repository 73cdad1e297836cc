"""One more import at the top of a file."""

from __future__ import annotations

import ast

from tensortrail.analyzer.fixing.origins import Refused
from tensortrail.analyzer.reading.source import Source


def with_import(path: str, data: bytes, statement: str) -> bytes:
    """The file with this `from ... import ...`, after the imports that it begins with."""
    tree, wanted = ast.parse(data), ast.parse(statement).body[0]
    if not isinstance(wanted, ast.ImportFrom) or len(wanted.names) != 1:
        raise Refused(f"{statement} is not an import of one name")
    (name,) = wanted.names
    same = (each for each in tree.body if isinstance(each, ast.ImportFrom))
    if any(_brings(each, wanted.module, name.name) for each in same):
        return data
    if name.name in bound_names(tree):
        raise Refused(f"{name.name} is another thing in this file")
    source = Source(path, data)
    newline = b"\r\n" if b"\r\n" in data else b"\n"
    last = _last_of_head(tree)
    if last is None:
        at = source.offset(1, 0)
        if data[at : at + 2] == b"#!" or b"coding" in data[: data.find(newline)]:
            raise Refused("the file begins with what must come first")
        return data[:at] + statement.encode() + newline + data[at:]
    _, end = source.span(last)
    rest = data.find(b"\n", end)
    if rest < 0 or data[end:rest].strip().startswith(b";"):
        raise Refused("the imports of the file do not end their line")
    return data[: rest + 1] + statement.encode() + newline + data[rest + 1 :]


def _brings(each: ast.ImportFrom, module: str | None, name: str) -> bool:
    plain = any(alias.name == name and alias.asname in (None, name) for alias in each.names)
    return each.module == module and not each.level and plain


def _last_of_head(tree: ast.Module) -> ast.stmt | None:
    """The last statement of the docstring and the imports that a file begins with."""
    last = None
    for each in tree.body:
        is_text = isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
        if not isinstance(each, (ast.Import, ast.ImportFrom)) and not (is_text and last is None):
            break
        last = each
    return last


def bound_names(tree: ast.Module) -> set[str]:
    """Everything that has a name somewhere in the file."""
    found: set[str] = set()
    for each in ast.walk(tree):
        if isinstance(each, (ast.Import, ast.ImportFrom)):
            found |= {alias.asname or alias.name.partition(".")[0] for alias in each.names}
        elif isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(each.name)
        elif isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load):
            found.add(each.id)
        elif isinstance(each, ast.arg):
            found.add(each.arg)
    return found
