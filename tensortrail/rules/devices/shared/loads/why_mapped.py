"""Why it matters to which device a file is loaded: the code around can run without a GPU, or in
several processes, or loads the same file with a device on another path."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from tensortrail.rules.devices.shared.calls.accepted import is_read
from tensortrail.rules.devices.shared.loads.of_this_run import names_a_gpu
from tensortrail.rules.devices.shared.loads.saved_here import (
    is_of_its_rank,
    names_a_rank,
    where_it_is_saved,
)
from tensortrail.rules.devices.shared.named.devices_said import devices_said
from tensortrail.rules.devices.shared.named.named_gpus import is_for_cuda
from tensortrail.rules.devices.shared.named.process_groups import runs_once_a_gpu
from tensortrail.rules.shared.annotations import DEVICE, names_type
from tensortrail.rules.shared.functions import matched, outermost_function, parameters
from tensortrail.rules.shared.moves import named_device
from tensortrail.rules.shared.objects import called, keyword
from tensortrail.rules.view import FunctionNode, Module
from tensortrail.rules.words import NOT_CONSTANT, Kind

_ASKED = ("torch.cuda.is_available", "torch.accelerator.is_available")
_CHOOSES = ("torch.cuda.set_device",)
_HAVE_A_DEVICE = (Kind.TENSOR, Kind.PARAMETER, Kind.MODULE)
_RANK = re.compile(r"(^|_)rank$|^process_index$")
Around = FunctionNode | ast.ClassDef


class Why(NamedTuple):
    """A reason to give `map_location`, and the line that shows it."""

    node: ast.AST
    says: str
    """What comes of it, for the end of a message."""
    step: str
    """What the line does."""


def why_it_matters(module: Module, call: ast.Call) -> Why | None:
    """The function around the load is asked first, then its class, or who calls it in the file."""
    around = list(_around(module, call))
    shared = not is_of_its_rank(module, call) and not _is_for_one_rank(module, call)
    for question in (*([_of_several_processes] if shared else []), _of_the_cpu):
        for each in around:
            if (why := module.once(question, each)) is not None:
                return why
    return _of_another_path(module, call) or _of_the_project(module, call, around)


def accepted_and_dropped(module: Module, call: ast.Call) -> Why | None:
    """`def read(path, map_location=None): return torch.load(path)`"""
    function = module.function_of(call) or module.top
    for each in parameters(function):
        if each.arg == "map_location" and not is_read(module, function, each.arg):
            says = f"the function takes `{each.arg}`, but does not pass it on here"
            return Why(each, says, "never read")
    return None


def _of_the_project(module: Module, call: ast.Call, around: Sequence[Around]) -> Why | None:
    """The project saves this very file from wherever the model is, and what imports this one asks
    whether there is a GPU, or lets somebody choose the CPU."""
    insists = any(
        _insists(module, each)
        for place in around
        for each in module.calls("cuda", *_CHOOSES, inside=place)
    )
    if insists or not module.may_use_cpu() or not where_it_is_saved(module, call):
        return None
    says = (
        "the load fails on a machine without a GPU, and a file that imports this one can run there"
    )
    return Why(call, says, "loaded by code that may run without a GPU")


def _is_for_one_rank(module: Module, call: ast.Call) -> bool:
    """`if rank != 0: return` before it, or `if rank == 0:` around it."""
    return any(names_a_rank(module, guard.test) for guard in module.guards_of(call))


def _around(module: Module, call: ast.Call) -> Iterator[Around]:
    function, cls = outermost_function(module, call), module.class_of(call)
    yield function or module.top
    if cls is not None:
        yield cls
    elif function is not None:
        for each in module.calls(function.name):
            caller = outermost_function(module, each)
            if caller is not None and isinstance(each.func, ast.Name):
                yield caller


def _of_several_processes(module: Module, around: Around) -> Why | None:
    node = runs_once_a_gpu(module, around) or next(_ranks_asked(module, around), None)
    if node is None:
        return None
    says = (
        f"several processes run this code (see line {node.lineno}), and all of them load onto that "
        "one GPU"
    )
    return Why(node, says, "one of several processes")


def _ranks_asked(module: Module, around: Around) -> Iterator[ast.expr | ast.arg]:
    """`Accelerator()`, `get_rank()`, `groups.get_tensor_parallel_rank()`, a parameter `rank`"""
    yield from module.calls("accelerate.Accelerator", inside=around)
    if not isinstance(around, ast.ClassDef):
        for call in module.nodes(ast.Call, around):
            name = called(call)
            if name.startswith("get_") and name.endswith("_rank") and not call.args:
                yield call
        for each in module.nodes(ast.arg, around):
            if _RANK.search(each.arg) and _may_be_a_rank(module, around, each.arg):
                yield each


def _may_be_a_rank(module: Module, function: FunctionNode, name: str) -> bool:
    """The function reads it, and not as `layers_per_rank[0]`."""
    indexed = (module.text(each.value) == name for each in module.nodes(ast.Subscript, function))
    return is_read(module, function, name) and not any(indexed)


def _of_the_cpu(module: Module, around: Around) -> Why | None:
    """It asks whether there is a GPU, or works on a device that may be the CPU, and nowhere
    insists on a GPU."""
    if any(_insists(module, call) for call in module.calls("cuda", *_CHOOSES, inside=around)):
        return None
    found: Iterator[ast.expr | ast.arg]
    found = chain(_questions(module, around), _chosen(module, around), _taken(module, around))
    node = next(found, None)
    if node is None:
        return None
    says = (
        f"the load fails on a machine without a GPU, although line {node.lineno} lets the code run "
        "there"
    )
    return Why(node, says, f"`{module.text(node)}`: the code may run without a GPU")


def _insists(module: Module, call: ast.Call) -> bool:
    """`net.cuda()`, `torch.cuda.set_device(0)`, whatever the machine has."""
    return not module.guards_of(call) and not any(
        isinstance(each, (ast.IfExp, ast.Try)) for each in module.ancestors(call)
    )


def _questions(module: Module, around: Around) -> Iterator[ast.expr]:
    """`torch.cuda.is_available()`, where the code does not end without."""
    for call in module.calls(*_ASKED, inside=around):
        up = module.statement_of(call)
        ends = isinstance(up, ast.If) and any(isinstance(e, ast.Raise) for e in up.body)
        if not ends and not isinstance(up, ast.Assert):
            yield call


def _chosen(module: Module, around: Around) -> Iterator[ast.expr]:
    """Devices that somebody else says: `model.to(device)`, `torch.device(args.device)`"""
    said = [each for _, each in devices_said(module, around)]
    made = module.calls("torch.device", inside=around)
    for each in (*said, *(call.args[0] for call in made if call.args)):
        if _may_be_the_cpu(module, each):
            yield each


def _taken(module: Module, around: Around) -> Iterator[ast.arg]:
    """`def build(self, device: torch.device)`"""
    for each in module.nodes(ast.arg, around):
        if names_type(module, each.annotation, DEVICE):
            yield each


def _may_be_the_cpu(module: Module, said: ast.expr) -> bool:
    value = module.value_of(said)
    if not isinstance(said, (ast.Name, ast.Attribute, ast.Subscript)) or value.is_tensor:
        return False
    if isinstance(said, ast.Attribute) and module.value_of(said.value).may_be(*_HAVE_A_DEVICE):
        return False
    made = [named_device(module, each) for each in value.origins]
    known = value.constant is not NOT_CONSTANT or any(names_a_gpu(module, e) for e in made)
    return not known and not _is_for_a_gpu(module, said)


def _is_for_a_gpu(module: Module, said: ast.expr) -> bool:
    """The class keeps a GPU there, or all calls in the file pass one."""
    function = module.function_of(said)
    if function is None or not isinstance(said, ast.Name):
        return function is not None and is_for_cuda(module, function, said)
    calls = module.calls(function.name)
    passed = [dict(matched(function, each)).get(said.id) for each in calls]
    return bool(passed) and all(each is not None and names_a_gpu(module, each) for each in passed)


def _of_another_path(module: Module, call: ast.Call) -> Why | None:
    """`torch.load(path, map_location=device)` of the same file, in the same function."""
    source = _opened(module, call)
    for each in module.calls("torch.load", inside=module.function_of(call)):
        told = len(each.args) > 1 or keyword(each, "map_location") is not None
        if told and source and _opened(module, each) == source:
            says = (
                f"line {each.lineno} loads the same file with `map_location`, and this call does "
                "not"
            )
            return Why(each, says, "`map_location` is given here")
    return None


def of_another_path_in_memory(module: Module, call: ast.Call) -> Why | None:
    """The same, of a file that this load reads into memory first."""
    through_memory = bool(call.args) and _opened(module, call) != module.text(call.args[0])
    return _of_another_path(module, call) if through_memory else None


def _opened(module: Module, load: ast.Call) -> str:
    """What is loaded, also through memory: `file` of `io.BytesIO(file.read())`."""
    source = load.args[0] if load.args else None
    match source:
        case ast.Call(args=[ast.Call(func=ast.Attribute(value=file, attr="read"))]):
            source = file
    return module.text(source) if source is not None else ""
