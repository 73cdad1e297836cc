"""Tensors that are on meta because the code says so: made there, or asked for it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.places import What, Where
from tensortrail.rules.shared.functions import outermost_function
from tensortrail.rules.shared.objects import called, receiver
from tensortrail.rules.view import FunctionNode, Module

_READS = frozenset("item tolist numpy nonzero unique equal masked_select bincount".split())
_OF_TORCH = tuple(
    f"torch.{each}" for each in ("equal", "nonzero", "unique", "allclose", "masked_select")
)
_NUMBERS = frozenset({"int", "float", "bool"})


def values_read(module: Module) -> Iterator[tuple[ast.expr, ast.expr]]:
    """`x.item()`, `float(x)`, `if x:`: what asks for values, and the tensor that is asked."""
    for call in module.calls(*_READS):
        owner = receiver(call)
        if owner is not None and module.qualified(call.func) not in _OF_TORCH:
            yield call, owner
    for call in module.calls(*_OF_TORCH):
        yield from ((call, each) for each in call.args[:2])
    for call in module.calls(*_NUMBERS):
        if isinstance(call.func, ast.Name) and len(call.args) == 1:
            yield call, call.args[0]
    decisions: list[ast.If | ast.While | ast.IfExp] = [*module.nodes(ast.If)]
    for decision in (*decisions, *module.nodes(ast.While), *module.nodes(ast.IfExp)):
        test = decision.test
        yield test, test.operand if isinstance(test, ast.UnaryOp) else test
    for claim in module.nodes(ast.Assert):
        yield claim.test, claim.test


def is_made_on_meta(module: Module, node: ast.expr) -> ast.AST | None:
    """What put the tensor on meta, where it is on every path that leads here."""
    function = outermost_function(module, node)
    if not module.once(_may_be_on_meta, function or module.top):
        return None
    held = module.places(function or module.top).seen.get(node)
    if held is None or held.what is not What.TENSOR or not held.places:
        return None
    if any(each.where is not Where.META or each.given for each in held.places):
        return None
    return held.in_order[0].by


def _may_be_on_meta(module: Module, function: FunctionNode) -> bool:
    """The function, its class, or something of the file that it uses names the device."""
    naming = module.once(_naming_meta, module.top)
    if None in naming or module.class_of(function) in naming or function in naming:
        return True
    names = {each.name for each in naming if each is not None} if naming else set()
    return any(module.uses(each, function) or module.members(each, function) for each in names)


def _naming_meta(module: Module, file: ast.AST) -> set[FunctionNode | ast.ClassDef | None]:
    """What stands around the places of the file that name the device; None is the file itself."""
    found: set[FunctionNode | ast.ClassDef | None] = set()
    for each in module.nodes(ast.Constant):
        if isinstance(each.value, str) and each.value.startswith("meta"):
            function, cls = outermost_function(module, each), module.class_of(each)
            found |= {function, cls} - {None} or {None}
    return found


def may_be_caught(module: Module, node: ast.AST) -> bool:
    """Under `try`: the program may ask whether this raises. A fake tensor mode answers it."""
    if any(
        "ake" in called(each) for each in module.contexts_of(node) if isinstance(each, ast.Call)
    ):
        return True
    return any(
        isinstance(each, ast.Try) and each.handlers and node not in each.finalbody
        for each in module.ancestors(node)
    )


def says_meta(module: Module, node: ast.expr, subject: str) -> ast.expr | None:
    """The condition around the call that holds and says that the subject is on meta."""
    for guard in module.guards_of(node):
        if guard.holds and guard.exact and _is_of_meta(module, guard.test, subject):
            return guard.test
    return None


def is_off_meta(module: Module, test: ast.expr) -> str:
    """What the condition says not to be on meta: `p.device.type != "meta"`, `not p.is_meta`."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=ast.Attribute(value=subject, attr="is_meta")):
            return module.text(subject)
        case ast.Compare(left=left, ops=[ast.NotEq()], comparators=[right]) if _is_meta(right):
            return _subject_of(module, left)
        case ast.Compare(left=left, ops=[ast.NotEq()], comparators=[ast.Call(args=[named])]):
            return _subject_of(module, left) if _is_meta(named) else ""
    return ""


def _subject_of(module: Module, device: ast.expr) -> str:
    """`p` of `p.device`, `p.device.type` and `str(p.device)`."""
    match device:
        case ast.Call(func=ast.Name(id="str"), args=[ast.Attribute(value=subject, attr="device")]):
            return module.text(subject)
        case ast.Attribute(value=ast.Attribute(value=subject, attr="device"), attr="type"):
            return module.text(subject)
        case ast.Attribute(value=subject, attr="device"):
            return module.text(subject)
    return ""


def _is_of_meta(module: Module, test: ast.expr, subject: str) -> bool:
    """`p.is_meta`, `p.device.type == "meta"`, `p.device == torch.device("meta")`."""
    if isinstance(test, ast.Attribute):
        return test.attr == "is_meta" and module.text(test.value) == subject
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq):
        return False
    left, right = test.left, test.comparators[0]
    sources = module.value_of(left).origins if isinstance(left, ast.Name) else ()
    shown = {module.text(each) for each in (left, *sources)}
    if isinstance(right, ast.Call) and module.qualified(right.func) == "torch.device":
        named = right.args[0] if right.args else None
        return f"{subject}.device" in shown and _is_meta(named)
    texts = {f"{subject}.device.type", f"str({subject}.device)"}
    return bool(texts & shown) and _is_meta(right)


def _is_meta(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value == "meta"


def is_the_same(module: Module, subject: ast.expr, test: ast.expr) -> bool:
    """The name stands for what was tested: nothing was assigned to it in between."""
    shown, now = module.text(subject), module.value_of(subject).origins
    return all(
        module.value_of(each).origins == now
        for each in ast.walk(test)
        if isinstance(each, ast.expr) and module.text(each) == shown
    )
