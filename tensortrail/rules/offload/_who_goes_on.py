"""Whether anybody goes on after an exception, with what a context manager did not put back."""

from __future__ import annotations

import ast

from tensortrail.rules import Module
from tensortrail.rules.shared.functions import parameters
from tensortrail.rules.shared.objects import is_empty_literal
from tensortrail.rules.view import FunctionNode


def somebody_goes_on(module: Module, node: ast.Yield) -> bool:
    """After an exception at the `yield`: who uses what is installed may do so with an object that
    is theirs, an actor waits for its next task, and of a program what catches it and raises
    nothing."""
    function = module.function_of(node)
    return (
        function is None
        or _is_of_an_actor(module, function)
        or (module.is_installed() and _outlives_the_call(module, function))
        or any(
            _is_caught(module, each)
            for block in module.nodes(ast.With)
            for each in block.items
            if module.text(each.context_expr).partition("(")[0].endswith(function.name)
        )
    )


def _outlives_the_call(module: Module, function: FunctionNode) -> bool:
    """What is changed: an object of the caller, the environment of the process, or what the file
    keeps in a container that is empty at first."""
    kept = module.once(_caches, module.top)
    return (
        _is_of_the_caller(module, function)
        or any(_is_set_in_environment(module, e) for e in module.members("environ", function))
        or any(each.id in kept for each in module.nodes(ast.Name, function))
    )


def _is_set_in_environment(module: Module, node: ast.Attribute) -> bool:
    """`os.environ[name] = value`."""
    item = module.parent(node)
    of_os = isinstance(node.value, ast.Name) and node.value.id == "os"
    return of_os and isinstance(item, ast.Subscript) and not isinstance(item.ctx, ast.Load)


def _caches(module: Module, top: FunctionNode) -> frozenset[str]:
    """Names of the file that begin as an empty list or dict."""
    plain = [(each.targets[0], each.value) for each in module.nodes(ast.Assign, top)]
    typed = [(each.target, each.value) for each in module.nodes(ast.AnnAssign, top)]
    return frozenset(
        target.id
        for target, value in (*plain, *typed)
        if isinstance(target, ast.Name)
        and module.function_of(target) is None
        and module.class_of(target) is None
        and value is not None
        and is_empty_literal(value)
    )


def _is_of_the_caller(module: Module, function: FunctionNode) -> bool:
    """A model, or an argument of which more is read than whether it is there. A trainer ends with
    what its own method raised."""
    cls = module.class_of(function)
    facts = module.class_facts(cls) if cls is not None else None
    if facts is not None and facts.is_module:
        return True
    given = {each.arg for each in (*parameters(function), function.args.vararg) if each}
    return any(
        each.id in given - {"self", "cls"} and _is_looked_into(module, each)
        for each in module.nodes(ast.Name, function)
    )


def _is_looked_into(module: Module, name: ast.Name) -> bool:
    """As in `model.training` or `models[0]`; not in `self.kept[model]`."""
    parent = module.parent(name)
    return isinstance(parent, (ast.Attribute, ast.Subscript)) and parent.value is name


def _is_of_an_actor(module: Module, function: FunctionNode) -> bool:
    """Of a class that Ray runs, or of which the file derives one: Ray keeps the object after a task
    that failed."""
    cls = module.class_of(function)
    return cls is not None and any(
        module.qualified(how.func if isinstance(how, ast.Call) else how) == "ray.remote"
        for actor in module.nodes(ast.ClassDef)
        if actor is cls or cls.name in map(ast.unparse, actor.bases)
        for how in actor.decorator_list
    )


def _is_caught(module: Module, item: ast.withitem) -> bool:
    child: ast.AST = item
    for up in module.ancestors(item):
        handlers = up.handlers if isinstance(up, ast.Try) and child in up.body else []
        if any(not isinstance(each.body[-1], ast.Raise) for each in handlers):
            return True
        child = up
    return False
