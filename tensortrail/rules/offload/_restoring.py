"""Statements after a `yield` that put back where things are, and what stays if they never run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.rules import Module
from tensortrail.rules.shared.sentences import one_line

_STATE = re.compile(
    r"offload|onload|device|hook|\bforward\b|requires_grad|param|weight|placement|materiali[sz]e"
    r"|state_dict|\.data\b|_disabled|\.(to|cpu|cuda)\b",
    re.IGNORECASE,
)
_HARMLESS = re.compile(
    r"barrier|log|print|time|perf_counter|synchroni[sz]e|profil|record|report|assert|warn|progress"
    r"|elapsed|memory_allocated|memory_stats|memory_reserved|peak|tqdm|set_description|save|dump",
    re.IGNORECASE,
)
_FREES = re.compile(r"(^|\.)(is_\w*available|empty_cache|ipc_collect|collect|[Rr]ange_?[Pp]op)$")
"""Questions, calls that free memory, marks for a profiler: nothing stays wrong without them."""
_OF_NUMBERS = "torch.backends."
"""Switches of how exact and how fast operations are, not of where anything is."""
_LONGEST = 10
"""Statements: more than these do work of their own."""
_GOING_ON = (ast.Return, ast.Raise, ast.Pass, ast.Assert, ast.FunctionDef, ast.Yield)


def restores(module: Module, statement: ast.stmt) -> bool:
    if isinstance(statement, _GOING_ON) or _HARMLESS.search(module.text(statement)):
        return False
    stored = list(_stored(module, statement))
    calls = [each.func for each in _calls(statement)]
    loops = [each.iter for each in ast.walk(statement) if isinstance(each, ast.For)]
    if not stored and not calls and not isinstance(statement, ast.Delete):
        return False
    if stored and all(module.qualified(each).startswith(_OF_NUMBERS) for each in stored):
        return False
    if isinstance(statement, ast.Assign) and not stored:
        return False  # a name of this function: something is looked at, and nothing put back
    if any(_is_counted_on(module, each) for each in stored):
        return False
    said = [ast.unparse(each) for each in (*calls, *loops, *stored)]
    return bool(_STATE.search(" ".join((*said, *map(module.qualified, calls)))))


def _is_counted_on(module: Module, target: ast.expr) -> bool:
    """`x.ratio = min(1, x.ratio + 0.1)`, which was not changed before: a sum goes on, and nothing
    is put back."""
    statement, told = module.statement_of(target), module.text(target)
    if not isinstance(statement, ast.Assign):
        return False
    sums = (each for each in ast.walk(statement.value) if isinstance(each, ast.BinOp))
    goes_on = any(told in (ast.unparse(each.left), ast.unparse(each.right)) for each in sums)
    before = (each.targets for each in module.earlier(statement, ast.Assign))
    return goes_on and not any(module.text(each) == told for targets in before for each in targets)


def _calls(statement: ast.stmt) -> list[ast.Call]:
    """Those that may put something back."""
    made = (each for each in ast.walk(statement) if isinstance(each, ast.Call))
    return [each for each in made if not _FREES.search(ast.unparse(each.func))]


def is_switch_of_file(module: Module, statement: ast.stmt) -> bool:
    """`enabled = before` of a global name: the model of the caller is left as it was."""
    stored = list(_stored(module, statement))
    return all(isinstance(each, ast.Name) for each in stored) and not _calls(statement)


def is_set_back(module: Module, node: ast.Yield, statement: ast.stmt) -> bool:
    """`x.y = before`, where `before` was taken from `x.y` ahead of the `yield`."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Attribute):
        return False
    target, saved = statement.targets[0], statement.value
    return isinstance(saved, ast.Name) and any(
        isinstance(each.targets[0], ast.Name)
        and each.targets[0].id == saved.id
        and module.text(each.value) == module.text(target)
        for each in module.earlier(node, ast.Assign)
    )


def left_undone(module: Module, statement: ast.stmt) -> str:
    """What stays wrong, in words: the first thing that is put back, or the call that does it."""
    stored = [each for each in _stored(module, statement) if not isinstance(each, ast.Subscript)]
    if stored:
        return f"`{one_line(module, stored[0])}` is not put back"
    calls = _calls(statement)
    if not calls:
        return f"`{one_line(module, statement)}` never runs"
    call = min(calls, key=lambda each: _is_beside_the_point(module, each))
    return f"`{one_line(module, call)}` is never called"


def _is_beside_the_point(module: Module, call: ast.Call) -> tuple[bool, bool]:
    """Beside calls that are statements of their own, and name what they put back."""
    alone = isinstance(module.parent(call), ast.Expr)
    named = f"{ast.unparse(call.func)} {module.qualified(call.func)}"
    return not alone, not _STATE.search(named)


def is_work(statement: ast.stmt) -> bool:
    """The statement does more than to restore: it is long, or leaves the function."""
    below = [each for each in ast.walk(statement) if isinstance(each, ast.stmt)]
    leaves = any(isinstance(each, (ast.Return, ast.Yield, ast.Raise)) for each in below)
    return leaves or len(below) > _LONGEST


def _stored(module: Module, statement: ast.stmt) -> Iterator[ast.expr]:
    """Attributes, items and global names that the statement assigns to."""
    function = module.function_of(statement)
    declared = module.nodes(ast.Global, function) if function is not None else ()
    shared = {name for each in declared for name in each.names}
    for each in ast.walk(statement):
        held = isinstance(each, (ast.Attribute, ast.Subscript))
        named = isinstance(each, ast.Name) and each.id in shared
        if (held or named) and isinstance(getattr(each, "ctx", None), ast.Store):
            assert isinstance(each, ast.expr)
            yield each
