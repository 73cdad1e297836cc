"""Whether a device is a GPU by name."""

from __future__ import annotations

import ast

from tensortrail.rules.defaults import with_defaults
from tensortrail.rules.shared.moves import named_device
from tensortrail.rules.view import FunctionNode, Module


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
    name = own_attribute(at_hand)
    cls = module.class_of(at_hand) if name else None
    return cls is not None and _is_always_cuda(module, cls, name)


def own_attribute(node: ast.AST) -> str:
    """`device` of `self.device`."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.attr if node.value.id == "self" else ""
    return ""


def _is_always_cuda(module: Module, cls: ast.ClassDef, name: str) -> bool:
    """Every `self.device = ...` of the class names a GPU; so does what its property gives."""
    for method in cls.body:
        if isinstance(method, ast.FunctionDef) and method.name == name:
            given = [own_attribute(e.value) for e in module.nodes(ast.Return, method) if e.value]
            name = given[0] if len(given) == 1 else ""
            break
    values = [
        each.value
        for each in module.nodes(ast.Assign, cls)
        if name and name in map(own_attribute, each.targets)
    ]
    return bool(values) and all(_names_a_gpu(module, each) for each in values)


def _names_a_gpu(module: Module, node: ast.expr) -> bool:
    """`torch.device("cuda")`, `torch.device(f"cuda:{rank}")`, or `torch.cuda.current_device()`."""
    said = named_device(module, node)
    if isinstance(said, ast.Call) and module.qualified(said.func) == "torch.cuda.current_device":
        return True
    if isinstance(said, ast.JoinedStr) and isinstance(said.values[0], ast.Constant):
        return str(said.values[0].value).startswith("cuda:")
    return is_cuda_literal(module, node)
