"""What the loops of other functions move before they pass it to a model, and one loop does not."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tensortrail.rules.devices.shared.batches.bound_together import names_bound, without_counter
from tensortrail.rules.devices.shared.moves.moved_beside import LeftAlone, moved_to
from tensortrail.rules.shared.called_modules import is_a_module
from tensortrail.rules.shared.parts_moved import moved_part
from tensortrail.rules.view import FunctionNode, Module

Key = tuple[str, int | str]
"""The model as text, and which argument of it."""


class _Use(NamedTuple):
    function: FunctionNode
    node: ast.Name
    move: ast.Call | None
    key: Key


def left_in_one_loop(module: Module, moves: Sequence[ast.Call]) -> Iterator[LeftAlone]:
    """`model(batch)` of `for batch in loader`, in the only function that does not move it."""
    moves = [each for each in moves if any(isinstance(e, ast.For) for e in module.ancestors(each))]
    loops = module.nodes(ast.For) if moves else ()
    uses = [each for loop in loops for each in _uses(module, loop, moves)]
    for key in dict.fromkeys(each.key for each in uses):
        alike = [each for each in uses if each.key == key]
        moved = [each.move for each in alike if each.move is not None]
        makers = {each.function for each in alike if each.move is not None}
        left = [each for each in alike if each.move is None and each.function not in makers]
        if moved and len({each.function for each in left}) == 1:
            yield LeftAlone(left[0].node, moved, moved_to(module, moved[0]))


def _uses(module: Module, loop: ast.For, moves: Sequence[ast.Call]) -> Iterator[_Use]:
    function = module.function_of(loop)
    names = names_bound(without_counter(loop))
    if function is None or not names:
        return
    inside = [each for each in moves if loop in module.ancestors(each)]
    for name in names:
        move = next((each for each in inside if moved_part(module, each) == name), None)
        use = _passed_first(module, loop, name, move is not None)
        if use is not None:
            yield _Use(function, use[0], move, use[1])


def _passed_first(
    module: Module, loop: ast.For, name: str, is_moved: bool
) -> tuple[ast.Name, Key] | None:
    """The call of a model that takes it; of what is not moved, before it is given to any other
    and bound again."""
    own = [each for each in module.nodes(ast.Name, loop) if each.id == name]
    if not is_moved and sum(isinstance(each.ctx, ast.Store) for each in own) != 1:
        return None
    for read in own:
        call, at = _argument(module, read)
        if call is None:
            continue
        if is_a_module(module, call.func):
            return read, (module.text(call.func), at)
        if not is_moved:
            return None
    return None


def _argument(module: Module, read: ast.Name) -> tuple[ast.Call | None, int | str]:
    above = module.parent(read)
    if isinstance(above, ast.keyword):
        call = module.parent(above)
        return (call, above.arg or "") if isinstance(call, ast.Call) else (None, "")
    if isinstance(above, ast.Call) and read in above.args:
        return above, above.args.index(read)
    return None, ""
