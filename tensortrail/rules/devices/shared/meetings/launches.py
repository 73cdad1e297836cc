"""Launches of Triton kernels, and whether the code around chooses the GPU that they run on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.devices.shared.named.devices_said import device_read
from tensortrail.rules.shared.functions import called_here, names_of_parameters, parameters
from tensortrail.rules.shared.objects import given, names_in
from tensortrail.rules.view import Caller, FunctionNode, Module

_KEEP_THE_GPU = ("torch.", "triton.", "staticmethod", "classmethod")
"""Decorators that do not make the GPU of an argument the current one."""
_CHOOSE_NO_GPU = frozenset(
    "torch.no_grad torch.enable_grad torch.inference_mode torch.autocast torch.cuda.amp.autocast "
    "torch.amp.autocast torch.profiler.record_function torch.autograd.profiler.record_function "
    "torch.cuda.nvtx.range".split()
)

_FURTHEST = 2
"""Calls one after another through which a caller that chooses is looked for."""


def launches(module: Module, function: FunctionNode) -> Iterator[ast.Call]:
    """`kernel[grid](x, out)` in the function, of a kernel of Triton that takes an argument."""
    named = names_of_parameters(function)
    for call in module.nodes(ast.Call, function):
        kernel = call.func.value if isinstance(call.func, ast.Subscript) else None
        if kernel is None or module.function_of(call) is not function:
            continue
        if _is_kernel(module, kernel) and any(names_in(each) & named for each in given(call)):
            yield call


def launched_by(module: Module, function: FunctionNode) -> Iterator[ast.Call]:
    """Calls of functions in other files that launch a kernel and choose no GPU for it, where this
    function asks a tensor that it passes for its device."""
    read = {module.text(each.value) for each in device_read(module, function)}
    for call in module.nodes(ast.Call, function) if read else ():
        passed = {module.text(each) for each in given(call)}
        if called_here(module, call) is not None:
            continue
        if passed & read and module.about(module.qualified(call.func), launches_as_it_is) is True:
            yield call


def launches_as_it_is(module: Module, node: ast.AST) -> bool:
    """A function that launches a kernel on whichever GPU is current."""
    if not isinstance(node, ast.FunctionDef) or may_choose(module, node):
        return False
    return any(not under_a_choice(module, each) for each in launches(module, node))


def left_to_callers(module: Module, function: FunctionNode, furthest: int = _FURTHEST) -> bool:
    """A caller chooses a GPU, or asks a tensor that it passes for its device: then all have to."""
    if any(_is_chosen_at(module, each, furthest) for each in module.calls(function.name)):
        return True
    first = next(iter(parameters(function)), None)
    callers = module.passed_elsewhere(function, first.arg) if first is not None else ()
    return any(_chooses(each, furthest) for each in callers)


def _is_chosen_at(module: Module, call: ast.Call, furthest: int) -> bool:
    around = module.function_of(call)
    if under_a_choice(module, call) or around is None or not furthest:
        return under_a_choice(module, call)
    return left_to_callers(module, around, furthest - 1)


def _chooses(caller: Caller, furthest: int) -> bool:
    module, function = caller.module, caller.function
    if may_choose(module, function) or under_a_choice(module, caller.call):
        return True
    if caller.call in launched_by(module, function):
        return True
    return furthest > 0 and left_to_callers(module, function, furthest - 1)


def may_choose(module: Module, function: FunctionNode) -> bool:
    """It makes a GPU the current one first, or is wrapped in what may do so."""
    if any(True for _ in module.calls("set_device", "device_of", inside=function)):
        return True
    names = (module.qualified(getattr(each, "func", each)) for each in function.decorator_list)
    return any(not each.startswith(_KEEP_THE_GPU) for each in names)


def under_a_choice(module: Module, node: ast.AST) -> bool:
    """A `with` around it may make a GPU the current one."""
    return any(
        module.qualified(each.func if isinstance(each, ast.Call) else each) not in _CHOOSE_NO_GPU
        for each in module.contexts_of(node)
    )


def _is_kernel(module: Module, kernel: ast.expr) -> bool:
    name = module.qualified(kernel)
    own = [each for each in module.nodes(ast.FunctionDef) if each.name == name.rpartition(".")[2]]
    if isinstance(kernel, ast.Name) and own:
        return all(_is_of_triton(module, each) and not module.function_of(each) for each in own)
    return bool(name) and module.about(name, _is_of_triton) is True


def _is_of_triton(module: Module, node: ast.AST) -> bool:
    wrapped = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    names = (module.qualified(getattr(each, "func", each)) for each in wrapped)
    return any(each.startswith("triton.") for each in names)
