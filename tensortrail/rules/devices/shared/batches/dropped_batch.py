"""Moves of what a loop or a step gets as a batch, where the moved tensor is dropped:
`inputs.to(device)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.devices.shared.batches.bound_together import names_bound, without_counter
from tensortrail.rules.shared.called_modules import is_a_module
from tensortrail.rules.shared.imports import imported_packages
from tensortrail.rules.shared.objects import called, given, receiver
from tensortrail.rules.view import Module

_OF_TENSORS = frozenset(
    "shape device dtype ndim is_cuda T mT data grad grad_fn requires_grad names layout nbytes real "
    "imag is_sparse itemsize".split()
)
_MOVE_IN_PLACE = frozenset({"torch_geometric", "dgl", "tensordict", "torchrl"})
"""Libraries whose batches are objects that a move changes."""


def taken_as_tensor(module: Module, statement: ast.stmt, subject: ast.expr) -> ast.Call | None:
    """The call of a model or a loss that takes this part of the batch as it was, unmoved."""
    for scope, names in _batches(module, statement):
        for batch in names:
            taker = None
            if isinstance(subject, ast.Name) and subject.id == batch:
                taker = _takes_whole(module, scope, batch, alone=_is_all_of_it(scope, batch))
            elif _is_member(module, statement, subject, batch):
                taker = _takes_members(module, scope, batch)
            if taker is not None:
                return taker
    return None


def written_back(module: Module, statement: ast.stmt, subject: ast.expr) -> str:
    """Where the moved tensor belongs, as the target of an assignment; "" if it has no name there,
    as in `for value in batch.values()`."""
    key = _item_of(module, statement, subject)
    return "" if key.endswith("[]") else key or module.text(subject)


def _loops_around(module: Module, statement: ast.stmt) -> Iterator[ast.For]:
    for up in module.ancestors(statement):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return
        if isinstance(up, ast.For):
            yield up


def _batches(module: Module, statement: ast.stmt) -> Iterator[tuple[ast.AST, list[str]]]:
    """Where a batch has names, and which: those of the loop, and of the parts that it is taken
    apart into. Of the arguments of a function only such parts."""
    for loop in _loops_around(module, statement):
        yield loop, _with_parts(module, loop, list(names_bound(without_counter(loop))))
    function = module.function_of(statement)
    if function is not None:
        arguments = [each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)]
        yield function, _with_parts(module, function, [*arguments])[len(arguments) :]


def _with_parts(module: Module, scope: ast.AST, found: list[str]) -> list[str]:
    for assign in module.nodes(ast.Assign, scope):
        if isinstance(assign.value, ast.Name) and assign.value.id in found:
            found += [each for each in names_bound(assign.targets[0]) if each not in found]
    return found


def _is_member(module: Module, statement: ast.stmt, subject: ast.expr, batch: str) -> bool:
    """`batch[key]`, or `value` of `for key, value in batch.items()`."""
    if isinstance(subject, ast.Subscript):
        return isinstance(subject.value, ast.Name) and subject.value.id == batch
    return _item_of(module, statement, subject).startswith(f"{batch}[")


def _item_of(module: Module, statement: ast.stmt, subject: ast.expr) -> str:
    """`batch[key]` for the value of `for key, value in batch.items()`, `batch[]` for that of
    `for value in batch.values()`."""
    for loop in _loops_around(module, statement):
        over, target = loop.iter, loop.target
        if not isinstance(over, ast.Call) or not isinstance(over.func, ast.Attribute):
            continue
        pair = target.elts if isinstance(target, ast.Tuple) else []
        value, key = (pair[1], module.text(pair[0])) if len(pair) == 2 else (target, "")
        whole = over.func.attr == ("items" if key else "values")
        if whole and ast.dump(value) == _as_target(subject):
            return f"{module.text(over.func.value)}[{key}]"
    return ""


def _as_target(subject: ast.expr) -> str:
    """The name as it is written where it is bound; "" for what is no name."""
    return ast.dump(ast.Name(subject.id, ast.Store())) if isinstance(subject, ast.Name) else ""


def _is_all_of_it(scope: ast.AST, batch: str) -> bool:
    """The loop gives nothing else: `for batch in loader`."""
    return isinstance(scope, ast.For) and list(names_bound(without_counter(scope))) == [batch]


def _takes_whole(module: Module, scope: ast.AST, name: str, *, alone: bool) -> ast.Call | None:
    """It is passed as it is, and nothing is asked of it that a tensor does not have. What a loop
    gives alone may be an object that moves in place, of which a model knows the parts: that it is
    a tensor is said by what takes it besides, a loss or an operation."""
    if _is_an_object(module, scope, name):
        return None
    takers = [
        call
        for call in module.nodes(ast.Call, scope)
        if any(isinstance(each, ast.Name) and each.id == name for each in given(call))
        and _takes_tensors(module, call)
    ]
    if alone and len(takers) < 2 and not _is_computed_with(module, scope, name):
        takers = [each for each in takers if _is_functional(module, each)]
    return next(iter(takers), None)


def _is_computed_with(module: Module, scope: ast.AST, name: str) -> bool:
    return any(
        isinstance(module.parent(each), (ast.BinOp, ast.UnaryOp)) or _is_of_tensors(module, each)
        for each in module.uses(name, scope)
    )


def _is_of_tensors(module: Module, node: ast.Name) -> bool:
    above = module.parent(node)
    return isinstance(above, ast.Attribute) and above.attr in _OF_TENSORS


def _takes_members(module: Module, scope: ast.AST, batch: str) -> ast.Call | None:
    """`model(**batch)`, `model(batch)` or `model(batch["x"])`."""
    for call in module.nodes(ast.Call, scope):
        spread = [each.value for each in call.keywords if each.arg is None]
        parts = [each.value for each in given(call) if isinstance(each, ast.Subscript)]
        roots = [each.id for each in (*spread, *parts, *call.args) if isinstance(each, ast.Name)]
        if batch in roots and _takes_tensors(module, call):
            return call
    return None


def _is_an_object(module: Module, scope: ast.AST, name: str) -> bool:
    if not _MOVE_IN_PLACE.isdisjoint(imported_packages(module)):
        return True
    for node in module.nodes(ast.Attribute, scope):
        if isinstance(node.value, ast.Name) and node.value.id == name:
            above = module.parent(node)
            is_method = isinstance(above, ast.Call) and above.func is node
            if not is_method and node.attr not in _OF_TENSORS:
                return True
    spread = (each.value for each in module.nodes(ast.keyword, scope) if each.arg is None)
    return any(isinstance(each, ast.Name) and each.id == name for each in spread)


def _takes_tensors(module: Module, call: ast.Call) -> bool:
    """A model or loss is called, or a function of torch.nn.functional."""
    if _is_functional(module, call):
        return True
    name = module.qualified(call.func)
    if name.startswith("torch.") or name.rpartition(".")[2][:1].isupper():
        return False  # `nn.Sequential(block)` takes modules
    owner = receiver(call)
    if owner is not None and called(call) == "forward":
        return is_a_module(module, owner)
    return not _is_method(module, call) and is_a_module(module, call.func)


def _is_functional(module: Module, call: ast.Call) -> bool:
    return module.qualified(call.func).startswith("torch.nn.functional.")


def _is_method(module: Module, call: ast.Call) -> bool:
    """One of the class around, which may take anything."""
    cls = module.class_of(call)
    facts = module.class_facts(cls) if cls is not None else None
    return facts is not None and receiver(call) is not None and called(call) in facts.methods
