"""What happens to a state dict that is kept: whether it is copied after all, loaded again, and what
changes the model in between."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.shards._values_read import is_parameter_there, reads_values
from tensortrail.rules.shared.objects import called, name_of, receiver, within
from tensortrail.rules.view import Module

_MEASURES = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def loads_later(module: Module, assign: ast.Assign, name: str, owner: str) -> bool:
    """Another method of the class loads its attribute, which is reported by itself."""
    cls = module.class_of(assign)
    return (
        name.startswith("self.")
        and cls is not None
        and any(loads(module, call, owner, name) for call in module.nodes(ast.Call, cls))
    )


def kept_as(module: Module, write: ast.Call, source: ast.Attribute) -> ast.Assign | None:
    """The nearest assignment of the tensor, uncopied, to something that outlives the function."""
    text = module.text(source)
    for assign in module.earlier(write, ast.Assign):
        if module.text(assign.targets[0]) == text:
            return None
        target = assign.targets[0]
        if module.text(assign.value) == text and isinstance(target, ast.Subscript):
            return None if _is_part_of_a_tensor(target.slice) else assign
    return None


def _is_part_of_a_tensor(index: ast.expr) -> bool:
    """`kept[:, :n] = x` copies the values into what is there."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return any(isinstance(each, ast.Slice) for each in parts)


def loads(module: Module, call: ast.Call, owner: str, name: str) -> bool:
    """`owner.load_state_dict(name)`, of whatever owner where none is given."""
    subject, loaded = receiver(call), module.argument(call, 0, "state_dict")
    return (
        called(call) == "load_state_dict"
        and subject is not None
        and loaded is not None
        and (not owner or name_of(module, subject) == owner)
        and name in (module.text(loaded), name_of(module, loaded))
        and not any(each.arg == "assign" for each in call.keywords)
    )


def change_between(
    module: Module, assign: ast.Assign, restore: ast.Call, owner: str
) -> ast.Call | None:
    """A call that trains the model, or loads something else into it."""
    for call in module.later(assign, ast.Call):
        if call is restore or call.lineno >= restore.lineno or call.lineno <= assign.lineno:
            continue
        if called(call) == "load_state_dict":
            subject = receiver(call)
            if subject is not None and name_of(module, subject) == owner:
                return call
        elif called(call) == "step" and is_optimizer(module, call):
            return call
    return None


def is_optimizer(module: Module, call: ast.Call) -> bool:
    subject = receiver(call)
    return subject is not None and "optim" in ast.unparse(subject).lower()


def is_copied(module: Module, assign: ast.Assign, name: str) -> bool:
    """Rebound after it to something else, a copy most likely, or filled with other tensors, one by
    one or by `update`."""
    function = module.function_of(assign)
    stores = [
        each
        for each in module.nodes(ast.Assign, function)
        if each is not assign and name in stored(module, each)
    ]
    return any(each.lineno > assign.lineno for each in stores) or any(
        module.text(owner) == name
        for call in module.calls("update", inside=function)
        if call.lineno > assign.lineno and (owner := receiver(call)) is not None
    )


def stored(module: Module, assign: ast.Assign) -> Iterator[str]:
    """`x` of `x = value`, and `d` of `d[key] = value` too."""
    target = assign.targets[0]
    whole = [target.value] if isinstance(target, ast.Subscript) else []
    return map(module.text, (target, *whole))


def begins_anew(module: Module, cls: ast.ClassDef, assign: ast.Assign, owner: str) -> bool:
    """What is kept has nothing yet that changes, or is loaded into another module."""
    return _is_before_the_first_step(module, cls, assign, owner) or _is_made_again(
        module, cls, owner
    )


def _is_before_the_first_step(
    module: Module, cls: ast.ClassDef, assign: ast.Assign, owner: str
) -> bool:
    """The state of an optimizer that other methods step, taken by the constructor: it is empty."""
    function = module.function_of(assign)
    return (
        function is not None
        and function.name == "__init__"
        and any(
            owner == name_of(module, stepped)
            for call in module.calls("step", inside=cls)
            if (stepped := receiver(call)) is not None and module.function_of(call) is not function
        )
    )


def _is_made_again(module: Module, cls: ast.ClassDef, owner: str) -> bool:
    """Some method puts another module in its place: the old values are given to that one."""
    for assign in module.nodes(ast.Assign, cls):
        function = module.function_of(assign)
        outside = function is not None and function.name != "__init__"
        if outside and module.text(assign.targets[0]) == owner:
            return True
    return False


def is_best_of(module: Module, assign: ast.Assign, owner: str) -> bool:
    """The model is an argument, and its state is kept where a number is less or more than one."""
    function = module.function_of(assign)
    names = {each.arg for each in module.nodes(ast.arg, function)} if function else set()
    tests = (each.test for each in module.guards_of(assign))
    measured = (isinstance(e, ast.Compare) and isinstance(e.ops[0], _MEASURES) for e in tests)
    return owner in names and any(measured)


def next_use(module: Module, after: ast.AST, name: str) -> ast.Name | None:
    """The next one that reads the values, if the name is bound to nothing else before."""
    inside = module.function_of(after)
    uses = (each for each in module.later(after, ast.Name) if each.id == name)
    for use in uses:
        other = module.function_of(use) is not inside and is_parameter_there(module, use)
        if within(use, after, module) or other:
            continue
        if not isinstance(use.ctx, ast.Load):
            return None
        if reads_values(module, use):
            return use
    return None
