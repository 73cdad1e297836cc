"""What every process of a run does, and what runs in some of them only."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.shards._of_all_ranks import is_fsdp, made_by_all
from tensortrail.rules.shards._written_files import MAY_DIFFER, writer_of
from tensortrail.rules.shared.conditions import held_at
from tensortrail.rules.shared.functions import called_here
from tensortrail.rules.shared.objects import (
    called,
    calls_in,
    is_constant,
    is_self,
    keyword,
    receiver,
    root_of,
)
from tensortrail.rules.shared.origins import behind, kept_behind
from tensortrail.rules.shared.parallel_wrappers import AVERAGING
from tensortrail.rules.shared.ranks import asks_for_rank, mentions_rank
from tensortrail.rules.view import FunctionNode, Module

_JOINS = ("torch.distributed.init_process_group", "deepspeed.initialize", *AVERAGING)
_OF_RUNNERS = {
    "Accelerator": frozenset({"prepare", "backward"}),
    "Fabric": frozenset({"launch", "setup", "backward"}),
}
"""What each process does of which a library starts several."""


def together(module: Module) -> Iterator[ast.Call]:
    """Calls that all processes make: of a collective, of what joins the group, and of a model that
    is spread over the processes, or whose gradients are averaged."""
    joins = [each for each in module.calls(*_JOINS) if not _is_alone(each)]
    for call in (*joins, *made_by_all(module), *_of_runners(module), *_of_averaged(module)):
        if not is_of_some(module, call):
            yield call


def _is_alone(call: ast.Call) -> bool:
    return is_constant(keyword(call, "world_size"), 1)


def _of_runners(module: Module) -> Iterator[ast.Call]:
    for cls, names in _OF_RUNNERS.items():
        for call in module.calls(*names):
            owner = call.func.value if isinstance(call.func, ast.Attribute) else None
            if owner is not None and module.value_of(owner).cls.rpartition(".")[2] == cls:
                yield call


def _of_averaged(module: Module) -> Iterator[ast.Call]:
    """`self.model(x)` of a model that the class wraps in DistributedDataParallel."""
    for wrap in module.calls(*AVERAGING):
        cls = module.class_of(wrap)
        for call in module.nodes(ast.Call, cls) if cls is not None else ():
            made = kept_behind(module, call.func) if call is not wrap else None
            if made is wrap or is_fsdp(module, call.func):
                yield call


def comes_with(module: Module, joint: ast.Call, call: ast.Call) -> bool:
    """Whoever comes to the call comes to the joint one: it is under no other condition."""
    if module.function_of(joint) is not module.function_of(call):
        return False
    return held_at(module, joint) <= held_at(module, call)


def is_of_some(module: Module, call: ast.Call) -> bool:
    """A condition before it asks for the rank; or one before each call of its function does."""
    if is_under_a_rank(module, call):
        return True
    function = module.function_of(call)
    name = function.name if function is not None else ""
    callers = [
        each
        for each in module.calls(name)
        if _runs(module, each, function) and writer_of(module, each) is None
    ]
    return bool(callers) and all(
        module.function_of(each) is not None and is_under_a_rank(module, each) for each in callers
    )  # behind `__name__ == "__main__"` all processes come to it


def _runs(module: Module, call: ast.Call, function: FunctionNode | None) -> bool:
    """It calls the function, also as `self.save()` where another class has a `save` too."""
    owner = receiver(call)
    own_class = module.class_of(call) if owner is not None and is_self(owner) else None
    if function is not None and own_class is not None and module.parent(function) is own_class:
        return True
    return called_here(module, call) is function


def is_under_a_rank(module: Module, call: ast.Call) -> bool:
    """A condition before it asks for the rank, or for what may stand for it."""
    return any(
        _asks_an_object(module, each.test)
        or asks_for_rank(module, each.test)
        or mentions_rank(module, each.test)
        or any(MAY_DIFFER.search(text) for text in _behind(module, each.test))
        for each in module.guards_of(call)
    )


def _asks_an_object(module: Module, test: ast.expr) -> bool:
    """`logger.is_primary`, `self.folder is not None`: one process only may have it, or be told so.
    What the command line says is the same for all."""
    match test:
        case ast.Compare(left=ast.Attribute() as asked, comparators=[ast.Constant(value=None)]):
            return not _is_of_command_line(module, asked)
        case ast.Compare(left=ast.Name() as name, comparators=[ast.Constant(value=None)]):
            return not module.value_of(name).origins
        case ast.Attribute() | ast.Call(func=ast.Attribute(), args=[]):
            return not _is_of_command_line(module, getattr(test, "func", test))
    return False


def _is_of_command_line(module: Module, asked: ast.expr) -> bool:
    made = behind(module, root_of(asked))
    return isinstance(made, ast.Call) and called(made).startswith("parse_")


def _behind(module: Module, test: ast.expr) -> Iterator[str]:
    """The condition, and what its variables were made of."""
    yield module.text(behind(module, test))
    for each in ast.walk(test):
        if isinstance(each, ast.Name):
            yield module.text(behind(module, each))
        elif isinstance(each, ast.Attribute):
            yield from _given_to(module, each)


def _given_to(module: Module, attribute: ast.Attribute) -> Iterator[str]:
    """What the file binds `args.saves` to, with the functions of the file that it asks; and what a
    property of that name does."""
    shown = module.text(attribute)
    for statement in module.nodes(ast.Assign):
        if any(module.text(each) == shown for each in statement.targets):
            yield from _with_the_asked(module, statement.value)
    for each in module.nodes(ast.FunctionDef, module.class_of(attribute)):
        if each.name == attribute.attr:
            yield module.text(each)


def _with_the_asked(module: Module, node: ast.AST, depth: int = 3) -> Iterator[str]:
    """Its text, and that of the functions of the file it calls, and of those these call."""
    yield module.text(node)
    for call in calls_in(module, node) if depth else ():
        asked = called_here(module, call)
        if asked is not None:
            yield from _with_the_asked(module, asked, depth - 1)
