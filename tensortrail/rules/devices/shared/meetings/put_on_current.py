"""What a function puts on the current GPU, and takes together with tensors of its caller."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Fix, Safety
from tensortrail.rules import Module
from tensortrail.rules.devices.shared.meetings.following import is_only_believed
from tensortrail.rules.devices.shared.meetings.lying import out_of_place
from tensortrail.rules.devices.shared.named.decided_by import decided
from tensortrail.rules.devices.shared.named.devices_said import is_in_a_file_that_asks_tensors
from tensortrail.rules.devices.shared.written_for.callers import is_brought_to_the_gpu
from tensortrail.rules.devices.shared.written_for.device_aware import is_of_module
from tensortrail.rules.devices.shared.written_for.used_here import is_used_elsewhere
from tensortrail.rules.places import Place, Where
from tensortrail.rules.shared.mends import device_given
from tensortrail.rules.view import FunctionNode


def puts_that_meet(
    module: Module, function: FunctionNode, reported: set[ast.AST]
) -> Iterator[tuple[ast.Call, ast.expr, Place]]:
    """What is put there, the operation, and the place of the other tensor; each once, and one of a
    line."""
    lines = set[int]()
    for meeting in module.places(function).meetings:
        found = out_of_place(module, function, meeting, Where.LITERAL)
        if found is None or found[1].where not in (Where.SELF, Where.OF):
            continue
        put, there = found
        if there.where is Where.SELF and not is_of_module(module, function):
            continue  # a parameter of its own
        if put.subject == "cpu" or not isinstance(put.by, ast.Call) or put.by in reported:
            continue
        if decided(module, put.by, "device") or is_only_believed(module, function, there):
            continue
        reported.add(put.by)
        if put.by.lineno in lines:
            continue  # `(x.cuda() + y).cuda()`
        lines.add(put.by.lineno)
        yield put.by, meeting.node, there


def is_surely_elsewhere(
    module: Module, function: FunctionNode, put: ast.Call, there: Place
) -> bool:
    """The other tensor may be on another device in a program that the project has."""
    sure = is_used_elsewhere(module, put) or (
        is_in_a_file_that_asks_tensors(module, function)
        and not module.is_for_current_gpu()
        and (module.may_use_cpu() or module.numbered_gpu() is not None)
    )
    sure = sure and not module.sets_current_gpu()
    return sure and not is_brought_to_the_gpu(module, function, there)


def put_on(module: Module, put: ast.Call, device: str) -> Fix | None:
    if not device:
        return None
    said = next((each.value for each in put.keywords if each.arg == "device"), None)
    if said is not None:
        edit = module.replace(said, device)
    elif isinstance(put.func, ast.Name) and (passed := device_given(module, put, device)):
        edit = passed  # a call that leaves the device to the function
    elif isinstance(put.func, ast.Attribute) and put.func.attr in ("cuda", "to"):
        edit = module.replace(put, f"{module.text(put.func.value)}.to({device})")
    else:
        return None
    return module.fix(f"put it on `{device}`", Safety.UNSAFE, edit)
