"""Numbers of NumPy and whole objects in a checkpoint, and the load that refuses them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.rules.shared.objects import is_false, is_self, keyword, unpacks
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.view import Module
from tensortrail.rules.words import NOT_CONSTANT, Kind

_GIVES_NUMPY = frozenset(
    "mean max min sum median std var average array asarray zeros ones arange linspace nanmean "
    "percentile quantile argmax argmin float32 float64 int64 concatenate stack".split()
)
_DEEPEST = 4


class Kept(NamedTuple):
    key: str
    made: ast.expr
    load: ast.Call


def numpy_kept(module: Module, save: ast.Call) -> Kept | None:
    """The first entry of the dict that is saved which is an object of NumPy, if the file loads
    that checkpoint as `torch.load` does by default."""
    data, path = module.argument(save, 0, "obj"), module.argument(save, 1, "f")
    shown = _dict_of(module, data) if data is not None else None
    load = _loaded(module, path) if shown is not None and path is not None else None
    if shown is None or load is None:
        return None
    for key, value in zip(shown.keys, shown.values, strict=True):
        made = _of_numpy(module, value, _DEEPEST)
        if made is not None and isinstance(key, ast.Constant):
            return Kept(str(key.value), made, load)
    return None


class Whole(NamedTuple):
    what: str
    load: ast.Call


def saved_whole(module: Module, save: ast.Call) -> Whole | None:
    """A module, or the object whose method saves, if the file loads it as `torch.load` does by
    default."""
    data, path = module.argument(save, 0, "obj"), module.argument(save, 1, "f")
    if data is None or path is None or not _is_an_object(module, data):
        return None
    if any(
        module.calls("torch.serialization.add_safe_globals", "torch.serialization.safe_globals")
    ):
        return None
    load = _loaded(module, path)
    return Whole(module.text(data), load) if load is not None else None


def _is_an_object(module: Module, data: ast.expr) -> bool:
    if is_self(data):
        return module.class_of(data) is not None
    return isinstance(data, (ast.Name, ast.Attribute)) and module.kind_of(data) is Kind.MODULE


def _dict_of(module: Module, data: ast.expr) -> ast.Dict | None:
    origins = module.value_of(data).origins if isinstance(data, ast.Name) else (data,)
    found = [each for each in origins if isinstance(each, ast.Dict)]
    return found[0] if len(found) == 1 else None


def _loaded(module: Module, path: ast.expr) -> ast.Call | None:
    """`torch.load` of the same path, without `weights_only=False` and with torch's own pickle."""
    path = _file_of(module, path)
    for call in module.calls("torch.load"):
        read = module.argument(call, 0, "f")
        if read is None or unpacks(call) or is_false(keyword(call, "weights_only")):
            continue
        if module.argument(call, 2, "pickle_module") is not None:
            continue
        read = _file_of(module, read)
        constants = [module.value_of(each).constant for each in (read, path)]
        same = constants[0] is not NOT_CONSTANT and constants[0] == constants[1]
        if same or module.text(read) == module.text(path):
            return call
    return None


def _file_of(module: Module, path: ast.expr) -> ast.expr:
    """`name` of `open(name, "rb")`."""
    made = behind(module, path)
    if not isinstance(made, ast.Call) or module.qualified(made.func) != "open":
        return path
    return module.argument(made, 0, "file") or path


def _of_numpy(module: Module, node: ast.expr, deep: int) -> ast.expr | None:
    """The call of NumPy that the value comes from, by names and functions of this file."""
    if isinstance(node, ast.Call):
        package, _, name = module.qualified(node.func).rpartition(".")
        if package == "numpy" and name in _GIVES_NUMPY:
            return node
    for source in _sources(module, node) if deep else ():
        if source is not node and (made := _of_numpy(module, source, deep - 1)) is not None:
            return made
    return None


def _sources(module: Module, node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.Name):
        yield from module.value_of(node).origins
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        for function in module.nodes(ast.FunctionDef):
            if function.name == node.func.id:
                returns = module.nodes(ast.Return, function)
                yield from (each.value for each in returns if each.value is not None)
