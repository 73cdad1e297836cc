"""Names that a function uses as tensors: it asks of them what only a tensor has."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.analyzer.places.functions.world import World
from tensortrail.analyzer.places.libraries.library import names
from tensortrail.rules.view import FunctionNode

_TAKES_ANYTHING = frozenset({"isinstance", "torch.from_numpy", "torch.tensor", "torch.as_tensor"})
_JOINS = frozenset(f"torch.{each}" for each in ("cat", "concat", "stack", "hstack", "vstack"))
_TENSORS_OF_METHODS = {
    **dict.fromkeys(("masked_fill", "masked_fill_", "masked_select", "expand_as", "view_as"), 0),
    **dict.fromkeys(("index_select", "scatter_", "scatter_add_", "index_add_", "index_copy_"), 1),
}
"""Methods that only tensors have, with the position of a tensor among their arguments."""
_OF_ARRAYS = frozenset({"shape", "ndim", "size", "dim"})


def used_as_tensors(function: FunctionNode, world: World) -> set[str]:
    """Names that the function asks for what only a tensor has, and does not test the type of."""
    found: set[str] = set()
    doubtful: set[str] = set()
    attributes = names("only_tensors", "attributes")
    for asked in world.tree.nodes(ast.Attribute, function):
        if asked.attr in attributes and isinstance(asked.value, ast.Name):
            found.add(asked.value.id)
    for cut in world.tree.nodes(ast.Subscript, function):
        if isinstance(cut.value, ast.Name) and _cuts_dimensions(cut.slice):
            found.add(cut.value.id)
    for product in world.tree.nodes(ast.BinOp, function):
        if isinstance(product.op, ast.MatMult):
            sides = (product.left, product.right)
            found.update(each.id for each in sides if isinstance(each, ast.Name))
    for call in world.tree.nodes(ast.Call, function):
        first = call.args[0] if call.args else None
        found.update(_taken_beside(call, world))
        if isinstance(first, ast.Name):
            dotted = world.qualified(call.func)
            if dotted in _TAKES_ANYTHING or dotted.startswith("numpy."):
                doubtful.add(first.id)
            elif _takes_a_tensor_first(dotted):
                found.add(first.id)
        elif isinstance(first, (ast.List, ast.Tuple)) and world.qualified(call.func) in _JOINS:
            found |= {each.id for each in first.elts if isinstance(each, ast.Name)}
        shapes = set(_whole_shapes(call))
        if shapes and world.qualified(call.func) in names("fresh", "shaped"):
            found |= shapes
        if isinstance(call.func, ast.Attribute) and _is_asked_as_a_tensor(call.func):
            owner = _made_of(call.func.value)
            if owner is not None:
                found.add(owner.id)
    return found - doubtful


def _taken_beside(call: ast.Call, world: World) -> Iterator[str]:
    """`b` of `torch.matmul(a, b)` and `mask` of `x.masked_fill(mask, 0)`: neither is a number."""
    asked = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    at = _TENSORS_OF_METHODS.get(asked)
    if asked in names("meets", "second") and _is_of_torch(world.qualified(call.func)):
        at = 1
    if at is not None and len(call.args) > at:
        taken = call.args[at]
        if isinstance(taken, ast.Name):
            yield taken.id


def with_a_shape(function: FunctionNode, world: World) -> frozenset[str]:
    """`x` of `x.shape`, `x.ndim` and `x.size(0)`, unless the function gives it to numpy."""
    asked = {
        ast.unparse(each.value)
        for each in world.tree.nodes(ast.Attribute, function)
        if each.attr in _OF_ARRAYS and isinstance(each.value, (ast.Name, ast.Attribute))
    }
    of_numpy = {
        ast.unparse(each)
        for call in world.tree.nodes(ast.Call, function)
        if world.qualified(call.func).startswith("numpy.")
        for each in call.args
    }
    return frozenset(asked - of_numpy)


def _whole_shapes(call: ast.Call) -> Iterator[str]:
    """`x` of `torch.zeros(x.shape)` and of `torch.zeros(*x.shape)`: what is made beside it is a
    tensor."""
    for each in call.args:
        shape = each.value if isinstance(each, ast.Starred) else each
        if not isinstance(shape, ast.Attribute) or shape.attr != "shape":
            continue
        if isinstance(shape.value, ast.Name):
            yield shape.value.id


def _takes_a_tensor_first(dotted: str) -> bool:
    """A function of torch that raises for anything else."""
    if not _is_of_torch(dotted):
        return False
    name = dotted.rpartition(".")[2]
    lists = (("meets", "strictly"), *(("keeps", each) for each in _KEEPING))
    return dotted in names("follows", "like") or any(name in names(*each) for each in lists)


def _is_of_torch(dotted: str) -> bool:
    return dotted.rpartition(".")[0] in ("torch", "torch.nn.functional")


def _is_asked_as_a_tensor(asked: ast.expr) -> bool:
    return isinstance(asked, ast.Attribute) and asked.attr in names("only_tensors", "methods")


def _made_of(node: ast.expr) -> ast.Name | None:
    """`x` of `(x == config.pad).long()` and of `x.float()`: a tensor comes of a tensor alone."""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            plain = _is_plain(node.comparators[0])
            if not plain or isinstance(node.ops[0], (ast.In, ast.NotIn, ast.Is, ast.IsNot)):
                return None
            node = node.left
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult)):
            sides = (node.left, node.right)
            others = [each for each in sides if not isinstance(each, ast.Constant)]
            if len(others) != 1:
                return None
            node = others[0]
        elif isinstance(node, ast.UnaryOp):
            node = node.operand
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if not any(node.func.attr in names("keeps", each) for each in _KEEPING):
                return None
            node = node.func.value
        else:
            return None
    return node


_KEEPING = ("methods", "shapes", "reductions")


def _is_plain(node: ast.expr) -> bool:
    """A number, or a setting: `config.pad_token_id`."""
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.operand, ast.Constant)
    named = isinstance(node, ast.Attribute) and node.attr not in names("keeps", "attributes")
    return named or isinstance(node, ast.Constant)


def _cuts_dimensions(index: ast.expr) -> bool:
    """`x[:, None]`, `x[..., :n]`: no list or mapping can be cut so."""
    return isinstance(index, ast.Tuple) and any(
        isinstance(each, ast.Slice)
        or (isinstance(each, ast.Constant) and each.value in (None, Ellipsis))
        for each in index.elts
    )
