"""Files that every process of a run writes under one name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.patterns import pattern
from tensortrail.rules.shards._of_all_ranks import made_by_all
from tensortrail.rules.shared.functions import called_here
from tensortrail.rules.shared.objects import calls_in, is_self, keyword, receiver
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.shared.parallel_wrappers import AVERAGING
from tensortrail.rules.shared.ranks import asks_for_rank, mentions_rank
from tensortrail.rules.view import FunctionNode, Module

_WRITERS = {"torch.save": ("obj", "f"), "safetensors.torch.save_file": ("tensors", "filename")}
"""What they call what is written, and the file."""
_JOINS = frozenset({"os.path.join", "pathlib.Path", "str", "os.fspath"})
_OWN = pattern(
    r"rank|local|proc|worker|node|host|pid|uuid|time|temp|tmp|shard|part|device|gpu|world|master"
    r"|main|index|seed|null",
    re.IGNORECASE,
)
"""What may tell the file of one process from those of the others, or the process that writes."""


class Written(NamedTuple):
    call: ast.Call
    path: ast.expr
    together: ast.Call
    """What every process comes to in the same function."""


def written_by_every_process(module: Module) -> Iterator[Written]:
    shared = list(_together(module))
    for call, path, what in _writers(module) if shared else ():
        together = next((each for each in shared if _goes_with(module, each, call)), None)
        if together is None or _is_of_some(module, call) or _OWN.search(module.text(what)):
            continue
        if _is_the_same(module, path):
            yield Written(call, path, together)


def _goes_with(module: Module, together: ast.Call, call: ast.Call) -> bool:
    """Whoever comes to the save comes to the other call: it is under no other condition."""
    if module.function_of(together) is not module.function_of(call):
        return False
    here = {(module.text(each.test), each.holds) for each in module.guards_of(call)}
    there = {(module.text(each.test), each.holds) for each in module.guards_of(together)}
    return there <= here


def _writers(module: Module) -> Iterator[tuple[ast.Call, ast.expr, ast.expr]]:
    """The call, the name of the file, and what is written."""
    for call in module.calls("save", "save_file"):
        names = _WRITERS.get(module.qualified(call.func))
        what = module.argument(call, 0, names[0]) if names else None
        path = module.argument(call, 1, names[1]) if names else None
        if what is not None and path is not None:
            yield call, path, what


def _together(module: Module) -> Iterator[ast.Call]:
    """Unguarded calls that all processes make: of a collective, or of what joins the group."""
    joins = [*module.calls("torch.distributed.init_process_group"), *module.calls(*AVERAGING)]
    joins = [each for each in joins if keyword(each, "world_size") is None]
    for call in (*joins, *made_by_all(module)):
        if not _is_of_some(module, call):
            yield call


def _is_of_some(module: Module, call: ast.Call) -> bool:
    """A condition before it asks for the rank; or one before each call of its function does."""
    if _is_under_a_rank(module, call):
        return True
    function = module.function_of(call)
    name = function.name if function is not None else ""
    callers = [
        each
        for each in module.calls(name)
        if _runs(module, each, function) and module.qualified(each.func) not in _WRITERS
    ]
    return bool(callers) and all(
        module.function_of(each) is not None and _is_under_a_rank(module, each) for each in callers
    )  # behind `__name__ == "__main__"` all processes come to it


def _runs(module: Module, call: ast.Call, function: FunctionNode | None) -> bool:
    """It calls the function, also as `self.save()` where another class has a `save` too."""
    owner = receiver(call)
    own_class = module.class_of(call) if owner is not None and is_self(owner) else None
    if function is not None and own_class is not None and module.parent(function) is own_class:
        return True
    return called_here(module, call) is function


def _is_under_a_rank(module: Module, call: ast.Call) -> bool:
    """A condition before it asks for the rank, or for what may stand for it."""
    return any(
        asks_for_rank(module, each.test)
        or mentions_rank(module, each.test)
        or any(_OWN.search(text) for text in _behind(module, each.test))
        for each in module.guards_of(call)
    )


def _behind(module: Module, test: ast.expr) -> Iterator[str]:
    """The condition, and what its variables were made of."""
    yield module.text(behind(module, test))
    for each in ast.walk(test):
        if isinstance(each, ast.Name):
            yield module.text(behind(module, each))
        elif isinstance(each, ast.Attribute):
            yield from _given_to(module, module.text(each))


def _given_to(module: Module, attribute: str) -> Iterator[str]:
    """What the file binds `args.saves` to, with the functions of the file that it asks."""
    for statement in module.nodes(ast.Assign):
        if any(module.text(each) == attribute for each in statement.targets):
            yield from _with_the_asked(module, statement.value)


def _with_the_asked(module: Module, node: ast.AST, depth: int = 3) -> Iterator[str]:
    """Its text, and that of the functions of the file it calls, and of those these call."""
    yield module.text(node)
    for call in calls_in(module, node) if depth else ():
        asked = called_here(module, call)
        if asked is not None:
            yield from _with_the_asked(module, asked, depth - 1)


def _is_the_same(module: Module, path: ast.expr, depth: int = 6) -> bool:
    """The name of the file in every process: of constants, settings and what a loop counts. An
    argument, or what another function gives, may differ."""
    if _OWN.search(module.text(path)) or not depth:
        return False
    match path:
        case ast.Constant() | ast.Attribute():
            return True
        case ast.JoinedStr(values=parts):
            shown = [each.value for each in parts if isinstance(each, ast.FormattedValue)]
            return all(_is_the_same(module, each, depth - 1) for each in shown)
        case ast.BinOp(left=left, right=right):
            return all(_is_the_same(module, each, depth - 1) for each in (left, right))
        case ast.Call():
            parts = [*path.args, *(each.value for each in path.keywords)]
            known = module.qualified(path.func) in _JOINS
            return known and all(_is_the_same(module, each, depth - 1) for each in parts)
        case ast.Name():
            known = isinstance(module.value_of(path).constant, str) or _is_counted(module, path)
            return known or _is_made_the_same(module, path, depth)
    return False


def _is_made_the_same(module: Module, name: ast.Name, depth: int) -> bool:
    made = module.value_of(name).origins
    return bool(made) and all(
        isinstance(each, ast.expr) and each is not name and _is_the_same(module, each, depth - 1)
        for each in made
    )


def _is_counted(module: Module, name: ast.Name) -> bool:
    """The variable of a loop over `range`."""
    loops = [each for each in module.ancestors(name) if isinstance(each, ast.For)]
    return any(
        isinstance(each.target, ast.Name)
        and each.target.id == name.id
        and isinstance(each.iter, ast.Call)
        and module.qualified(each.iter.func) == "range"
        for each in loops
    )
