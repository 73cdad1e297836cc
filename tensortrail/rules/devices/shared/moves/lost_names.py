"""Assignments of a new value to a name of a loop, or to an argument, that nobody reads again."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.devices.shared.moves.what_is_moved import moves_bytes
from tensortrail.rules.shared.functions import is_declared_outside, matched, names_of_parameters
from tensortrail.rules.shared.moves import CASTS, MOVES
from tensortrail.rules.shared.objects import called, is_name, keyword, names_in, receiver, within
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.shared.parallel_wrappers import AVERAGING, COPYING
from tensortrail.rules.view import FunctionNode, Module
from tensortrail.rules.words import Kind

_COPIES = MOVES | CASTS | {"float", "pin_memory", "detach", "clone", "contiguous", "requires_grad_"}
_OF_WEIGHTS = ("parameters", "named_parameters", "buffers", "named_buffers")
WRAPPERS = frozenset({"torch.compile", "torch.jit.script", *COPYING, *AVERAGING})
_BATCHES = ("BatchEncoding", "BatchFeature")
_SEES_ALL = ("locals", "vars", "exec", "eval")


def lost(module: Module) -> Iterator[tuple[ast.Assign, ast.Name, ast.For | FunctionNode]]:
    """The assignment, its name, and what bound the name before: a loop or a function."""
    for assign in module.nodes(ast.Assign):
        target = assign.targets[0]
        if len(assign.targets) != 1 or not isinstance(target, ast.Name):
            continue
        if not _makes(module, assign.value, target.id):
            continue
        if not module.uses(target.id, assign.value):
            continue
        binder = _bound_by(module, assign, target.id)
        if binder is None or not _fits(module, assign, target, binder):
            continue
        if not _is_read_again(module, assign, target.id, binder):
            yield assign, target, binder


def _makes(module: Module, value: ast.expr, name: str) -> bool:
    """`x.to(d)`, `{k: v.to(d) for k, v in x.items()}`, `torch.compile(x)`, `a * x + b`: another
    object, and nothing is done beside."""
    if isinstance(value, ast.BinOp):
        return True
    if isinstance(value, (ast.ListComp, ast.DictComp, ast.GeneratorExp, ast.SetComp)):
        element = value.value if isinstance(value, ast.DictComp) else value.elt
        return name in names_in(value.generators[0].iter) and _is_copy(element)
    if not isinstance(value, ast.Call):
        return False
    if called(value) in ("tuple", "list", "dict") and len(value.args) == 1:
        return _makes(module, value.args[0], name)
    named = (each.value for each in value.keywords if each.arg in ("model", "input", "module"))
    first = value.args[0] if value.args else next(named, None)
    qualified = module.qualified(value.func)
    if first is not None and is_name(first, name):
        return qualified in WRAPPERS or qualified.endswith("_like")
    return _is_copy(value) and is_name(_moved(value), name)


def _is_copy(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and receiver(node) is not None and called(node) in _COPIES


def _moved(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Call) and _is_copy(node):
        inner = receiver(node)
        if inner is None:
            break
        node = inner
    return node


def _bound_by(module: Module, assign: ast.Assign, name: str) -> ast.For | FunctionNode | None:
    """The innermost loop, if the name is one of its own; the function, if there is no loop and the
    name is one of its arguments."""
    for up in module.ancestors(assign):
        if isinstance(up, ast.For):
            return up if name in names_in(up.target) else None
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return up if name in names_of_parameters(up) else None
        if isinstance(up, (ast.While, ast.AsyncFor, ast.ClassDef, ast.Lambda)):
            return None
    return None


def _fits(
    module: Module, assign: ast.Assign, name: ast.Name, binder: ast.For | FunctionNode
) -> bool:
    """What the name held is a tensor, or tensors; a module moves in place."""
    value = assign.value
    if isinstance(binder, ast.For):
        if isinstance(value, ast.BinOp):
            return _gives_weights(binder.iter)
        if isinstance(value, ast.Call) and module.qualified(value.func).endswith("_like"):
            return _gives_weights(binder.iter)
    elif isinstance(value, ast.BinOp):
        return False
    if isinstance(value, ast.Call) and module.qualified(value.func) in WRAPPERS:
        return True
    if not isinstance(value, ast.Call) or called(value) in ("tuple", "list", "dict"):
        return True
    if not isinstance(binder, ast.For) and not moves_bytes(module, value):
        return False  # an argument that is cast and not used is waste only
    held = module.value_of(_moved(value))
    if held.kinds:
        return held.is_tensor and not held.may_be(Kind.WRAPPER_TENSOR)
    return isinstance(binder, ast.For) and (
        _callers_give_tensors(module, binder) or _is_of_a_tokenizer(module, binder)
    )


def _is_of_a_tokenizer(module: Module, loop: ast.For) -> bool:
    """`for k, v in batch.items()` of `batch = tokenizer(texts, return_tensors="pt")`."""
    over = receiver(loop.iter) if isinstance(loop.iter, ast.Call) else None
    made = behind(module, over) if over is not None else None
    if not isinstance(made, ast.Call):
        return False
    said = keyword(made, "return_tensors")
    of_library = (
        module.qualified(made.func).startswith("transformers.") and called(made) in _BATCHES
    )
    return of_library or (said is not None and module.value_of(said).constant == "pt")


def _callers_give_tensors(module: Module, loop: ast.For) -> bool:
    """`def to_device(batch, d): for k, v in batch.items(): ...`, where each call in the file gives
    a dict or list of tensors."""
    over = receiver(loop.iter) if isinstance(loop.iter, ast.Call) else loop.iter
    function = module.function_of(loop)
    if function is None or not isinstance(over, ast.Name):
        return False
    given = [
        value
        for call in module.calls(function.name)
        for name, value in matched(function, call)
        if name == over.id
    ]
    held = [module.value_of(each).contents for each in given]
    return bool(held) and all(e and e.each is not None and e.each.is_tensor for e in held)


def _gives_weights(over: ast.expr) -> bool:
    """`m.parameters()`, `zip(a.parameters(), b.parameters())`"""
    if not isinstance(over, ast.Call):
        return False
    if called(over) in ("zip", "enumerate"):
        return bool(over.args) and all(_gives_weights(each) for each in over.args)
    return called(over) in _OF_WEIGHTS


def _is_read_again(
    module: Module, assign: ast.Assign, name: str, binder: ast.For | FunctionNode
) -> bool:
    function = module.function_of(assign)
    if is_declared_outside(module, function, name):
        return True
    if any(isinstance(each.func, ast.Name) for each in module.calls(*_SEES_ALL, inside=function)):
        return True
    end = (assign.end_lineno or assign.lineno, assign.end_col_offset or 0)
    loops = [up for up in module.ancestors(binder) if isinstance(up, (ast.For, ast.While))]
    for use in module.uses(name, function):
        if isinstance(use.ctx, ast.Store):
            continue
        if (use.lineno, use.col_offset) >= end or module.function_of(use) is not function:
            return True
        outside = isinstance(binder, ast.For) and not within(use, binder, module)
        if outside and any(within(use, each, module) for each in loops):
            return True
    return False
