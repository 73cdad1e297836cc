"""A file that is saved and loaded by the same source: what goes in, and what takes it back."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.rules import Module
from tensortrail.rules.shards._wrapped import cuts_keys, prefix_by, wrapped_by
from tensortrail.rules.shared.objects import called, receiver

_READERS = ("load", "load_file")


class Load(NamedTuple):
    call: ast.Call
    fits: bool
    """It goes into a wrapper whose keys have the same prefix."""


def loads(module: Module, writer: ast.Call, state_dict: ast.expr, prefix: str) -> Iterator[Load]:
    """Every `load_state_dict` of what the writer's file holds of this state dict."""
    path, key = _path(module, writer), _saved_under(module, state_dict)
    for call in module.calls("load_state_dict") if path else ():
        if not call.args or _is_of_another(call.args[0], key):
            continue
        if any(_path(module, each) == path for each in _readers(module, call)):
            yield Load(call, _prefix_of(module, call) == prefix)


def is_read_without_prefix(module: Module, writer: ast.Call, prefix: str) -> bool:
    """A function of this source that loads the file cuts the prefix off its keys."""
    path = _path(module, writer)
    return bool(path) and any(
        _path(module, call) == path and cuts_keys(module, call, prefix)
        for name in _READERS
        for call in module.calls(name)
    )


def is_resumed(module: Module, wrapper: ast.expr, prefix: str) -> bool:
    """The function, or class, loads a file into the same wrapper: its files are of wrapped
    models."""
    shown, kept = module.text(wrapper), isinstance(wrapper, ast.Attribute)
    scope = module.class_of(wrapper) if kept else module.function_of(wrapper)
    return any(
        call.args
        and module.text(owner) == shown
        and next(_readers(module, call), None) is not None
        and _prefix_of(module, call) == prefix
        for call in module.calls("load_state_dict", inside=scope)
        if (owner := receiver(call)) is not None
    )


def loads_by_helper(module: Module, prefix: str) -> Iterator[Load]:
    """Every call of a function of the project that loads a state dict into what it is given."""
    for call in module.nodes(ast.Call):
        for each in module.states_loaded(call):
            yield Load(call, prefix_of(module, each) == prefix)


def _saved_under(module: Module, state_dict: ast.expr) -> str:
    """`"model"` of `{"model": m.state_dict()}`."""
    around = module.parent(state_dict)
    if not isinstance(around, ast.Dict) or state_dict not in around.values:
        return ""
    key = around.keys[around.values.index(state_dict)]
    return ast.unparse(key) if key is not None else ""


def _is_of_another(given: ast.expr, key: str) -> bool:
    """`checkpoint["optimizer"]`, where the state dict was saved under `"model"`."""
    return bool(key) and isinstance(given, ast.Subscript) and ast.unparse(given.slice) != key


def _path(module: Module, call: ast.Call) -> str:
    """The file as the source writes it: `"model.pt"`, `path`, `folder / name`."""
    position = 0 if called(call) in _READERS else 1
    node = module.argument(call, position, "f") or module.argument(call, position, "filename")
    return ast.unparse(node) if node is not None else ""


def _readers(module: Module, call: ast.Call) -> Iterator[ast.Call]:
    names = [node for node in ast.walk(call.args[0]) if isinstance(node, ast.Name)]
    origins = [origin for each in names for origin in module.value_of(each).origins]
    for part in (call.args[0], *origins):
        for node in ast.walk(part):
            if isinstance(node, ast.Call) and called(node) in _READERS:
                yield node


def _prefix_of(module: Module, call: ast.Call) -> str:
    owner = receiver(call)
    return prefix_of(module, owner) if owner is not None else ""


def prefix_of(module: Module, model: ast.expr) -> str:
    """What stands before the keys of the model, if it is a wrapper."""
    made = wrapped_by(module, model)
    return prefix_by(module, made) if made is not None else ""
