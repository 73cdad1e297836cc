"""Tensors that no model names are found by the variables of the source and of failures."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Site
from tensortrail.rules.timeline import Did, Storage
from tensortrail.tracer.reading.storage_names import names
from tensortrail.tracer.reading.timeline import LINEAGE, LINEAGE_CODES, Process, RunTimeline
from tensortrail.tracer.trail.layout import CODE

MAKES = frozenset(CODE[did] for did in (Did.CREATE, Did.LOAD, *LINEAGE))

ERROR = CODE[Did.ERROR]


def assigned_to(timeline: RunTimeline, variable: str) -> list[Storage]:
    """What the lines `variable = ...` of the program made, or a failure calls so, the last one
    first."""
    found: list[Storage] = []
    for process in timeline.processes:
        made = {n: each for n, each in _named(timeline, process) if variable in each}
        for number in sorted(made, reverse=True):
            storage = process.storage(number)
            if storage is not None and not _goes_on(process, number, made):
                found.append(storage)
    return found


def variables(timeline: RunTimeline) -> dict[str, Storage]:
    """All of them, each with what its line made last."""
    found: dict[str, Storage] = {}
    for process in timeline.processes:
        for number, called in _named(timeline, process):
            storage = process.storage(number)
            if storage is not None:
                found.update(dict.fromkeys(called, storage))
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
    by_site: dict[int, frozenset[str]] = {}
    for row in process.part.rows:
        if row[0] not in MAKES or not row[4] or row[4] in named:
            continue
        if row[3] not in by_site:
            site = process.site(row[3])[0]
            by_site[row[3]] = _targets(timeline, site) if site else frozenset()
        if by_site[row[3]]:
            yield row[4], by_site[row[3]]


def _goes_on(process: Process, number: int, made: dict[int, frozenset[str]]) -> bool:
    """Whether its values are now in another one of them."""
    return any(
        row[0] in LINEAGE_CODES and row[5] == number != row[4] and row[4] in made
        for row in process.by_storage.get(number, ())
    )


def _targets(timeline: RunTimeline, site: Site) -> frozenset[str]:
    tree = timeline.tree(site.file)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.lineno <= site.line <= (
            node.end_lineno or node.lineno
        ):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            return frozenset(name for each in targets for name in _names(each))
    return frozenset()


def _names(target: ast.expr) -> Iterator[str]:
    if isinstance(target, (ast.Name, ast.Attribute)):
        yield ast.unparse(target)
    elif isinstance(target, (ast.Tuple, ast.List)):
        for each in target.elts:
            yield from _names(each)
