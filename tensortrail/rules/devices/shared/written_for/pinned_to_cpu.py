"""Arguments that are on the CPU, or the function fails: `.numpy()` is asked of them as they are."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.places import What, Where
from tensortrail.rules.shared.functions import called_here, matched, parameter_names
from tensortrail.rules.view import FunctionNode, Module
from tensortrail.rules.words import Guard

_ELSEWHERE = frozenset({Where.HOST, Where.DEFAULT, Where.LITERAL, Where.META})
_AS_THEY_ARE = frozenset({"detach", "squeeze", "contiguous", "clone"})


def works_on_the_cpu(module: Module, function: FunctionNode) -> bool:
    """Whoever passes a tensor of a GPU gets an error from numpy: here, in a function of the file
    that it is passed on to, or in every function of the file that calls this one. Or all that
    call it have asked for the device before."""
    read = module.once(_reads_or_passes, function) or module.once(_has_such_callers, function)
    return read or module.once(_is_called_on_the_cpu, function)


def _is_called_on_the_cpu(module: Module, function: FunctionNode) -> bool:
    """Each call of the file stands where a device was asked, and was the CPU."""
    calls = list(module.calls(function.name))
    return bool(calls) and all(any(map(_finds_the_cpu, module.guards_of(each))) for each in calls)


def _finds_the_cpu(guard: Guard) -> bool:
    match guard.test:
        case ast.Compare(left=asked, ops=[ast.Eq() | ast.NotEq() as sign], comparators=[name]):
            by_type = isinstance(asked, ast.Attribute) and asked.attr == "type"
            is_cpu = isinstance(name, ast.Constant) and name.value == "cpu"
            return by_type and is_cpu and guard.holds is isinstance(sign, ast.Eq)
        case ast.Attribute(attr="is_cuda"):
            return not guard.holds
        case ast.Attribute(attr="is_cpu"):
            return guard.holds
    return False


def _has_such_callers(module: Module, function: FunctionNode) -> bool:
    callers = [module.function_of(each) for each in module.calls(function.name)]
    return bool(callers) and all(
        each is not None and each is not function and module.once(_reads_or_passes, each)
        for each in callers
    )


def _reads_or_passes(module: Module, function: FunctionNode) -> bool:
    return bool(module.once(_read, function)) or any(_passed_to_readers(module, function))


def _read(module: Module, function: FunctionNode) -> frozenset[str]:
    """The parameters whose tensors `.numpy()` is asked of, or what is computed of them alone."""
    found = {
        _subject(module, function, call.func.value)
        for call in module.calls("numpy", inside=function)
        if not call.args
        and isinstance(call.func, ast.Attribute)
        and not any(each.mentions("cuda", "cpu", "device") for each in module.guards_of(call))
    }
    return frozenset(found & parameter_names(function))


def _subject(module: Module, function: FunctionNode, node: ast.expr) -> str:
    """The argument that it lies beside on every path, whatever it is made of."""
    held = module.places(function).seen.get(node)
    places = held.places if held is not None and held.what is What.TENSOR else frozenset()
    if places and all(each.where in _ELSEWHERE for each in places):
        return ""
    subjects = {each.subject for each in places if each.where is Where.OF}
    return subjects.pop() if len(subjects) == len(places) == 1 else _argument_as_it_is(node)


def _argument_as_it_is(node: ast.expr) -> str:
    """An argument of the function, detached at most."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr not in _AS_THEY_ARE:
                return ""
            node = node.func.value
        elif isinstance(node, ast.Attribute) and node.attr == "data":
            node = node.value
        else:
            return node.id if isinstance(node, ast.Name) else ""


def _passed_to_readers(module: Module, function: FunctionNode) -> Iterator[str]:
    """Own parameters that are passed to a function of the file which reads them into numpy."""
    own = parameter_names(function)
    for call in module.nodes(ast.Call, function):
        taker = called_here(module, call)
        if taker is None or taker is function:
            continue
        read = module.once(_read, taker)
        for name, value in matched(taker, call) if read else ():
            if name in read and isinstance(value, ast.Name) and value.id in own:
                yield value.id
