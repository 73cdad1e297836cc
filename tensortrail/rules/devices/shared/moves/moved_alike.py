"""What is moved everywhere but once: results of one function of torch."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tensortrail.rules.devices.shared.moves.moved_beside import LeftAlone, moved_to
from tensortrail.rules.devices.shared.written_for.makers import FACTORIES, outermost
from tensortrail.rules.view import FunctionNode, Module

_MAKERS = frozenset({*FACTORIES, "from_numpy", "as_tensor", "load"})


def left_of_its_kind(module: Module, moves: Sequence[ast.Call]) -> Iterator[LeftAlone]:
    for function in outermost(module, moves):
        yield from _made_alike(module, function, moves)


def _made_alike(
    module: Module, function: FunctionNode, moves: Sequence[ast.Call]
) -> Iterator[LeftAlone]:
    """Results of one function of torch, of which all but one are moved in this function."""
    by_form: dict[str, list[ast.Call]] = {}
    for move in moves:
        made = move.func.value if isinstance(move.func, ast.Attribute) else None
        if not isinstance(made, ast.Call) or function not in module.ancestors(move):
            continue
        if _makes(module.qualified(made.func)):
            by_form.setdefault(module.text(made.func), []).append(move)
    for form, moved in by_form.items():
        made_here = module.calls(form.rpartition(".")[2], inside=function)
        rest = [
            call
            for call in made_here
            if module.text(call.func) == form and not _is_moved_or_placed(module, call)
        ]
        devices = {moved_to(module, each) for each in moved}
        if len(rest) == 1 and len(devices) == 1:
            yield LeftAlone(rest[0], moved, devices.pop())


def _makes(dotted: str) -> bool:
    """It makes a tensor or a layer of something else than tensors."""
    first, _, rest = dotted.partition(".")
    last = rest.rpartition(".")[2]
    return first == "torch" and (last in _MAKERS or last[:1].isupper())


def _is_moved_or_placed(module: Module, call: ast.Call) -> bool:
    if any(each.arg == "device" for each in call.keywords):
        return True
    for above in module.ancestors(call):
        if isinstance(above, ast.stmt):
            return False
        if isinstance(above, ast.Attribute) and above.attr == "to":
            moved = module.parent(above)
            if isinstance(moved, ast.Call) and moved_to(module, moved):
                return True
    return False
