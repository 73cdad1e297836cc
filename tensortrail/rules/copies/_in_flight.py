"""Where a tensor is used that an exchange with other processes may still write."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from tensortrail.rules.copies._works import KEEPS, Begun, is_begun
from tensortrail.rules.shared.collectives import GROUP_AT
from tensortrail.rules.shared.conditions import are_exclusive
from tensortrail.rules.shared.functions import names_of_parameters
from tensortrail.rules.shared.objects import (
    called,
    is_before,
    is_of_torch,
    is_self,
    names_in,
    receiver,
    root_of,
    within,
)
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.shared.values import reads_values
from tensortrail.rules.view import Module

_WAITS = re.compile(r"sync|wait|barrier|fence|recv|send|record", re.IGNORECASE)


def read_in_flight(module: Module, started: Begun, uses: list[ast.expr]) -> ast.expr | None:
    """The first use of the tensor before anybody waits."""
    ends = [module.statement_of(each) for each in uses]
    waits = list(_waits(module, started))
    for use in _reads(module, started):
        statement = module.statement_of(use)
        awaited = any(each is statement or is_before(each, use) for each in ends)
        if not awaited and not any(is_before(each, use) for each in waits):
            return use
    return None


def is_given_away(module: Module, started: Begun) -> bool:
    """Others have the tensor, nobody has the handle, and nothing that follows waits."""
    function, root = module.function_of(started.call), root_of(started.filled)
    if function is None or next(_waits(module, started), None) is not None:
        return False
    given = names_of_parameters(function)
    names = _names(module, started)
    return is_self(root) or bool(names & given)


def _waits(module: Module, started: Begun) -> Iterator[ast.expr]:
    """Later calls that wait for all that was begun, or for what may be this."""
    for call in module.later(started.call, ast.Call):
        waits = _WAITS.search(called(call)) is not None or called(call) in GROUP_AT
        other = is_begun(module, call) or _is_of_another(module, call)
        if waits and not other and is_before(started.call, call):
            yield call


def _is_of_another(module: Module, call: ast.Call) -> bool:
    """`other.wait()`, where `other` is the handle of another exchange."""
    owner = receiver(call)
    made = module.value_of(owner).origins if isinstance(owner, ast.Name) else ()
    names = (module.qualified(each.func) for each in made if isinstance(each, ast.Call))
    return called(call) == "wait" and any(each.startswith("torch.distributed") for each in names)


def _reads(module: Module, started: Begun) -> Iterator[ast.expr]:
    names, shown = _names(module, started), module.text(started.filled)
    root = root_of(started.filled)
    uses: Iterable[ast.Name | ast.Attribute] = module.later(started.call, ast.Name)
    if is_self(root):
        uses = module.later(started.call, ast.Attribute)
    for use in uses:
        same = use.id in names if isinstance(use, ast.Name) else module.text(use) == shown
        if not same or not is_before(started.call, use) or within(use, started.call, module):
            continue
        if isinstance(use.ctx, ast.Store):
            return
        other = _is_kept(module, use) or are_exclusive(module, started.call, use)
        if reads_values(module, use) and not other:
            yield use


def _is_kept(module: Module, use: ast.expr) -> bool:
    """It gets another name, or goes into a list, into a function that may only keep it, or into
    another exchange, which comes after this one."""
    above = module.parent(use)
    above = module.parent(above) if isinstance(above, ast.keyword) else above
    if isinstance(above, ast.Assign):
        return True
    if isinstance(above, ast.Call) and use is not above.func:
        return not is_of_torch(module, above) or is_begun(module, above)
    around = (each for each in module.ancestors(use) if isinstance(each, ast.Call))
    return any(called(each) in KEEPS or is_begun(module, each) for each in around)


def _names(module: Module, started: Begun) -> set[str]:
    """The variable of the tensor; of one that a loop goes through the list too."""
    root = root_of(started.filled)
    made = behind(module, root)
    parts = (root, root_of(made) if isinstance(made, ast.Attribute) else root)  # `each.data`
    names = {each.id for each in parts if isinstance(each, ast.Name)}
    for up in module.ancestors(started.call):
        loops = [up] if isinstance(up, ast.For) else getattr(up, "generators", [])
        for loop in loops:
            if names_in(loop.target) & names:
                names |= names_in(loop.iter) - {"range", "enumerate", "zip", "reversed", "list"}
    return names
