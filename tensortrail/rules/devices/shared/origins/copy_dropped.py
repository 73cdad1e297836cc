"""The program moved a copy of the operand, and gave the operation the original."""

from __future__ import annotations

import ast

from tensortrail.findings import Fix
from tensortrail.rules.devices.shared.origins.case import Case, Origin, advice
from tensortrail.rules.shared.lines import doer
from tensortrail.rules.shared.mends import edited, source_of, statement_of
from tensortrail.rules.timeline import Did, Event


def origin(case: Case) -> Origin | None:
    move = _moved(case)
    if move is None:
        return None
    why = f"{doer(move)} made a copy on {case.wanted}, and {case.name} itself was not moved"
    return Origin(why, fixes=(_kept(case, move),))


def _moved(case: Case) -> Event | None:
    """The program's own last move of this very tensor to where the others are."""
    if case.odd.storage is None or case.odd.device == "meta" or not case.wanted:
        return None
    for event in reversed(case.timeline.events(Did.MOVE)):
        source, copy = event.other, event.storage
        if source is None or copy is None or source.key != case.storage.key:
            continue
        if event.time < case.event.time and event.by is None and copy.device == case.wanted:
            return event
    return None


def _kept(case: Case, move: Event) -> Fix:
    """`x = x.cuda()` for `x.cuda()`."""
    if "." in case.timeline.name(case.storage):  # a module has it
        owner = case.timeline.name(case.storage).partition(".")[0]
        return advice(f"a tensor is not moved in place, a module is: `{owner}.to({case.wanted!r})`")
    call, target = _called(statement_of(case.timeline, move.site))
    if move.site is None or call is None or not isinstance(target, (ast.Name, ast.Attribute)):
        return advice("use the copy here, or put it in the place of the original")
    kept = f"{ast.unparse(target)} = {source_of(case.timeline, move.site.file, call)}"
    return edited(
        case.timeline,
        f"keep what is given back: `{kept}`",
        case.timeline.replace(move.site.file, call, kept),
    )


def _called(statement: ast.stmt | None) -> tuple[ast.Call | None, ast.expr | None]:
    """The call that is the whole statement, and whose method it is."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=target)) as call):
            return call, target
    return None, None
