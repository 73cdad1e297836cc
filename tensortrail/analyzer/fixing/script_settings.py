"""Settings put into the source of a script: arguments of its calls."""

from __future__ import annotations

import ast
import builtins
import keyword
from collections.abc import Sequence

from tensortrail.analyzer.fixing.arguments import with_argument
from tensortrail.analyzer.fixing.fixer import compiles
from tensortrail.analyzer.fixing.importing import bound_names, with_import
from tensortrail.analyzer.fixing.origins import Refused, call_at, name_of, origin
from tensortrail.analyzer.reading.source import Source, Unreadable
from tensortrail.findings import Setting
from tensortrail.rules.unchanging import unchanging


@unchanging(frozen=True, slots=False)
class Patched:
    before: bytes
    after: bytes
    refused: tuple[tuple[Setting, str], ...] = ()
    """Settings that are not in it, each with the reason."""


@unchanging(frozen=True, slots=False)
class _Change:
    setting: Setting
    start: int
    end: int
    function: str
    """Of the call that starts there; "" for the value of a dict display."""


def patched(path: str, data: bytes, settings: Sequence[Setting]) -> Patched:
    """The file with these settings, as far as nothing has to be guessed."""
    changes: list[_Change] = []
    refused: list[tuple[Setting, str]] = []
    after = data
    for setting in settings:
        try:
            changes.append(_change(path, data, setting))
        except Refused as why:
            refused.append((setting, str(why)))
    # From the last to the first: the places before one stay where they are.
    for change in sorted(changes, key=lambda each: each.start, reverse=True):
        try:
            if not change.function and any(_is_in(other, change) for other in changes):
                raise Refused("another setting changes a part of it")
            made = _made(path, after, change)
            if change.setting.imports:
                with_import(path, made, change.setting.imports)
            after = made
        except Refused as why:
            refused.append((change.setting, str(why)))
    left = [setting for setting, _ in refused]
    for statement in sorted(
        {each.imports for each in settings if each.imports and each not in left}
    ):
        after = with_import(path, after, statement)
    return Patched(data, after, tuple(refused))


def _change(path: str, data: bytes, setting: Setting) -> _Change:
    try:
        source = Source(path, data)
    except Unreadable as error:
        raise Refused(str(error)) from error
    if not source.editable:
        raise Refused(f"the file is {source.encoding}, not UTF-8")
    tree = _parsed(data)
    if setting.at is None or not setting.call:
        raise Refused("the call that takes it is not known")
    call = call_at(tree, setting.at, setting.call)
    _check_names(tree, setting)
    place = origin(tree, call, setting.name, setting.position)
    return _Change(setting, *source.span(place.node), place.function)


def _check_names(tree: ast.Module, setting: Setting) -> None:
    """The value is written into this file: what it speaks of must be known there."""
    if not setting.name.isidentifier() or keyword.iskeyword(setting.name):
        raise Refused("its name is not that of an argument")
    try:
        value = ast.parse(setting.value, mode="eval")
        brought = bound_names(ast.parse(setting.imports))
    except SyntaxError as error:
        raise Refused("the value is not an expression") from error
    known = bound_names(tree) | brought | set(dir(builtins))
    for node in ast.walk(value):
        if isinstance(node, ast.Name) and node.id not in known:
            raise Refused(f"{node.id} is not imported in this file")


def _made(path: str, data: bytes, change: _Change) -> bytes:
    setting, start, end = change.setting, change.start, change.end
    text = setting.value
    if change.function:
        start, end = _span_now(path, data, change)
        old = data[start:end].decode("utf-8", "replace")
        position = setting.position if change.function == setting.call else -1
        text = with_argument(old, setting.name, setting.value, position)
    new = data[:start] + text.encode() + data[end:]
    if ast.dump(_parsed(new)) == ast.dump(_parsed(data)):
        raise Refused("the source says so already")
    if not compiles(new):
        raise Refused("the file would not compile")
    return new


def _span_now(path: str, data: bytes, change: _Change) -> tuple[int, int]:
    """Where the call stands after what was changed inside of it."""
    source = Source(path, data)
    for node in ast.walk(_parsed(data)):
        if isinstance(node, ast.Call) and name_of(node) == change.function:
            span = source.span(node)
            if span[0] == change.start:
                return span
    raise Refused("the call is not where it was")


def _is_in(inner: _Change, outer: _Change) -> bool:
    return inner is not outer and outer.start <= inner.start < outer.end


def _parsed(data: bytes) -> ast.Module:
    try:
        return ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Refused("the file does not parse") from error
