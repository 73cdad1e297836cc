"""The functions in which something is made without a device, and those that get it from them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from tensortrail.rules.defaults import with_defaults
from tensortrail.rules.devices.shared.written_for.device_aware import sets_up
from tensortrail.rules.view import FunctionNode, Module

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
FACTORIES = (
    "zeros", "ones", "empty", "full", "arange", "tensor", "rand", "randn", "randint", "linspace",
    "eye", "randperm", "logspace", "LongTensor", "FloatTensor", "BoolTensor", "IntTensor",
    "Tensor", "randn_tensor", "hann_window", "tril_indices", "triu_indices",
)  # fmt: skip


def outermost(module: Module, nodes: Iterable[ast.AST]) -> Iterator[FunctionNode]:
    """The outermost functions that the nodes stand in, each once; of others, the file itself."""
    found: dict[FunctionNode, None] = {}
    for node in nodes:
        function = module.function_of(node)
        is_inside = isinstance(node, _FUNCTIONS) or module.class_of(node) is not None
        if function is None and not is_inside:
            found[module.top] = None
        while function is not None:
            outer = module.function_of(function)
            if outer is None:
                found[function] = None
            function = outer
    yield from found


def made_without_device(module: Module) -> Iterator[ast.Call]:
    for call in module.calls(*FACTORIES):
        if not any(each.arg in ("device", None) for each in call.keywords):
            yield call


def left_to_its_default(module: Module) -> Iterator[ast.Call]:
    """Calls of functions of the project that make tensors on the CPU unless they get a device."""
    yield from _left_to_that_of_another_file(module)
    for parameter in module.nodes(ast.arg):
        function = module.function_of(parameter)
        if parameter.arg != "device" or function is None or not _is_on_cpu(function):
            continue
        for call in module.calls(function.name):
            if not any(each.arg in ("device", None) for each in call.keywords):
                yield call


def _left_to_that_of_another_file(module: Module) -> Iterator[ast.Call]:
    """The same of functions that the file imports from beside it or from its own package."""
    package = module.name.partition(".")[0]
    for statement in module.nodes(ast.ImportFrom):
        own = statement.level or (package and (statement.module or "").split(".")[0] == package)
        names = [each.asname or each.name for each in statement.names] if own else []
        for call in module.calls(*(each for each in names if each.islower())):
            if isinstance(call.func, ast.Name) and _leaves_out_a_device(module, call):
                yield call


def _leaves_out_a_device(module: Module, call: ast.Call) -> bool:
    if any(each.arg in ("device", None) for each in call.keywords):
        return False
    parameters = module.parameters_of(call)
    return "device" in parameters and len(call.args) <= parameters.index("device")


def _is_on_cpu(function: FunctionNode) -> bool:
    """Its parameter `device` may be left out, and is then the CPU or nothing."""
    return any(
        each.arg == "device"
        and isinstance(default, ast.Constant)
        and default.value in (None, "cpu")
        for each, default in with_defaults(function.args)
    )


def makers_and_callers(module: Module, made: Iterable[ast.AST]) -> Iterator[FunctionNode]:
    """The outermost functions that these calls stand in, and those that call them."""
    makers = list(outermost(module, made))
    names = [each.name for each in makers if module.places(each).returns is not None]
    callers = outermost(module, module.calls(*names)) if names else ()
    beside = (other for each in makers if sets_up(each) for other in _users(module, each))
    yield from dict.fromkeys((*makers, *callers, *beside))


def _users(module: Module, maker: FunctionNode) -> Iterator[FunctionNode]:
    """What works with objects of a plain class that are set up here: its other methods, functions
    that make one, and those of a class that keeps one. What such an object keeps stays."""
    cls = module.parent(maker)
    facts = module.class_facts(cls) if isinstance(cls, ast.ClassDef) else None
    if facts is None or facts.is_module or not isinstance(cls, ast.ClassDef):
        return
    yield from (each for each in cls.body if isinstance(each, ast.FunctionDef))
    for call in module.calls(cls.name):
        yield from outermost(module, [call])
        yield from users_of_objects(module, call)


def users_of_objects(module: Module, made: ast.Call) -> Iterator[FunctionNode]:
    """The methods of a class that keeps the object which the call makes while it is set up, and
    the functions of a file that makes it at its top."""
    function, owner = module.function_of(made), module.class_of(made)
    if function is not None and owner is not None and sets_up(function):
        yield from (each for each in owner.body if isinstance(each, ast.FunctionDef))
    if function is None and owner is None:
        yield from (each for each in module.nodes(ast.FunctionDef) if _is_outermost(module, each))


def _is_outermost(module: Module, function: FunctionNode) -> bool:
    return module.function_of(function) is None
