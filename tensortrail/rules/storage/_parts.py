"""Parts of a tensor that are saved one by one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules import Module
from tensortrail.rules.places import What
from tensortrail.rules.shared.objects import called, is_self, receiver

_PIECES = ("chunk", "split", "tensor_split", "unbind")
_OF_TORCH = tuple(f"torch.{each}" for each in _PIECES)
_DEPTH = 3
_FEW = 8
"""Rows that a table has before the first that counts."""


def parts_saved(module: Module) -> Iterator[tuple[ast.Call, ast.expr]]:
    """`torch.save(pieces[rank], path)`, and the part that is given, by itself or in a dict."""
    for save in module.calls("torch.save"):
        saved = module.argument(save, 0, "obj")
        for value in _values(module, saved) if saved is not None else ():
            if _is_part(module, value):
                yield save, value


def _values(module: Module, saved: ast.expr) -> Iterator[ast.expr]:
    """What is written: the argument, or the values of a dict that is shown here."""
    shown = [saved, *module.value_of(saved).origins] if isinstance(saved, ast.Name) else [saved]
    for each in shown:
        if isinstance(each, ast.Dict):
            yield from each.values
        elif isinstance(each, ast.DictComp):
            yield each.value
        elif each is saved:
            yield each
    if isinstance(saved, ast.Name):
        yield from _put_into(module, saved)


def _put_into(module: Module, name: ast.Name) -> Iterator[ast.expr]:
    """`value` of `name[key] = value`, unless a tensor takes it, into its own storage."""
    if _is_tensor(module, name):
        return
    for assign in module.nodes(ast.Assign, module.function_of(name)):
        target = assign.targets[0]
        owner = target.value if isinstance(target, ast.Subscript) else None
        if isinstance(owner, ast.Name) and owner.id == name.id:
            yield assign.value


def _is_part(module: Module, value: ast.expr, depth: int = _DEPTH) -> bool:
    """A view of something larger: a piece of a split, a `narrow`."""
    if isinstance(value, ast.Subscript):
        return _are_pieces(module, value.value) or _is_rows(module, value)
    if isinstance(value, ast.Call) and called(value) == "detach":
        owner = receiver(value)
        return owner is not None and _is_part(module, owner, depth)
    if isinstance(value, ast.Call):
        return called(value) == "narrow" and receiver(value) is not None
    if not isinstance(value, ast.Name) or not depth:
        return False
    origins = module.value_of(value).origins
    bound = any(_is_part(module, each, depth - 1) for each in origins if each is not value)
    return bound or _is_one_of_pieces(module, value)


def _is_one_of_pieces(module: Module, name: ast.Name) -> bool:
    """What a loop over the pieces gives."""
    for loop in (up for up in module.ancestors(name) if isinstance(up, ast.For)):
        bound = {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}
        over = loop.iter
        if isinstance(over, ast.Call) and called(over) in ("enumerate", "zip") and over.args:
            over = over.args[-1]
            target = loop.target
            last = target.elts[-1] if isinstance(target, ast.Tuple) else target
            bound = {last.id} if isinstance(last, ast.Name) else set()
        if name.id in bound:
            return _are_pieces(module, over)
    return False


def _are_pieces(module: Module, node: ast.expr) -> bool:
    """`x.chunk(4)`, `torch.split(x, sizes)`, and names of them."""
    origins = module.value_of(node).origins if isinstance(node, ast.Name) else (node,)
    return any(_splits(module, each) for each in origins)


def may_be_all_there_is(module: Module, save: ast.Call, part: ast.expr) -> bool:
    return (
        _is_named_rows(module, part)
        or _is_all_but_the_first(part)
        or _is_one_of_all(module, save, part)
    )


def _is_all_but_the_first(part: ast.expr) -> bool:
    """`table[2:]`: the whole is hardly larger."""
    index = part.slice if isinstance(part, ast.Subscript) else None
    first = index.elts[0] if isinstance(index, ast.Tuple) else index
    return (
        isinstance(first, ast.Slice)
        and first.upper is None
        and isinstance(first.lower, ast.Constant)
        and isinstance(first.lower.value, int)
        and 0 < first.lower.value <= _FEW
    )


def _is_one_of_all(module: Module, save: ast.Call, part: ast.expr) -> bool:
    """`for i in range(n): kept[i] = table[i * size : (i + 1) * size]`, saved after the loop: the
    storage is written once for all of them."""
    used = {each.id for each in ast.walk(part) if isinstance(each, ast.Name)}
    inside = set(module.ancestors(save))
    return any(
        isinstance(up, ast.For)
        and up not in inside
        and isinstance(up.target, ast.Name)
        and up.target.id in used
        and _is_range(up.iter)
        for up in module.ancestors(part)
    )


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and called(node) == "range"


def _is_named_rows(module: Module, value: ast.expr) -> bool:
    """Rows that were bound to a name elsewhere: dumps for debugging are often such."""
    origins = module.value_of(value).origins if isinstance(value, ast.Name) else ()
    return any(isinstance(each, ast.Subscript) and _is_rows(module, each) for each in origins)


def _is_rows(module: Module, value: ast.Subscript) -> bool:
    """`weight[:10]`, `weight[3]`: a view, which an index by a tensor or a list is not."""
    index = value.slice.elts if isinstance(value.slice, ast.Tuple) else [value.slice]
    if not all(_is_plain_index(module, each) for each in index):
        return False
    if _is_picked(module, value.value, index[0]):
        return False
    whole = all(isinstance(e, ast.Slice) and e.lower is e.upper is None for e in index)
    return not whole and _is_tensor(module, value.value)


def _is_picked(module: Module, node: ast.expr, index: ast.expr) -> bool:
    """`encoder(ids)[0]`: what is called may give several tensors, and this is the first."""
    if not isinstance(node, ast.Call) or not isinstance(index, ast.Constant):
        return False
    func = node.func
    own = isinstance(func, ast.Attribute) and is_self(func.value)
    return own or (isinstance(func, ast.Name) and not module.qualified(func).startswith("torch."))


def _is_plain_index(module: Module, index: ast.expr) -> bool:
    """A slice, a number, or the number that a loop counts."""
    if isinstance(index, ast.Slice):
        return True
    if isinstance(index, ast.Name):
        return any(isinstance(each, ast.For) and _counts(each, index.id)
                   for each in module.ancestors(index))  # fmt: skip
    number = index.operand if isinstance(index, ast.UnaryOp) else index
    return isinstance(number, ast.Constant) and isinstance(number.value, int)


def _counts(loop: ast.For, name: str) -> bool:
    """`i` of `for i in range(n)` and of `for i, x in enumerate(xs)`."""
    if not isinstance(loop.iter, ast.Call):
        return False
    target = loop.target
    if called(loop.iter) == "enumerate" and isinstance(target, ast.Tuple):
        target = target.elts[0]
    counted = called(loop.iter) in ("range", "enumerate")
    return counted and isinstance(target, ast.Name) and target.id == name


def _is_tensor(module: Module, node: ast.expr) -> bool:
    if module.value_of(node).is_tensor:
        return module.value_of(node).sure
    function = module.function_of(node)
    held = module.places(function or module.top).seen.get(node)
    return held is not None and held.what is What.TENSOR


def _splits(module: Module, node: ast.expr) -> bool:
    if not isinstance(node, ast.Call) or called(node) not in _PIECES:
        return False
    if module.qualified(node.func) in _OF_TORCH:
        return True
    owner = receiver(node)
    texts = [each for each in node.args if isinstance(module.value_of(each).constant, str)]
    return owner is not None and not texts and bool(node.args or node.keywords)
