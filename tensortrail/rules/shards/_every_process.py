"""Files that every process of a run writes under one name."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tensortrail.rules.shards._run_by_all import comes_with, is_of_some, is_under_a_rank, together
from tensortrail.rules.shards._written_files import MAY_DIFFER, decided_by, writer_of
from tensortrail.rules.shared.callees import asked_of_callee
from tensortrail.rules.shared.functions import parameters
from tensortrail.rules.shared.objects import given
from tensortrail.rules.shared.sentences import one_line
from tensortrail.rules.view import Module

_Parameters = tuple[tuple[int, str], ...]


class Write(NamedTuple):
    """A write in a function of the project, as others ask about it."""

    path: str
    line: int
    shown: str
    """The name of the file, as written there."""
    is_pretrained: bool
    decided_by: _Parameters
    """The parameters of the function, by position, on which the name depends."""


_Question = Callable[[Module, ast.AST], tuple[Write, ...]]


class Written(NamedTuple):
    call: ast.Call
    """The write itself, or the call that comes to it."""
    together: ast.Call
    """What every process comes to in the same function."""
    write: Write


def written_by_every_process(module: Module) -> Iterator[Written]:
    shared = list(together(module))
    seen: set[tuple[str, int]] = set()
    for call in module.nodes(ast.Call) if shared else ():
        joint = next((each for each in shared if comes_with(module, each, call)), None)
        if joint is None or joint is call or is_of_some(module, call):
            continue
        for write in _writes(module, call, _in_two):
            if not write.decided_by and (write.path, write.line) not in seen:
                seen.add((write.path, write.line))
                yield Written(call, joint, write)


def written_here(module: Module, found: Written) -> ast.Call | None:
    """The call of this file that writes."""
    if found.write.path != module.path:
        return None
    at_line = (each for each in module.nodes(ast.Call) if each.lineno == found.write.line)
    return next((each for each in at_line if writer_of(module, each) is not None), None)


def _writes(module: Module, call: ast.Call, inside: _Question | None) -> Iterator[Write]:
    """What the call writes, or the function of the project that it runs."""
    writer = writer_of(module, call)
    if writer is not None:
        names = decided_by(module, writer.path)
        if names is not None:
            shown = one_line(module, writer.path)
            parts = _positions(module, call, names)
            yield Write(module.path, call.lineno, shown, writer.is_pretrained, parts)
    elif inside is not None and not any(
        MAY_DIFFER.search(module.text(each)) for each in given(call)
    ):
        for write in asked_of_callee(module, call, inside) or ():
            names = _decided_here(module, call, write)
            if names is not None:
                parts = _positions(module, call, names)
                yield write._replace(shown=_shown(module, call, write), decided_by=parts)


def _shown(module: Module, call: ast.Call, write: Write) -> str:
    """The argument, where the function writes under the name that it is given."""
    named = next((each for each in write.decided_by if each[1] == write.shown), None)
    given = module.argument(call, *named) if named is not None else None
    return one_line(module, given) if given is not None else write.shown


def _decided_here(module: Module, call: ast.Call, write: Write) -> frozenset[str] | None:
    """The parameters of the function around the call that decide the name."""
    parts = [module.argument(call, *each) for each in write.decided_by]
    names = [decided_by(module, each) for each in parts if each is not None]
    known = [each for each in names if each is not None]
    return frozenset[str]().union(*known) if len(known) == len(parts) else None


def _positions(module: Module, call: ast.Call, names: frozenset[str]) -> _Parameters:
    function = module.function_of(call)
    taken = [each.arg for each in parameters(function)] if function is not None else []
    bound = taken[:1] in (["self"], ["cls"])
    return tuple((at, each) for at, each in enumerate(taken[bound:]) if each in names)


def _in_two(module: Module, function: ast.AST) -> tuple[Write, ...]:
    return _below(module, function, _in_one)


def _in_one(module: Module, function: ast.AST) -> tuple[Write, ...]:
    return _below(module, function, None)


def _below(module: Module, function: ast.AST, inside: _Question | None) -> tuple[Write, ...]:
    """What the function writes in whichever process it runs."""
    if _may_choose(module, function):
        return ()
    return tuple(
        each
        for call in module.nodes(ast.Call, function)
        if module.function_of(call) is function and not is_under_a_rank(module, call)
        for each in _writes(module, call, inside)
    )


def _may_choose(module: Module, function: ast.AST) -> bool:
    """A decorator that is not of torch may run the function in one process only."""
    decorators = getattr(function, "decorator_list", [])
    names = [module.qualified(getattr(each, "func", each)) for each in decorators]
    return not all(each.startswith("torch.") or each in _PLAIN for each in names)


_PLAIN = frozenset({"staticmethod", "classmethod"})
