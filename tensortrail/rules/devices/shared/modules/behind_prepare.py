"""Attributes of a model that accelerate may have wrapped, read as if it never did."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.devices.shared.modules.own_names import own_names
from tensortrail.rules.shared.objects import given, is_before
from tensortrail.rules.shared.prepared import is_prepared
from tensortrail.rules.view import Module


def read_behind_prepare(module: Module) -> Iterator[tuple[ast.Call, ast.Attribute]]:
    """`self.model.steps` after `self.model = accelerator.prepare(self.model)`, of a class of the
    project, where the file unwraps the model elsewhere: it is run by several processes."""
    unwrapped = {module.text(each) for call in module.calls("unwrap_model") for each in given(call)}
    for name, model, call in _prepared(module) if unwrapped else ():
        own = own_names(module, model) if name in unwrapped else frozenset()
        for read in module.nodes(ast.Attribute) if own else ():
            asked = read.attr in own and isinstance(read.ctx, ast.Load)
            if asked and module.text(read.value) == name and _is_later(module, read, call):
                yield call, read


def _prepared(module: Module) -> Iterator[tuple[str, ast.expr, ast.Call]]:
    """What is bound to what comes back of it, with the argument and the call."""
    for call in module.calls("prepare"):
        above = module.parent(call)
        if not isinstance(above, ast.Assign) or not is_prepared(module, call):
            continue
        target = above.targets[0]
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        for name, model in zip(names, call.args, strict=False):
            yield module.text(name), model, call


def _is_later(module: Module, read: ast.Attribute, call: ast.Call) -> bool:
    """After the call in its function, or in another method of an object that keeps the model."""
    here, there = module.function_of(read), module.function_of(call)
    if here is there:
        return is_before(call, read)
    own = module.text(read).startswith("self.") and module.class_of(read) is module.class_of(call)
    return own and there is not None and there.name == "__init__"
