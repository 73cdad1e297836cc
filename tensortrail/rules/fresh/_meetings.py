"""Where a tensor made without a device meets one that was given, or leaves the function."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Edit, Fix, Safety, Severity
from tensortrail.rules.devices.shared.meetings.meant import is_traced
from tensortrail.rules.devices.shared.written_for.beforehand import is_beforehand
from tensortrail.rules.devices.shared.written_for.device_aware import is_in_module
from tensortrail.rules.devices.shared.written_for.goes_along import is_passed_from_the_cpu
from tensortrail.rules.shared.annotations import DEVICE, names_type
from tensortrail.rules.shared.factories import is_factory
from tensortrail.rules.shared.given_devices import under_device
from tensortrail.rules.shared.mends import device_given
from tensortrail.rules.shared.operations import Operation, operations
from tensortrail.rules.shared.tensor_origin import origin_of
from tensortrail.rules.shared.who_decides import Decides, Origin
from tensortrail.rules.view import FunctionNode, Module
from tensortrail.rules.words import Kind


def has_candidate(module: Module, function: FunctionNode) -> bool:
    """A look at the calls alone, before anything is asked that costs more."""
    return any(
        is_factory(module, call) and not any(each.arg == "device" for each in call.keywords)
        for call in module.nodes(ast.Call, function)
    )


def meetings(
    module: Module, function: FunctionNode, in_forward: bool
) -> Iterator[tuple[ast.Call, ast.expr, ast.AST]]:
    """Each tensor once that is made without a device, the argument it meets, and where. In a
    function that `forward` does not run only one whose device the function asks for."""
    if not in_forward and not asks_for_device(module, function):
        return
    said: set[ast.AST] = set()
    for operation in operations(module, function):
        if module.function_of(operation.node) is not function:
            continue
        pair = met(module, operation)
        if pair is None or pair[0] in said:
            continue
        if in_forward or asks_for_device(module, function, module.text(pair[1])):
            said.add(pair[0])
            yield *pair, operation.node


def met(module: Module, operation: Operation) -> tuple[ast.Call, ast.expr] | None:
    """The factory call and the argument whose tensors meet in the operation."""
    origins = [origin_of(module, each) for each in operation.tensors]
    made = first(origins, Decides.DEFAULT)
    given = first(origins, Decides.GIVEN) or first(origins, Decides.OWN)
    if not isinstance(made, ast.Call) or given is None or under_device(module, made):
        return None
    if is_on_cpu(module, made, given):
        return None
    return made, given


def first(origins: list[Origin], decides: Decides) -> ast.expr | None:
    return next((each.node for each in origins if each.decides is decides), None)


def is_on_cpu(module: Module, made: ast.AST, given: ast.expr) -> bool:
    """A condition says that what was given is on the CPU."""
    return any(guard.holds and guard.mentions("cpu") for guard in module.guards_of(made))


def device_parameter(module: Module, function: FunctionNode) -> str | None:
    """A parameter of the function that is a device."""
    given = function.args
    for each in (*given.posonlyargs, *given.args, *given.kwonlyargs):
        if names_type(module, each.annotation, DEVICE) or each.arg == "device":
            return each.arg
    return None


def asks_for_device(module: Module, function: FunctionNode, of: str = "") -> bool:
    """The function asks where a tensor is: it may be anywhere."""
    return any(
        node.attr == "device" and module.qualified(node) != "torch.device"
        for node in module.nodes(ast.Attribute, function)
        if not of or module.text(node.value) == of
    )


def is_run_by_forward(module: Module, function: FunctionNode) -> bool:
    """`forward` of an `nn.Module`, or a method that `forward` calls."""
    cls = module.class_of(function)
    if cls is None or module.parent(function) is not cls:
        return False
    facts = module.class_facts(cls)
    if facts is None or not facts.is_module:
        return False
    forward = next((e for e in cls.body if getattr(e, "name", "") == "forward"), None)
    if forward is None or forward is function:
        return forward is not None
    return f"self.{function.name}(" in module.text(forward)


def returned(module: Module, function: FunctionNode) -> Iterator[ast.Call]:
    for statement in module.nodes(ast.Return, function):
        if statement.value is None or module.function_of(statement) is not function:
            continue
        value = statement.value
        for each in value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]:
            origin = origin_of(module, each)
            if origin.decides is Decides.DEFAULT and isinstance(origin.node, ast.Call):
                yield origin.node


def with_device(module: Module, made: ast.Call, device: str) -> Fix | None:
    """The call with the device in it."""
    if module.qualified(made.func).rpartition(".")[2][:1].isupper():
        return None  # torch.LongTensor takes no device worth having
    if module.kind_of(made) is Kind.MODULE or not (made.args or made.keywords):
        return None
    given = next((each for each in made.keywords if each.arg == "device"), None)
    if given is not None:
        edit: Edit | None = module.replace(given.value, device)
    else:
        edit = device_given(module, made, device)
    return module.fix("make it where it is needed", Safety.UNSAFE, edit) if edit else None


def how_bad(module: Module, made: ast.Call, met: str | None, in_forward: bool) -> Severity:
    """Of a tensor that meets an argument, which has a name, or something else."""
    around = module.function_of(made)
    is_plain = not in_forward and not is_in_module(module, made)
    if is_plain or is_beforehand(module, made) or is_traced(module, made):
        return Severity.NOTE  # whoever calls it may have everything on the CPU
    if met is not None and around is not None and is_passed_from_the_cpu(module, around, met):
        return Severity.NOTE
    if module.gpu_made_default() or not module.may_use_gpu():
        return Severity.NOTE
    return Severity.WARNING
