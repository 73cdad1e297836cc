"""What says that the device of a call does not matter: it is moved, read out, copied or kept."""

from __future__ import annotations

import ast
from collections.abc import Container, Sequence

from tensortrail.rules.devices.shared.written_for.device_aware import sets_up
from tensortrail.rules.shared.moves import MOVES
from tensortrail.rules.shared.objects import called, last_name
from tensortrail.rules.view import FunctionNode, Module

_MOVES = MOVES | {"type_as", "pin_memory", "share_memory_"}
_ENDS = frozenset({"item", "tolist", "numpy", "size", "dim", "numel", "element_size", "itemsize"})
_KEEPERS = frozenset({"Parameter", "Buffer", "register_buffer", "register_parameter"})
_LOADERS = frozenset({"DataLoader", "TensorDataset"})
_STORES_A_COPY = frozenset({"copy_", "load_state_dict"})


def is_explained(module: Module, call: ast.Call, usual: Sequence[ast.Call] = ()) -> bool:
    """Something near it says that the device of this one does not matter: it has no dimension,
    and the usual ones have, or it is used where any device is right."""
    function = module.function_of(call)
    if function is None or any(map(_puts_on_a_device, module.contexts_of(call))):
        return True
    here = [each for each in usual if module.function_of(each) is function]
    if sets_up(function) and not _takes_a_device(function) and not here:
        return True
    if _is_scalar(module, call) and not any(_is_scalar(module, each) for each in usual):
        return True
    if _is_used_up(module, call, any(_is_kept_by_a_module(module, each) for each in here)):
        return True
    return all(_is_used_up(module, each) for each in _uses(module, function, call))


def _is_scalar(module: Module, call: ast.Call) -> bool:
    function = module.function_of(call)
    held = module.places(function).seen.get(call) if function is not None else None
    return held is not None and held.rank == 0


def _puts_on_a_device(context: ast.expr) -> bool:
    return "device" in ast.unparse(context).lower()


def _takes_a_device(function: FunctionNode) -> bool:
    return any(
        "device" in each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)
    )


def has_a_device_at_hand(module: Module, function: FunctionNode) -> bool:
    if _takes_a_device(function):
        return True
    of_a_tensor = any(
        node.attr in ("device", "dtype") for node in module.nodes(ast.Attribute, function)
    )
    if of_a_tensor or any("device" in node.id for node in module.nodes(ast.Name, function)):
        return True
    cls = module.parent(function)
    return isinstance(cls, ast.ClassDef) and module.once(_knows_its_device, cls)


def _knows_its_device(module: Module, cls: ast.ClassDef) -> bool:
    """Methods of the class ask `self.device`."""
    return any(
        node.attr == "device" and isinstance(node.value, ast.Name) and node.value.id == "self"
        for node in module.nodes(ast.Attribute, cls)
    )


def _is_kept_by_a_module(module: Module, call: ast.Call) -> bool:
    above = module.parent(call)
    return isinstance(above, ast.Call) and called(above) in _KEEPERS


def _is_used_up(module: Module, node: ast.expr, beside_kept: bool = False) -> bool:
    """The value is moved, read out, copied, kept by a module, or is an index. What a module keeps
    beside what was put on a device is not moved by itself."""
    below: ast.AST = node
    for above in module.ancestors(node):
        if isinstance(above, (ast.If, ast.While, ast.Assert, ast.Match)):
            return True  # read as a truth value
        if isinstance(above, ast.stmt):
            copied = isinstance(above, ast.Assign) and any(map(_is_copied_to, above.targets))
            return copied and not _is_a_layer(module, node)
        if isinstance(above, ast.Attribute) and above.attr in _MOVES | _ENDS | {"shape", "dtype"}:
            return True
        if isinstance(above, ast.Subscript) and above.slice is below:
            return True
        if isinstance(above, ast.Call) and below is not above.func:
            func = above.func
            name = last_name(func)
            if name in _KEEPERS:
                return not (beside_kept or _is_built_on_a_device(module, node))
            if name in _STORES_A_COPY | _LOADERS | {
                "len",
                "print",
                "range",
                "int",
                "float",
                "bool",
            }:
                return True
            if name[:1].isupper():
                return False  # kept by an object
        below = above
    return False


def _is_a_layer(module: Module, node: ast.expr) -> bool:
    """`self.layers[name] = nn.Linear(...)` keeps the layer itself."""
    owner, _, last = module.qualified(getattr(node, "func", node)).rpartition(".")
    return owner == "torch.nn" and last[:1].isupper() and last not in _KEEPERS


def _is_built_on_a_device(module: Module, node: ast.expr) -> bool:
    """The module is set up on a device that its maker is given."""
    function = module.function_of(node)
    return function is not None and _takes_a_device(function)


def _is_copied_to(target: ast.expr) -> bool:
    """`x[0] = value` copies into a tensor; an entry of a mapping is the value itself."""
    if not isinstance(target, ast.Subscript):
        return False
    key = target.slice
    text = isinstance(key, ast.Constant) and isinstance(key.value, str)
    return not text and not isinstance(key, ast.JoinedStr)


def _uses(module: Module, function: FunctionNode, call: ast.Call) -> list[ast.expr]:
    """The reads of the name that the statement of the call binds; the call if it binds none."""
    statement = module.statement_of(call)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return [call]
    target = statement.targets[0]
    if not isinstance(target, ast.Name):
        return [call]
    reads: list[ast.expr] = [
        node
        for node in module.uses(target.id, function)
        if isinstance(node.ctx, ast.Load) and node.lineno >= call.lineno
    ]
    return [] if any(is_followed_by(module, each, _MOVES) for each in reads) else reads


def is_followed_by(module: Module, node: ast.expr, methods: Container[str]) -> bool:
    """One of the methods is read of it in its statement, or of what is made of it:
    `pad(rows).to(device)`."""
    for above in module.ancestors(node):
        if isinstance(above, ast.stmt):
            return False
        if isinstance(above, ast.Attribute) and above.attr in methods:
            return True
    return False
