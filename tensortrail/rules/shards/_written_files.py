"""Files that a function writes under a name that is the same in every process."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

from tensortrail.patterns import pattern
from tensortrail.rules.shared.functions import names_of_parameters
from tensortrail.rules.shared.objects import called, is_self, keyword, receiver, unpacks
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.view import Module
from tensortrail.rules.words import Kind

_WRITERS = {"torch.save": ("obj", "f"), "safetensors.torch.save_file": ("tensors", "filename")}
"""What they call what is written, and the file."""
_PRETRAINED = "save_pretrained"
_JOINS = frozenset({"os.path.join", "pathlib.Path", "str", "os.fspath", "int"})
_COUNTS = frozenset({"range", "enumerate"})
MAY_DIFFER = pattern(
    r"rank|local|proc|worker|node|host|pid|uuid|time|temp|tmp|shard|part|device|gpu|world|master"
    r"|main|index|seed|null",
    re.IGNORECASE,
)
"""What may tell the file of one process from those of the others, or the process that writes."""


class Writer(NamedTuple):
    call: ast.Call
    path: ast.expr
    is_pretrained: bool = False
    """Written by `save_pretrained`, as all of it is in each process."""


def writer_of(module: Module, call: ast.Call) -> Writer | None:
    """The call, if it writes tensors into a file, whichever process runs it."""
    names = _WRITERS.get(module.qualified(call.func))
    if names is not None:
        what, path = (module.argument(call, *each) for each in enumerate(names))
        own = what is not None and MAY_DIFFER.search(module.text(what)) is not None
        return Writer(call, path) if path is not None and not own else None
    return _saved_pretrained(module, call) if called(call) == _PRETRAINED else None


def _saved_pretrained(module: Module, call: ast.Call) -> Writer | None:
    """A model, and not its tokenizer, without a word on which process writes."""
    owner, path = receiver(call), module.argument(call, 0, "save_directory")
    by_one = keyword(call, "is_main_process") is not None or unpacks(call)
    is_model = owner is not None and _is_model(module, owner)
    return Writer(call, path, is_pretrained=True) if path and is_model and not by_one else None


def _is_model(module: Module, owner: ast.expr) -> bool:
    value, made = module.value_of(owner), behind(module, owner)
    unwrapped = isinstance(made, ast.Call) and called(made).startswith("unwrap")
    inner = isinstance(made, ast.Attribute) and made.attr == "module"
    return unwrapped or inner or (value.sure and value.is_only(Kind.MODULE))


def decided_by(module: Module, path: ast.expr, depth: int = 6) -> frozenset[str] | None:
    """The parameters of the function that decide the name of the file; what else it is made of is
    the same in every process: constants, settings, what a loop counts. None if it may differ."""
    if MAY_DIFFER.search(module.text(path)) or not depth:
        return None
    match path:
        case ast.Constant():
            return frozenset()
        case ast.Attribute():
            return None if _is_kept_apart(module, path) else frozenset()
        case ast.JoinedStr(values=parts):
            shown = [each.value for each in parts if isinstance(each, ast.FormattedValue)]
            return _all_of(module, shown, depth)
        case ast.BinOp(left=left, right=right):
            return _all_of(module, [left, right], depth)
        case ast.Call():
            given = [*path.args, *(each.value for each in path.keywords)]
            known = module.qualified(path.func) in _JOINS
            return _all_of(module, given, depth) if known else None
        case ast.Name():
            return _of_name(module, path, depth)
    return None


def _all_of(module: Module, parts: list[ast.expr], depth: int) -> frozenset[str] | None:
    found = [decided_by(module, each, depth - 1) for each in parts]
    known = [each for each in found if each is not None]
    return frozenset[str]().union(*known) if len(known) == len(found) else None


def _of_name(module: Module, name: ast.Name, depth: int) -> frozenset[str] | None:
    if isinstance(module.value_of(name).constant, str) or _is_counted(module, name):
        return frozenset()
    made = module.value_of(name).origins
    function = module.function_of(name)
    if not made and function is not None and name.id in names_of_parameters(function):
        return frozenset({name.id})
    if not made or any(each is name or not isinstance(each, ast.expr) for each in made):
        return None
    return _all_of(module, list(made), depth)


def _is_kept_apart(module: Module, attribute: ast.Attribute) -> bool:
    """The class puts into the attribute what may differ between processes."""
    cls = module.class_of(attribute)
    if cls is None or not is_self(attribute.value):
        return False
    stores = (each for each in module.members(attribute.attr, cls) if is_self(each.value))
    kept = [module.statement_of(each) for each in stores if isinstance(each.ctx, ast.Store)]
    return any(MAY_DIFFER.search(module.text(each)) for each in kept)


def _is_counted(module: Module, name: ast.Name) -> bool:
    """The variable of a loop over `range`, or that `enumerate` counts with."""
    loops = [each for each in module.ancestors(name) if isinstance(each, ast.For)]
    return any(
        isinstance(each.iter, ast.Call)
        and module.qualified(each.iter.func) in _COUNTS
        and isinstance(counter := _counter(each.target), ast.Name)
        and counter.id == name.id
        for each in loops
    )


def _counter(target: ast.expr) -> ast.expr:
    return target.elts[0] if isinstance(target, ast.Tuple) and target.elts else target
