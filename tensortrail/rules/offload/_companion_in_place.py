"""Whether a companion may lie in the right place after all, and how bad it is if not."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Severity
from tensortrail.rules.devices.shared.written_for.beforehand import need_not_move
from tensortrail.rules.devices.shared.written_for.used_here import is_used_on_a_gpu
from tensortrail.rules.offload._companions import Companion
from tensortrail.rules.offload._plain_tensors import BUILDING, is_handed_in
from tensortrail.rules.shared.dtypes import is_dtype
from tensortrail.rules.shared.given_weights import is_made_of_given_weights, takes_its_weights
from tensortrail.rules.shared.objects import is_self, receiver
from tensortrail.rules.shared.placeholders import stands_for_nothing
from tensortrail.rules.view import FunctionNode, Module


def how_bad(module: Module, companion: Companion) -> Severity:
    if _may_be_in_place(module, companion) or _is_made_anew(module, companion):
        return Severity.NOTE
    here = is_used_on_a_gpu(module, companion.stored)
    return Severity.ERROR if here else Severity.WARNING


def _is_made_anew(module: Module, companion: Companion) -> bool:
    """Whoever comes to the operation has called the method that stores it, in any case."""
    function, cls = module.function_of(companion.stored), module.class_of(companion.stored)
    meets = module.function_of(companion.operation)
    if function is None or cls is None or meets is None or function.name in BUILDING:
        return False
    calls = [
        each
        for each in module.calls(function.name, inside=cls)
        if not module.guards_of(each) and (by := receiver(each)) is not None and is_self(by)
    ]
    makers = {module.function_of(each) for each in calls}
    users = {module.function_of(each) for each in module.calls(meets.name, inside=cls)}
    return meets in makers or (bool(users) and users <= makers)


def _may_be_in_place(module: Module, companion: Companion) -> bool:
    """Another method stores the real tensor, who builds the module says where it is, or the class
    works on the CPU, or modules are built on their device."""
    stored = companion.stored
    return (
        _is_made_later(module, companion)
        or _is_put_where_told(module, stored)
        or need_not_move(module, stored)
        or _has_no_weights_of_its_own(module, stored)
        or is_made_of_given_weights(module, stored)
    )


def _is_made_later(module: Module, companion: Companion) -> bool:
    """`self.table = torch.tensor([0])`, where another method stores the real one."""
    return not companion.once and stands_for_nothing(module, companion.stored.value)


def _is_put_where_told(module: Module, stored: ast.Assign) -> bool:
    """The tensor is put on a device that is a value, or made of an attribute that was; or it is
    the argument of the constructor as it came: who builds the module knows where it is, and mostly
    need not move it."""
    function = module.function_of(stored)
    if function is None:
        return False
    if function.name in BUILDING and is_handed_in(stored.value, function):
        return True
    told = [*module.nodes(ast.Call, stored), *_stored_parts(module, function, stored)]
    return any(_is_on_a_given_device(module, each) for each in told)


def is_put_by_hand(module: Module, companion: Companion) -> bool:
    """Who builds the module says the device for this tensor too, as they do for its weights. One
    that is put beside another tensor of the module stays behind when that one is moved."""
    function = module.function_of(companion.stored)
    if function is None:
        return False
    told = [*module.nodes(ast.Call, companion.stored)]
    told += _stored_parts(module, function, companion.stored)
    return any(_is_on_a_given_device(module, e) and not _is_beside_another(e) for e in told)


def _is_beside_another(call: ast.Call) -> bool:
    """`x.to(device=self.weight.device)`"""
    said = [each.value for each in call.keywords if each.arg == "device"] or call.args[:1]
    return any(
        isinstance(each, ast.Attribute) and each.attr == "device" and not is_self(each.value)
        for each in said
    )


def _has_no_weights_of_its_own(module: Module, stored: ast.Assign) -> bool:
    cls = module.class_of(stored)
    function = module.function_of(stored)
    computed = function is not None and function.name in BUILDING
    return cls is not None and computed and takes_its_weights(module, cls.name)


def _stored_parts(module: Module, function: FunctionNode, stored: ast.Assign) -> Iterator[ast.Call]:
    """The calls in what the attributes were assigned from that the value is made of."""
    read = {module.text(each) for each in module.nodes(ast.Attribute, stored.value)}
    for other in module.nodes(ast.Assign, function):
        if other is not stored and read.intersection(map(module.text, other.targets)):
            yield from module.nodes(ast.Call, other)


def _is_on_a_given_device(module: Module, call: ast.Call) -> bool:
    """`x.to(device)`, `torch.ones(2, device=self.device)`: none that is written out. A bare
    `.cuda()` is one, where all is for the GPU of the process."""
    said = [each.value for each in call.keywords if each.arg == "device"]
    if isinstance(call.func, ast.Attribute) and call.func.attr == "to":
        said += [each for each in call.args[:1] if not is_dtype(module, each)]
    if isinstance(call.func, ast.Attribute) and call.func.attr == "cuda" and not call.args:
        return module.is_for_current_gpu()
    return any(isinstance(each, (ast.Name, ast.Attribute)) for each in said)
