"""Whether a move whose result is dropped is there for something else, or changes nothing."""

from __future__ import annotations

import ast

from tensortrail.rules import Module
from tensortrail.rules.devices.shared.moves.leaves import is_parameter
from tensortrail.rules.devices.shared.moves.what_is_moved import (
    PROPERTIES,
    arguments,
    what_is_moved,
    written_in_place,
)
from tensortrail.rules.shared.objects import called, names_in
from tensortrail.rules.shared.origins import behind

_ON_PURPOSE = ("raises", "assert", "record", "profile", "mode", "capture", "trace", "expect")


def is_provoked(module: Module, statement: ast.stmt) -> bool:
    """Run to see it fail, or to be recorded: `with raises(...)`, a profile, a graph, a `try`
    whose handlers take the failure for an answer."""
    around = " ".join(module.text(each) for each in module.contexts_of(statement)).lower()
    if any(word in around for word in _ON_PURPOSE):
        return True
    child: ast.AST = statement
    for up in module.ancestors(statement):
        if isinstance(up, ast.Try) and child in up.body and _answers(up):
            return True
        child = up
    return False


def _answers(tried: ast.Try) -> bool:
    return any(not isinstance(handler.body[-1], ast.Raise) for handler in tried.handlers)


def is_each_device_in_turn(module: Module, call: ast.Call) -> bool:
    """`for i in range(count): x.to(f"cuda:{i}")`, where nothing else is done with `x`, makes the
    devices known to each other."""
    loop = next((each for each in module.ancestors(call) if isinstance(each, ast.For)), None)
    root = what_is_moved(call)
    if loop is None or not isinstance(root, ast.Name):
        return False
    bound = names_in(loop.target)
    asked = {name for each in arguments(call) for name in names_in(each)}
    only_here = sum(each.id == root.id for each in module.nodes(ast.Name, loop)) == 1
    return only_here and root.id not in bound and not bound.isdisjoint(asked)


def changes_nothing(module: Module, call: ast.Call) -> bool:
    """All that is asked for was asked for where the tensor was made: `zeros(2, dtype=x.dtype)`,
    then `.to(x.dtype)`."""
    asked = {module.text(behind(module, each)) for each in arguments(call)}
    root: ast.expr = call.func.value if isinstance(call.func, ast.Attribute) else call
    made = module.value_of(root).origins
    if called(call) == "detach" and not asked:
        return bool(made) and all(_has_no_graph(module, each) for each in made)
    return bool(asked and made) and all(asked <= _told(module, each) for each in made)


def _told(module: Module, made: ast.expr) -> set[str]:
    """Dtype and device that a factory is given, or a move, whatever is made a parameter of it."""
    if isinstance(made, ast.Call) and is_parameter(module, made) and made.args:
        made = behind(module, made.args[0])
    if not isinstance(made, ast.Call):
        return set()
    said = [each.value for each in made.keywords if each.arg in PROPERTIES]
    said += made.args if called(made) == "to" else []
    return {module.text(behind(module, each)) for each in said}


def _has_no_graph(module: Module, made: ast.expr) -> bool:
    """It was made under `torch.no_grad()`."""
    around = (module.qualified(bare) for bare in map(_bare, module.contexts_of(made)))
    return isinstance(made, (ast.Call, ast.BinOp)) and any(
        each in _WITHOUT_GRAPH for each in around
    )


def _bare(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node


_WITHOUT_GRAPH = ("torch.no_grad", "torch.inference_mode")


def gives_itself(module: Module, call: ast.Call) -> bool:
    """`t.copy_(x).to(t.device, dtype=t.dtype)`: what is asked for is what `t` has."""
    subject = call.func.value if isinstance(call.func, ast.Attribute) else call
    own = module.text(written_in_place(call) or subject)
    asked = [module.text(each) for each in arguments(call)]
    return bool(asked) and {f"{own}.{each}" for each in PROPERTIES}.issuperset(asked)
