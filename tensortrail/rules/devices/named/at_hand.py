"""Which device a function has at hand, and where it says one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from tensortrail.patterns import pattern
from tensortrail.rules.defaults import with_defaults
from tensortrail.rules.shared.annotations import DEVICE, names_type
from tensortrail.rules.shared.given_devices import said_device
from tensortrail.rules.shared.moves import named_device
from tensortrail.rules.shared.objects import called, keyword
from tensortrail.rules.view import FunctionNode, Module

_NAMES_A_GPU = pattern(r"cuda|gpu", re.I)
_OF_ANOTHER_USE = ("rand", "noise", "offload", "storage", "cache", "save", "output")
"""How the name of a device begins that is for something else than the work of the function."""


def device_parameter(module: Module, function: FunctionNode | None) -> ast.arg | None:
    """A parameter of the function, or of one around it, that is a device: by its annotation, or
    because the function hands it on as one."""
    while function is not None:
        found = module.once(_device_parameter, function)
        if found is not None:
            return found
        function = module.function_of(function)
    return None


def _device_parameter(module: Module, function: FunctionNode) -> ast.arg | None:
    given = function.args
    for each in (*given.posonlyargs, *given.args, *given.kwonlyargs):
        if each.arg.startswith(_OF_ANOTHER_USE):
            continue
        if names_type(module, each.annotation, DEVICE) or (
            _is_handed_on(module, function, each.arg)
        ):
            return each
    return None


def _is_handed_on(module: Module, function: FunctionNode, name: str) -> bool:
    """As a device: under that keyword if its own name does not say so, as `x.to(other)` may name a
    tensor."""
    return any(
        isinstance(said, ast.Name)
        and said.id == name
        and ("device" in name or keyword(call, "device") is said)
        for call, said in devices_said(module, function)
    )


def devices_said(module: Module, inside: ast.AST) -> Sequence[tuple[ast.Call, ast.expr]]:
    """Calls that are given a device, with it: `x.to(d)`, `torch.zeros(3, device=d)`, and
    `to_device(x, d)`, whatever function of that name."""
    return module.once(_devices_said, inside)


def _devices_said(module: Module, inside: ast.AST) -> list[tuple[ast.Call, ast.expr]]:
    calls = module.nodes(ast.Call, inside)
    said = ((call, said_device(module, call) or _of_helper(call)) for call in calls)
    return [(call, each) for call, each in said if each is not None]


def _of_helper(call: ast.Call) -> ast.expr | None:
    name = called(call)
    return call.args[1] if name.endswith("to_device") and len(call.args) > 1 else None


def is_cuda_literal(module: Module, node: ast.expr) -> bool:
    """`"cuda"`, `"cuda:0"` or `torch.device` of one."""
    node = named_device(module, node)
    if not isinstance(node, ast.Constant) and not _is_global(module, node):
        return False
    said = module.value_of(node).constant
    return isinstance(said, str) and said.partition(":")[0] == "cuda"


def _is_global(module: Module, node: ast.expr) -> bool:
    """A name of the file, or one that it imports."""
    if isinstance(node, ast.Name) and is_bound_around(module, node):
        return False
    origins = module.value_of(node).origins if isinstance(node, ast.Name) else (node,)
    return all(module.function_of(each) is None for each in origins)


def is_bound_around(module: Module, name: ast.Name) -> bool:
    """A function around it has a variable or an argument of that name."""
    function = module.function_of(name)
    while function is not None:
        given = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
        stored = (isinstance(each.ctx, ast.Store) for each in module.uses(name.id, function))
        if any(stored) or any(each.arg == name.id for each in given):
            return True
        function = module.function_of(function)
    return False


def device_read(module: Module, inside: ast.AST) -> Iterator[ast.Attribute]:
    """`x.device` where `x` is an object of this program, not the torch module."""
    for node in module.nodes(ast.Attribute, inside):
        read = node.attr == "device" and isinstance(node.ctx, ast.Load)
        if read and not _is_of_library(module, node):
            yield node


def _is_of_library(module: Module, node: ast.Attribute) -> bool:
    return module.qualified(node).startswith(("torch.", "jax.", "cupy."))


_OF_ACCELERATORS = frozenset(
    "is_main_process unwrap_model autocast wait_for_everyone is_local_main_process".split()
)


def at_hand_in(module: Module, function: FunctionNode) -> ast.AST | None:
    """What the function can use instead: its parameter, or `accelerator.device`."""
    parameter = device_parameter(module, function)
    if parameter is not None:
        return parameter
    for node in module.nodes(ast.Attribute, function):
        owner = node.value
        if node.attr != "device" or not isinstance(owner, ast.Name):
            continue
        if not _is_of_library(module, node) and _is_accelerator(module, function, owner):
            return node
    own = own_device(module, function) or _accelerator(module, function)
    found = own or _mapped_model(module, function) or own_launcher(module, function)
    file = _file_of(module, function)
    return found or module.once(_accelerator_of_file, file) or module.once(_helper, file)


def own_launcher(module: Module, function: FunctionNode) -> ast.Attribute | None:
    """`self.accelerator.device`, where a method of the class puts something there."""
    cls = module.class_of(function)
    return module.once(_launcher_of_class, cls) if cls is not None else None


def _launcher_of_class(module: Module, cls: ast.ClassDef) -> ast.Attribute | None:
    for _, said in devices_said(module, cls):
        if isinstance(said, ast.Attribute) and module.text(said) in _OF_LAUNCHERS:
            return said
    return None


def _accelerator_of_file(module: Module, file: ast.AST) -> ast.Name | None:
    """`accelerator` of `accelerator = Accelerator()` at the top of a script."""
    for call in module.calls("accelerate.Accelerator"):
        stored = module.parent(call)
        if isinstance(stored, ast.Assign) and module.parent(stored) is file:
            target = stored.targets[0]
            return target if isinstance(target, ast.Name) else None
    return None


_OF_LAUNCHERS = frozenset(
    f"self.{each}.device" for each in ("accelerator", "fabric", "_accelerator", "_fabric")
)
_HELPER = pattern(r"(get_)?((current|local|torch|default|accelerator|compute)_)*device(_name|_id)?")


def _file_of(module: Module, function: FunctionNode) -> ast.AST:
    """`function` may be what runs when the file itself does."""
    return [function, *module.ancestors(function)][-1]


def _helper(module: Module, file: ast.AST) -> ast.Call | None:
    """`get_current_device()` of another file, which this file asks where to put things."""
    imported = {
        alias.asname or alias.name
        for each in module.nodes(ast.ImportFrom)
        for alias in each.names
        if _HELPER.fullmatch(alias.name) and (each.module or "").partition(".")[0] != "torch"
    }
    if not imported:
        return None
    for _, said in devices_said(module, file):
        sources = module.value_of(said).origins if isinstance(said, ast.Name) else (said,)
        for each in sources:
            if isinstance(each, ast.Call) and getattr(each.func, "id", "") in imported:
                return each
    return None


def own_device(module: Module, function: FunctionNode) -> ast.Attribute | None:
    """`self.device`, where the class puts things there and does not choose a GPU for itself."""
    cls = module.parent(function)
    if not isinstance(cls, ast.ClassDef) or function.name in ("__init__", "device"):
        return None
    of_cuda = any(
        module.qualified(call.func).startswith("torch.cuda.")
        and not module.qualified(call.func).endswith("is_available")
        for call in module.nodes(ast.Call, function)
    )
    if of_cuda:
        return None
    return module.once(_device_of_class, cls) or module.once(_device_of_its_model, cls)


def _device_of_its_model(module: Module, cls: ast.ClassDef) -> ast.Attribute | None:
    """`model.device` of an argument that the class keeps as `self.model`, where it puts things."""
    facts, kept = module.class_facts(cls), module.once(_kept_names, cls)
    if facts is None or facts.is_module:
        return None
    for _, said in devices_said(module, cls):
        if isinstance(said, ast.Attribute) and said.attr == "device":
            owner, function = module.text(said.value), module.function_of(said)
            in_init = function is not None and function.name == "__init__"
            if owner in kept.values() or (in_init and owner in kept):
                return said
    return None


def _kept_names(module: Module, cls: ast.ClassDef) -> dict[str, str]:
    """`m` -> `self.model` of `self.model = m` or `super().__init__(model=m)`, where `__init__` is
    given `m`."""
    init = next(
        (e for e in cls.body if isinstance(e, ast.FunctionDef) and e.name == "__init__"), None
    )
    given = {each.arg for each in module.nodes(ast.arg, init)} if init is not None else set()
    by_base = {
        each.value.id: f"self.{each.arg}"
        for call in module.calls("__init__", inside=init)
        for each in call.keywords
        if isinstance(each.value, ast.Name) and each.arg and each.value.id in given
    }
    return by_base | {
        assign.value.id: module.text(target)
        for assign in module.nodes(ast.Assign, init)
        for target in assign.targets
        if isinstance(assign.value, ast.Name)
        and isinstance(target, ast.Attribute)
        and assign.value.id in given
    }


def _device_of_class(module: Module, cls: ast.ClassDef) -> ast.Attribute | None:
    """`self.device`, or the only attribute that the class puts things on."""
    said = [each for _, each in devices_said(module, cls)]
    own = {name: each for each in said if (name := _own_attribute(each))}
    name = "device" if "device" in own else next(iter(own), "") if len(own) == 1 else ""
    if not name or name.startswith(_OF_ANOTHER_USE):
        return None
    for statement in module.nodes(ast.Assign, cls):
        is_own = any(_own_attribute(each) == name for each in statement.targets)
        if is_own and _NAMES_A_GPU.search(module.text(statement.value)):
            return None
    found = own[name]
    sure = name == "device" or _is_given(module, cls, name)
    return found if sure and isinstance(found, ast.Attribute) else None


def _is_given(module: Module, cls: ast.ClassDef, name: str) -> bool:
    """`self.where = where` of an argument: whoever makes the object chooses it."""
    kept = module.once(_kept_names, cls)
    return f"self.{name}" in kept.values()


def _accelerator(module: Module, function: FunctionNode) -> ast.Name | None:
    """`accelerator`, an argument that is asked for what `accelerate.Accelerator` has."""
    used = module.once(_used_as_accelerators, function)
    given = {each.arg for each in (*function.args.args, *function.args.kwonlyargs)}
    names = (each for each in module.nodes(ast.Name, function) if each.id in used & given)
    return next(names, None)


def _mapped_model(module: Module, function: FunctionNode) -> ast.Name | None:
    """`model` of `model = AutoModel.from_pretrained(name, device_map="auto")`."""
    for call in module.calls("from_pretrained", inside=function):
        stored = module.parent(call)
        spread = any(
            each.arg == "device_map"
            and not is_cuda_literal(module, each.value)
            and not isinstance(each.value, ast.Dict)
            for each in call.keywords
        )
        if spread and isinstance(stored, ast.Assign) and isinstance(stored.targets[0], ast.Name):
            return stored.targets[0]
    return None


def names_cuda(module: Module, function: FunctionNode) -> bool:
    """The function makes CUDA devices by name: it is for these."""
    return any(
        isinstance(each.value, str) and each.value.startswith("cuda")
        for each in module.nodes(ast.Constant, function)
    )


def is_for_cuda(module: Module, function: FunctionNode, at_hand: ast.AST) -> bool:
    """The device that is given is a CUDA one by default: the function is for these."""
    default = next((said for arg, said in with_defaults(function.args) if arg is at_hand), None)
    if default is not None:
        return is_cuda_literal(module, default)
    name = _own_attribute(at_hand)
    cls = module.class_of(at_hand) if name else None
    return cls is not None and _is_always_cuda(module, cls, name)


def _own_attribute(node: ast.AST) -> str:
    """`device` of `self.device`."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.attr if node.value.id == "self" else ""
    return ""


def _is_always_cuda(module: Module, cls: ast.ClassDef, name: str) -> bool:
    """Every `self.device = ...` of the class names a GPU; so does what its property gives."""
    for method in cls.body:
        if isinstance(method, ast.FunctionDef) and method.name == name:
            given = [_own_attribute(e.value) for e in module.nodes(ast.Return, method) if e.value]
            name = given[0] if len(given) == 1 else ""
            break
    values = [
        each.value
        for each in module.nodes(ast.Assign, cls)
        if name and name in map(_own_attribute, each.targets)
    ]
    return bool(values) and all(_names_a_gpu(module, each) for each in values)


def _names_a_gpu(module: Module, node: ast.expr) -> bool:
    """`torch.device("cuda")`, or `torch.device(f"cuda:{rank}")`."""
    said = named_device(module, node)
    if isinstance(said, ast.JoinedStr) and isinstance(said.values[0], ast.Constant):
        return str(said.values[0].value).startswith("cuda:")
    return is_cuda_literal(module, node)


def _is_accelerator(module: Module, function: FunctionNode, node: ast.Name) -> bool:
    """Made as one, or asked for what `accelerate.Accelerator` has."""
    if node.id in module.once(_used_as_accelerators, function):
        return True
    known = module.once(_speaks_of_accelerators, module.top)
    return known and module.value_of(node).cls.rpartition(".")[2] == "Accelerator"


def _speaks_of_accelerators(module: Module, file: ast.AST) -> bool:
    named = module.uses("Accelerator") or module.members("Accelerator")
    return bool(named) or any(each.value == "Accelerator" for each in module.nodes(ast.Constant))


def _used_as_accelerators(module: Module, function: FunctionNode) -> set[str]:
    return {
        each.value.id
        for each in module.nodes(ast.Attribute, function)
        if each.attr in _OF_ACCELERATORS
        and isinstance(each.value, ast.Name)
        and not _is_of_library(module, each)
    }


def shown_device(module: Module, at_hand: ast.AST) -> str:
    if isinstance(at_hand, ast.arg):
        return at_hand.arg
    text, cls = module.text(at_hand), module.class_of(at_hand)
    if isinstance(at_hand, ast.Name):
        return f"{text}.device"
    owner, _, last = text.rpartition(".")
    kept = module.once(_kept_names, cls).get(owner) if cls is not None else None
    return f"{kept}.{last}" if kept is not None and last == "device" else text
