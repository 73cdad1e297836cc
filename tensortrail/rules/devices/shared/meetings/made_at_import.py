"""Tensors that a file makes while it is read, beside those at its top: in the body of a class, and
as the default of a parameter."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tensortrail.rules.defaults import with_defaults
from tensortrail.rules.devices.shared.written_for.callers import comes_from_the_cpu
from tensortrail.rules.devices.shared.written_for.device_aware import sets_up
from tensortrail.rules.devices.shared.written_for.makers import made_without_device
from tensortrail.rules.shared.functions import functions
from tensortrail.rules.shared.moves import MAY_PLACE
from tensortrail.rules.shared.objects import called, is_called, is_self, receiver
from tensortrail.rules.view import FunctionNode, Module

_ASKS = frozenset({"shape", "device", "dtype", "ndim"})
_MOVES = MAY_PLACE | {"type_as", "cpu", "numpy", "tolist", "item", "size", "dim", "numel", "len"}
_OF_VALUES = ("tensor", "Tensor", "FloatTensor", "LongTensor", "as_tensor")


class Made(NamedTuple):
    made: ast.Call
    name: str
    use: ast.expr
    """What computes with it."""


def made_with_a_class(module: Module) -> Iterator[Made]:
    """`mean = torch.tensor([...])` in the body of a module that computes with `self.mean`."""
    for call in _with_dimensions(module):
        assign = module.statement_of(call)
        cls = module.parent(assign)
        if not isinstance(cls, ast.ClassDef) or not isinstance(assign, ast.Assign):
            continue
        facts, target = module.class_facts(cls), assign.targets[0]
        if facts is None or not facts.is_module or not isinstance(target, ast.Name):
            continue
        reads = [e for e in module.members(target.id, cls) if is_self(e.value)]
        used = _computed(module, reads)
        if used is not None and not facts.methods & {"_apply", "to", "cuda"} - _inherited(module):
            yield Made(call, f"self.{target.id}", used)


def made_with_a_function(module: Module) -> Iterator[Made]:
    """`def blur(x, kernel=torch.ones(3, 3))`, where the function computes with it as it is."""
    made = list(_with_dimensions(module))
    for function in functions(module) if made else ():
        for argument, default in with_defaults(function.args):
            inside = [each for each in made if default is not None and _within(each, default)]
            if not inside:
                continue
            used = _computed(module, module.uses(argument.arg, function), through=function)
            if used is not None and not _is_for_the_cpu(module, function, used):
                yield Made(inside[0], argument.arg, used)


def _is_for_the_cpu(module: Module, function: FunctionNode, used: ast.expr) -> bool:
    """What it is combined with comes from callers that have it on the CPU."""
    parameters = {each.arg for each in (*function.args.posonlyargs, *function.args.args)}
    read = {each.id for each in module.nodes(ast.Name, used)} & parameters
    return any(comes_from_the_cpu(module, function, each) for each in sorted(read))


def _inherited(module: Module) -> frozenset[str]:
    base = module.class_facts("torch.nn.modules.module.Module")
    return base.methods if base is not None else frozenset()


def _within(node: ast.AST, around: ast.AST) -> bool:
    return any(each is node for each in ast.walk(around))


def _with_dimensions(module: Module) -> Iterator[ast.Call]:
    """Made without a device, outside of all functions, and no single number."""
    for call in made_without_device(module):
        first = call.args[0] if call.args else None
        listed = isinstance(first, (ast.List, ast.Tuple, ast.ListComp))
        if not module.qualified(call.func).startswith("torch."):
            continue  # an array
        if called(call) in _OF_VALUES and not listed:
            continue
        if module.function_of(call) is None or _is_default(module, call):
            yield call


def _is_default(module: Module, call: ast.Call) -> bool:
    """Of a function at the top of the file, or a method."""
    for up in module.ancestors(call):
        if isinstance(up, ast.arguments):
            function = module.function_of(call)
            return function is not None and module.function_of(function) is None
        if isinstance(up, ast.stmt):
            return False
    return False


def _computed(
    module: Module, reads: Sequence[ast.expr], through: FunctionNode | None = None
) -> ast.expr | None:
    """The first operation on it and another value; None if it is moved, or given another value,
    anywhere."""
    found: ast.expr | None = None
    for read in reads:
        if not isinstance(getattr(read, "ctx", None), ast.Load):
            return None
        around = module.function_of(read)
        if around is None or sets_up(around) or _is_asked(module, read):
            return None
        use = _operation(module, read)
        if use is None and through is not None:
            use = _operation_on_view(module, read, through)
        found = found or use
    return found


def _is_asked(module: Module, read: ast.expr) -> bool:
    """`x.to(device)`, `x.device`, `f(x, device)`: somebody sees to where it lies."""
    up = module.parent(read)
    if isinstance(up, ast.Attribute) and (
        up.attr in _ASKS or (up.attr in _MOVES and is_called(module, up))
    ):
        return True
    if isinstance(up, ast.Compare):
        return True
    call = up if isinstance(up, ast.Call) else None
    return call is not None and "device" in module.text(call)


def _operation(module: Module, read: ast.expr) -> ast.expr | None:
    """`x - mean`, `F.conv2d(x, kernel)`."""
    up = module.parent(read)
    if isinstance(up, ast.BinOp):
        other = up.right if up.left is read else up.left
        return None if isinstance(other, ast.Constant) else up
    if isinstance(up, ast.Call) and len(up.args) > 1 and read in up.args:
        return up if module.qualified(up.func).startswith("torch.nn.functional.") else None
    return None


def _operation_on_view(module: Module, read: ast.expr, function: FunctionNode) -> ast.expr | None:
    """The same of `weight = kernel.expand(...)`."""
    assign = module.statement_of(read)
    target = assign.targets[0] if isinstance(assign, ast.Assign) else None
    value = assign.value if isinstance(assign, ast.Assign) else None
    owner = receiver(value) if isinstance(value, ast.Call) else None
    if owner is not read or not isinstance(target, ast.Name):
        return None
    uses = module.uses(target.id, function)
    return _computed(module, [each for each in uses if isinstance(each.ctx, ast.Load)])
