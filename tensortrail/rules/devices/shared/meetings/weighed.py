"""How much it says that a tensor which was given no device meets another, and if it is told."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tensortrail.findings import Severity
from tensortrail.rules.devices.shared.meetings.legal import is_stored_by_numbers
from tensortrail.rules.devices.shared.meetings.meant import is_certain, is_traced, may_be_meant
from tensortrail.rules.devices.shared.meetings.sized_like import has_shape_of_an_argument
from tensortrail.rules.devices.shared.named.devices_said import device_read
from tensortrail.rules.devices.shared.written_for.beforehand import is_beforehand
from tensortrail.rules.devices.shared.written_for.device_of_answer import answers_elsewhere
from tensortrail.rules.places import KERNEL, MODEL, Meeting, Place, Where
from tensortrail.rules.view import FunctionNode, Module


def weight(
    module: Module, function: FunctionNode, meeting: Meeting, there: Place
) -> Severity | None:
    """The code of a module that is not known may move what it is given."""
    if is_stored_by_numbers(meeting) or not runs_on_gpus(module, meeting.node):
        return Severity.NOTE
    if meeting.operation != KERNEL and (
        may_be_meant(module, function, meeting, there) or not is_certain(module, function, there)
    ):
        return Severity.NOTE
    if there.where is not Where.LITERAL or meeting.operation == MODEL:
        return None
    return Severity.NOTE if there.by is meeting.node else Severity.ERROR  # the callee may ask first


def is_worth_telling(
    module: Module, function: FunctionNode, meeting: Meeting, made: Place, there: Place
) -> bool:
    """The function asks for devices, the tensor has the shape of an argument, or nothing says that
    what it meets may be on the CPU."""
    if any(device_read(module, function)):
        return True
    assert made.by is not None
    places = module.places(function)
    if any(has_shape_of_an_argument(module, places, each) for each in _makers(module, made.by)):
        return True
    if is_stored_by_numbers(meeting) or not may_run_on_gpus(module, meeting.node):
        return False
    meant = is_beforehand(module, function) or is_traced(module, meeting.node)
    return not (meant or answers_elsewhere(module, function))


def _makers(module: Module, made: ast.AST) -> Sequence[ast.AST]:
    """What makes the tensor, here and in the other arm: `zeros(1) if flat else zeros(n, 1)`."""
    above = module.parent(made)
    return (above.body, above.orelse) if isinstance(above, ast.IfExp) else (made,)


def runs_on_gpus(module: Module, node: ast.AST) -> bool:
    """The program of the file names a GPU, or that of a class which the class around extends."""
    if module.may_use_gpu():
        return True
    cls = module.class_of(node)
    facts = module.class_facts(cls) if cls is not None else None
    return facts is not None and any(module.about(each, _may_use_gpu) for each in facts.bases)


def may_run_on_gpus(module: Module, node: ast.AST) -> bool:
    """The same; and the users of a library may have one, whatever it names."""
    return runs_on_gpus(module, node) or module.is_for_users(node)


def _may_use_gpu(module: Module, _: ast.AST) -> bool:
    return module.may_use_gpu()
