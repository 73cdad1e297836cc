"""Tensors that no model names are found by the variables of the source and of failures."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Site
from tensortrail.rules.shared.objects import called
from tensortrail.rules.timeline import Did, Storage
from tensortrail.tracer.reading.process import LINEAGE, LINEAGE_CODES, Process
from tensortrail.tracer.reading.storage_names import names
from tensortrail.tracer.reading.timeline import RunTimeline
from tensortrail.tracer.trail.layout import CODE

MAKES = frozenset(CODE[did] for did in (Did.CREATE, Did.LOAD, *LINEAGE))

VIEWS = frozenset(
    "view reshape chunk split unbind t transpose permute flatten squeeze unsqueeze expand "
    "expand_as detach requires_grad_ contiguous narrow select".split()
)
ERROR = CODE[Did.ERROR]


def assigned_to(timeline: RunTimeline, variable: str) -> list[Storage]:
    """What the lines `variable = ...` of the program made, or a failure calls so, the last one
    first."""
    found: list[Storage] = []
    for process in timeline.processes:
        made = {n: each for n, each in _named(timeline, process) if variable in each}
        for number in sorted(made, reverse=True):
            storage = process.storage(_last_of(process, number))
            if storage is not None and not _goes_on(process, number, made):
                found.append(storage)
    return found


def assigned(timeline: RunTimeline) -> dict[str, Storage]:
    """All of them, each with what its line made last."""
    found: dict[str, Storage] = {}
    for process in timeline.processes:
        named = names(process)
        for number, variables in _named(timeline, process):
            storage = process.storage(number)
            if storage is not None and number not in named:
                found.update(dict.fromkeys(variables, storage))
    return found


def _named(timeline: RunTimeline, process: Process) -> Iterator[tuple[int, frozenset[str]]]:
    yield from _made(timeline, process)
    for row in process.part.rows:
        facts = row[7] if row[0] == ERROR else None
        for operand in facts.get("operands", ()) if isinstance(facts, dict) else ():
            if operand.get("storage") and operand.get("name"):
                yield operand["storage"], frozenset((operand["name"],))


def _made(timeline: RunTimeline, process: Process) -> Iterator[tuple[int, frozenset[str]]]:
    """Storages without a name of their own, each with the variables of the line it is from."""
    named = names(process)
    known: dict[tuple[int, int], frozenset[str]] = {}
    for row in process.part.rows:
        if row[0] not in MAKES or not row[4] or row[4] in named:
            continue
        key = (row[3], row[6])
        if key not in known:
            site = process.site(row[3])[0]
            op = process.part.text(row[6]).rpartition(".")[2]
            known[key] = frozenset(_targets(timeline, site, op) if site else ())
        if known[key]:
            yield row[4], known[key]


def _last_of(process: Process, number: int) -> int:
    """Where its values lie now: a helper of the program may have moved them."""
    for _ in range(20):
        number = process.then(number) or number
    return number


def _goes_on(process: Process, number: int, made: dict[int, frozenset[str]]) -> bool:
    """Whether its values are now in another one of them."""
    return any(
        row[0] in LINEAGE_CODES and row[5] == number != row[4] and row[4] in made
        for row in process.by_storage.get(number, ())
    )


def _targets(timeline: RunTimeline, site: Site, op: str) -> Iterator[str]:
    tree = timeline.tree(site.file)
    for node in ast.walk(tree) if tree else ():
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
            continue
        if node.lineno <= site.line <= (node.end_lineno or node.lineno):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                yield from _given(target, node.value, op)


def _given(target: ast.expr, value: ast.expr, op: str) -> Iterator[str]:
    """The names that get what the operation made: `x`, of `x = torch.ones(3)` and `ones`."""
    if isinstance(target, (ast.Tuple, ast.List)):
        alike = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
        values = value.elts if alike else [value] * len(target.elts)  # type: ignore[attr-defined]
        for one, made in zip(target.elts, values, strict=True):
            yield from _given(one, made, op)
    elif isinstance(target, (ast.Name, ast.Attribute)) and _is_result_of(value, op):
        yield ast.unparse(target)


def _is_result_of(value: ast.expr, op: str) -> bool:
    """Whether the value is the operation's, or a view of it."""
    while isinstance(value, (ast.Call, ast.Subscript)):
        if isinstance(value, ast.Subscript):
            value = value.value
        elif called(value) == op:
            return True
        elif isinstance(value.func, ast.Attribute) and value.func.attr in VIEWS:
            value = value.func.value
        else:
            return False
    return False
