"""Which functions and classes of a file come to one of them, by the names in their texts."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from tensortrail.analyzer.facts.project_file import ProjectFile
from tensortrail.analyzer.facts.texts.mentions import is_named
from tensortrail.patterns import pattern
from tensortrail.rules.view import FunctionNode

_KEEP_NOTHING = pattern(
    r"(?:builtins\.)?(?:static|class)method$|(?:abc|contextlib|dataclasses|functools)\."
    r"|torch\.(?!library\.)"
)
_NAMED = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def coming_to(file: ProjectFile, outer: ast.ClassDef | FunctionNode) -> Sequence[str] | None:
    """The name of a function or class at the top of the file, and of all others there that come to
    it; None where something else of the file does, or one that a decorator may hand out."""
    tops = {each.name: each for each in file.tree.root.body if isinstance(each, _NAMED)}
    tops[outer.name] = outer
    spans = {name: file.source.span(each) for name, each in tops.items()}
    rest = _without(file.source.data, spans.values())
    texts = {name: file.source.data[start:end] for name, (start, end) in spans.items()}
    found = [outer.name]
    for name in found:
        if may_be_handed_out(file, tops[name]) or is_named(rest, name):
            return None
        found += [each for each in tops if each not in found and is_named(texts[each], name)]
    return found


def may_be_handed_out(file: ProjectFile, node: ast.ClassDef | FunctionNode) -> bool:
    """By a decorator that may keep a register."""
    called = (each.func if isinstance(each, ast.Call) else each for each in node.decorator_list)
    return not all(_KEEP_NOTHING.match(file.qualified(each)) for each in called)


def _without(text: bytes, spans: Iterable[tuple[int, int]]) -> bytes:
    kept, last = [], 0
    for start, end in sorted(spans):
        kept.append(text[last:start])
        last = max(last, end)
    return b"".join([*kept, text[last:]])
