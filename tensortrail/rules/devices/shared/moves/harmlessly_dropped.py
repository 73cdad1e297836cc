"""Why nothing comes of it that the result of a move is dropped."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules import Module
from tensortrail.rules.defaults import with_defaults
from tensortrail.rules.devices.shared.moves.goes_on_in_numpy import goes_on_in_numpy
from tensortrail.rules.devices.shared.moves.what_is_moved import arguments, what_is_moved
from tensortrail.rules.shared.never_given import is_never_given
from tensortrail.rules.shared.objects import called, is_none
from tensortrail.rules.shared.origins import behind


def is_deleted_next(module: Module, call: ast.Call) -> bool:
    """`x.cpu(); del x`: nothing reads from there what was not moved."""
    moved, statement = module.text(what_is_moved(call)), module.statement_of(call)
    deletes = [
        each
        for each in module.later(statement, ast.Delete)
        if module.parent(each) is module.parent(statement)
        and moved in {module.text(target) for target in each.targets}
    ]
    kind = ast.Attribute if "." in moved else ast.Name
    reads = (
        each
        for each in module.later(statement, kind)
        if isinstance(each.ctx, ast.Load) and module.text(each) == moved  # type: ignore[attr-defined]
    )
    return bool(deletes) and all(each.lineno > deletes[0].lineno for each in reads)


def is_done_with(module: Module, call: ast.Call) -> bool:
    """`x = rows.reshape(-1)`, and `x.cpu()` after its last use: it was to free memory, and the
    memory is freed when the function ends."""
    moved, function = what_is_moved(call), module.function_of(call)
    if not isinstance(moved, ast.Name) or function is None:
        return False
    origins = module.value_of(moved).origins
    made = bool(origins) and all(map(_is_made, origins))
    uses = module.uses(moved.id, function)
    inside = all(module.function_of(each) is function for each in uses)
    later = (each for each in module.later(module.statement_of(call), ast.Name))
    read = any(each.id == moved.id and isinstance(each.ctx, ast.Load) for each in later)
    return made and inside and not read


def is_read_by_numpy(module: Module, call: ast.Call) -> bool:
    moved = what_is_moved(call)
    if not isinstance(moved, ast.Name) or called(call) == "cpu":
        return False
    return goes_on_in_numpy(module, module.statement_of(call), moved.id)


def _is_made(node: ast.expr) -> bool:
    """A result of a call, or None."""
    if isinstance(node, ast.IfExp):
        return _is_made(node.body) and _is_made(node.orelse)
    return isinstance(node, ast.Call) or is_none(node)


def is_loaded_anyway(module: Module, call: ast.Call) -> bool:
    """`state["weight"].to(device)` of a state that a module loads: it copies the values to where
    its own are."""
    subject = what_is_moved(call)
    held = subject.value if isinstance(subject, ast.Subscript) else None
    if not isinstance(held, ast.Name):
        return False
    return any(
        any(isinstance(each, ast.Name) and each.id == held.id for each in taker.args)
        for taker in module.calls("load_state_dict", inside=module.function_of(call))
    )


def is_in_order(call: ast.Call) -> bool:
    """`x.contiguous()` alone: what comes out has the values of `x`, and often is `x`."""
    func = call.func
    alone = isinstance(func, ast.Attribute) and not isinstance(func.value, ast.Call)
    return alone and called(call) == "contiguous" and not (call.args or call.keywords)


def was_moved(module: Module, call: ast.Call) -> bool:
    """`x = x.to(a.device)`, then `x.to(b.device)`: to be taken together with it, `a` lies there."""
    origins = module.value_of(what_is_moved(call)).origins
    return _is_to_another(call) and len(origins) == 1 and any(_links(origins[0]))


def is_moved_by_its_class(module: Module, call: ast.Call) -> bool:
    """`self.x.to(device)`, where another method says `self.x = self.x.to(device)`."""
    cls, shown = module.class_of(call), module.text(call)
    subject = module.text(what_is_moved(call))
    return cls is not None and any(
        module.text(each.value) == shown and module.text(each.targets[0]) == subject
        for each in module.nodes(ast.Assign, cls)
    )


def is_frozen_next(module: Module, call: ast.Call) -> bool:
    """`p.detach()`, and then `p.requires_grad = False`, which does what was meant."""
    subject = module.text(what_is_moved(call))
    return called(call) == "detach" and any(
        module.text(each.targets[0]) == f"{subject}.requires_grad"
        and isinstance(each.value, ast.Constant)
        and each.value.value is False
        for each in module.later(module.statement_of(call), ast.Assign)
    )


def _links(node: ast.expr) -> Iterator[bool]:
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        yield _is_to_another(node)
        node = node.func.value


def _is_to_another(call: ast.Call) -> bool:
    """`.to(a.device)`: where another tensor lies."""
    asked = list(arguments(call)) if called(call) == "to" else []
    return any(isinstance(each, ast.Attribute) and each.attr == "device" for each in asked)


def is_made_like_another(module: Module, call: ast.Call) -> bool:
    """`zeros_like(x)` lies where `x` does, which may be the device that is asked for."""
    made = [behind(module, each) for each in module.value_of(what_is_moved(call)).origins]
    wrapped = [each.args[0] for each in made if isinstance(each, ast.Call) and each.args]
    return any(
        isinstance(each, ast.Call)
        and module.qualified(each.func).endswith("_like")
        and not any(keyword.arg == "device" for keyword in each.keywords)
        for each in (*made, *wrapped)
    )


def is_replaced_next(module: Module, call: ast.Call) -> bool:
    """`x.to(device)`, then `x = ...` or `x.data = ...` before anything reads it."""
    subject = module.text(what_is_moved(call))
    own = (subject, f"{subject}.data")
    end = (call.end_lineno or call.lineno, call.end_col_offset or 0)
    nodes: list[ast.Name | ast.Attribute] = [*module.later(call, ast.Name)]
    nodes += module.later(call, ast.Attribute)
    uses = [each for each in nodes if module.text(each) in own and _place(each) >= end]
    first = min(uses, key=_place, default=None)
    return first is not None and isinstance(first.ctx, ast.Store)


def is_left_to_its_default(module: Module, call: ast.Call) -> bool:
    """A parameter that may be left out, as every call of the project does."""
    function, root = module.function_of(call), what_is_moved(call)
    if function is None or not isinstance(root, ast.Name):
        return False
    left_out = {each.arg for each, _ in with_defaults(function.args)}
    return root.id in left_out and is_never_given(module, function, root.id)


def _place(node: ast.expr) -> tuple[int, int, int]:
    """Of those that begin at one place the longest comes first."""
    return node.lineno, node.col_offset, -(node.end_col_offset or 0)


def is_answered(module: Module, call: ast.Call) -> bool:
    """`mask = chosen(x)`, then `mask.to(x.device)`: a function of the project may have made it
    there."""
    origins = module.value_of(what_is_moved(call)).origins
    return _is_to_another(call) and any(
        isinstance(each, ast.Call) and module.is_of_project(each) for each in origins
    )
