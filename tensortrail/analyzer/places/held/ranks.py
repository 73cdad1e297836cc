"""How many dimensions a fresh tensor has: one without any meets tensors of every device."""

from __future__ import annotations

import ast

from tensortrail.analyzer.places.libraries.library import names
from tensortrail.rules.places import MAYBE_SCALAR, Held, What
from tensortrail.rules.shared.objects import keyword

_WIDEN = frozenset(
    "unsqueeze repeat flatten nonzero repeat_interleave expand_as view_as diag_embed".split()
)
"""What these give has a dimension, whatever they are asked of."""
_SIZED = frozenset(f"torch.{each}" for each in ("zeros", "ones", "empty", "rand", "randn"))
"""Every argument without a keyword is the size of a dimension, if there are several."""


def rank_of_fresh(dotted: str, call: ast.Call, first: Held | None) -> int | None:
    if dotted in names("fresh", "rows"):
        return 2 if dotted.endswith("_indices") else 1
    if dotted in names("fresh", "of_data"):
        return _of_data(call.args[0] if call.args else None, first)
    shape = call.args[0] if call.args else keyword(call, "size")
    if dotted in ("torch.randint", "torch.normal"):
        shape = keyword(call, "size") or (call.args[-1] if call.args else None)
    if dotted == "torch.eye":
        return 2
    if dotted in _SIZED and len(call.args) > 1:
        return None if any(isinstance(each, ast.Starred) for each in call.args) else len(call.args)
    if dotted.endswith("Tensor") and isinstance(shape, (ast.Tuple, ast.List)):
        return _of_data(
            shape, first
        )  # `torch.FloatTensor([1, 2])` holds these; it has no such size
    if isinstance(shape, (ast.Tuple, ast.List)):
        starred = any(isinstance(each, ast.Starred) for each in shape.elts)
        return None if starred else len(shape.elts)
    if isinstance(shape, (ast.Attribute, ast.Call)):
        return MAYBE_SCALAR if _is_kept_size(shape) else None
    return None


def rank_of_pattern(dotted: str, call: ast.Call) -> int | None:
    """Of what einops makes: `reduce(x, "b c -> ", "mean")` has no dimension."""
    if dotted not in ("einops.reduce", "einops.einsum"):
        return None
    at = 1 if dotted == "einops.reduce" else len(call.args) - 1
    pattern = call.args[at] if 0 < at < len(call.args) else keyword(call, "pattern")
    if not isinstance(pattern, ast.Constant) or not isinstance(pattern.value, str):
        return MAYBE_SCALAR
    return None if pattern.value.partition("->")[2].strip(" ()") else 0


def _is_kept_size(shape: ast.expr) -> bool:
    """`config.size`, of which nothing is known; `x.shape` is asked of what has dimensions."""
    if not isinstance(shape, ast.Attribute):
        return False
    return shape.attr != "shape" or isinstance(shape.value, ast.Attribute)


def _of_data(data: ast.expr | None, held: Held | None) -> int | None:
    if isinstance(data, (ast.List, ast.Tuple, ast.ListComp)):
        return None
    if held is not None and held.what is What.BOX:
        return None
    if held is not None and held.what is What.NUMBER and isinstance(data, ast.Constant):
        return 0
    return MAYBE_SCALAR


def rank_after(method: str, call: ast.Call, before: int | None) -> int | None:
    """Of a method that changes the shape."""
    if method in ("view", "reshape", "expand"):
        if len(call.args) > 1 and not any(isinstance(each, ast.Starred) for each in call.args):
            return len(call.args)
        shape = call.args[0] if call.args else None
        if isinstance(shape, (ast.Tuple, ast.List)) and shape.elts:
            return len(shape.elts)
        if isinstance(shape, ast.UnaryOp) and method != "expand":
            return 1  # reshape(-1)
        return before if before in (0, MAYBE_SCALAR) else None
    if method in ("squeeze", "select"):
        return MAYBE_SCALAR
    if method in _WIDEN:
        return None
    return before


def rank_of_part(before: int | None, indices: list[ast.expr], held: list[Held]) -> int | None:
    """Of a tensor after `x[...]`."""
    if any(isinstance(each, ast.Constant) and each.value is None for each in indices):
        return None
    dropped = sum(1 for node, by in zip(indices, held, strict=True) if _drops(node, by))
    if any(by.what is What.TENSOR and by.rank != 0 for by in held):
        return None
    if not dropped:
        return before
    if before is not None and before > dropped:
        return before - dropped
    return MAYBE_SCALAR


def _drops(node: ast.expr, by: Held) -> bool:
    if isinstance(node, ast.Slice) or by.what is What.TENSOR:
        return False
    return not (isinstance(node, ast.Constant) and node.value in (None, Ellipsis))
