"""What a move is asked for, and whether it is asked of a tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.patterns import pattern
from tensortrail.rules import Kind, Module
from tensortrail.rules.shared.moves import MOVES
from tensortrail.rules.shared.objects import called
from tensortrail.rules.shared.origins import behind

IN_PLACE_NAMES = (
    r"self|cls|model|module|net|pipe|pipeline|unet|vae|encoder|decoder|layer|transformer"
    r"|criterion|metric|processor|optimizer"
)
"""Of modules and the like, which move in place."""
_IN_PLACE = pattern(rf"(^|[._])({IN_PLACE_NAMES})\d*$")
PROPERTIES = ("dtype", "device")


def moves_bytes(module: Module, call: ast.Call) -> bool:
    """To another device, as far as can be seen; else only the dtype, graph or layout changes."""
    node: ast.expr = call
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        casts = called(node) == "to" and all(_is_dtype(module, each) for each in arguments(node))
        if called(node) in MOVES and not casts:
            return True
        node = node.func.value
    return False


def arguments(call: ast.Call) -> Iterator[ast.expr]:
    yield from call.args
    yield from (each.value for each in call.keywords if each.arg not in ("non_blocking", "copy"))


def _is_dtype(module: Module, node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return not isinstance(node.value, str)
    name = module.qualified(node)
    if name.rpartition(".")[2].endswith("dtype") or name.startswith("torch."):
        return module.value_of(node).kind is not Kind.DEVICE
    origins = module.value_of(node).origins
    return bool(origins) and all(_is_dtype(module, each) for each in origins if each is not node)


def what_is_moved(node: ast.expr) -> ast.expr:
    """`x` of `x.detach().cpu()`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    return node


def is_tensor(module: Module, subject: ast.expr) -> bool:
    """A tensor by the code, and not of a class of its own, which may move in place."""
    value, root = module.value_of(subject), module.value_of(what_is_moved(subject))
    if not (value.is_tensor and root.is_tensor) or value.may_be(Kind.WRAPPER_TENSOR):
        return False
    if value.cls and not value.cls.startswith("torch."):
        return False
    given = any(_gives_tensors(each) for each in root.origins)
    if _IN_PLACE.search(module.text(what_is_moved(subject))):
        return False  # by its name a thing that moves in place
    return root.sure or given


def is_packed(module: Module, subject: ast.expr) -> bool:
    """Sequences that torch has packed, which move as tensors do."""
    made = behind(module, subject)
    name = module.qualified(made.func) if isinstance(made, ast.Call) else ""
    return name.startswith("torch.nn.utils.rnn.pack")


def _gives_tensors(source: ast.expr) -> bool:
    """`sd.items()`, `m.parameters()`: what a loop over it binds is a tensor."""
    return (
        isinstance(source, ast.Call)
        and isinstance(source.func, ast.Attribute)
        and source.func.attr in ("items", "values", "parameters", "named_parameters", "buffers")
    )


def source_of(module: Module, subject: ast.expr) -> ast.expr | None:
    origins = module.value_of(what_is_moved(subject)).origins
    return origins[0] if origins else None


def works_in_place(call: ast.Call) -> bool:
    """`t.add_(x).to(dtype)`: the work is done, and only its last step is dropped."""
    return written_in_place(call) is not None


def written_in_place(call: ast.Call) -> ast.expr | None:
    """`t` of `t.add_(x).to(dtype)`."""
    inner = call.func.value if isinstance(call.func, ast.Attribute) else None
    if not isinstance(inner, ast.Call) or not isinstance(inner.func, ast.Attribute):
        return None
    method = inner.func.attr
    return inner.func.value if method.endswith("_") and not method.endswith("__") else None
