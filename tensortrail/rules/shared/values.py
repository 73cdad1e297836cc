"""Which uses of a tensor need its values, wherever it lies."""

from __future__ import annotations

import ast

from tensortrail.rules.view import Module

_METADATA = frozenset(
    (
        "shape dtype device ndim numel size dim stride layout nbytes requires_grad is_cuda is_meta "
        "is_leaf grad_fn storage_offset element_size"
    ).split()
)

VIEWS = frozenset(
    "view reshape t T transpose permute squeeze unsqueeze expand detach flatten split chunk".split()
)
"""What gives a tensor of the same memory, or mostly does."""

CHANGES = frozenset(
    "add_ sub_ mul_ div_ pow_ neg_ exp_ log_ sqrt_ abs_ clamp_ clamp_min_ clamp_max_ relu_ tanh_ "
    "sigmoid_ softmax_ masked_fill_ masked_scatter_ scatter_ scatter_add_ index_add_ index_copy_ "
    "index_fill_ lerp_ addcmul_ addcdiv_ zero_ fill_ copy_ floor_ round_".split()
)
"""Methods that change the values of a tensor in place."""


def reads_values(module: Module, tensor: ast.expr) -> bool:
    """The bytes are read here, not the shape, the place or the identity of the tensor."""
    up = module.parent(tensor)
    if isinstance(up, ast.Attribute):
        return up.attr not in _METADATA
    if isinstance(up, ast.Compare):
        return not all(isinstance(op, (ast.Is, ast.IsNot)) for op in up.ops)
    if isinstance(up, ast.Call) and tensor in up.args:
        return module.qualified(up.func) not in ("isinstance", "id", "type", "len")
    return True
