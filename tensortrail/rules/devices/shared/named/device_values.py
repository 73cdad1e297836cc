"""Which expressions are the device of a tensor, by their value or by how the tensor is used."""

from __future__ import annotations

import ast

from tensortrail.rules.places import What
from tensortrail.rules.shared.objects import last_name
from tensortrail.rules.view import Module
from tensortrail.rules.words import Kind


def is_device(module: Module, node: ast.expr) -> bool:
    value = module.value_of(node)
    if value.kind is Kind.DEVICE and value.sure:
        return True
    sources = value.origins if isinstance(node, ast.Name) else (node,)
    return bool(sources) and all(
        isinstance(each, ast.Attribute) and each.attr == "device" and _is_tensor(module, each)
        for each in sources
    )


def _is_tensor(module: Module, asked: ast.Attribute) -> bool:
    """The function uses it as only a tensor can be used, or an operation gave it. An object of a
    class may have the same attributes: `Storage(device="cpu", ndim=2)`."""
    if any(map(_makes_an_object, module.value_of(asked.value).origins)):
        return False
    function = module.function_of(asked)
    held = module.places(function).seen.get(asked.value) if function is not None else None
    return held is not None and held.what is What.TENSOR


def _makes_an_object(source: ast.expr) -> bool:
    """A call of what is named as classes are."""
    func = source.func if isinstance(source, ast.Call) else None
    name = last_name(func)
    return name[:1].isupper()


def is_chain(node: ast.expr) -> bool:
    """What stands between two comparisons is compared with something else too."""
    return isinstance(node, ast.Compare) and len(node.ops) > 1


def source_of_device(module: Module, device: ast.expr) -> ast.AST | None:
    origins = module.value_of(device).origins
    if origins:
        return origins[0]
    function = module.function_of(device)
    if isinstance(device, ast.Name) and function is not None:
        arguments = (*function.args.args, *function.args.kwonlyargs)
        return next((each for each in arguments if each.arg == device.id), None)
    return None


def is_of_a_tensor(module: Module, node: ast.expr) -> bool:
    """`t.device`, which has a number; not one that was made or given, nor an attribute that the
    file stores."""
    sources = module.value_of(node).origins if isinstance(node, ast.Name) else (node,)
    stored = {
        module.text(each) for each in module.members("device") if isinstance(each.ctx, ast.Store)
    }
    return bool(sources) and all(
        isinstance(each, ast.Attribute)
        and each.attr == "device"
        and is_device(module, each)
        and module.text(each) not in stored
        for each in sources
    )
