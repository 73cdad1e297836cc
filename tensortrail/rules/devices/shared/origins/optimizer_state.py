"""The operand is state of an optimizer, made or loaded before the model was moved."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator

from tensortrail.findings import Fix, Safety, Site
from tensortrail.rules.devices.shared.origins.case import Case, Origin, advice
from tensortrail.rules.shared.lines import where
from tensortrail.rules.shared.mends import line_behind, statement_at
from tensortrail.rules.timeline import Did, Event

OPTIMIZERS = os.path.join("torch", "optim") + os.sep
GRADIENT = "gradient"
MOVING = (ast.Expr, ast.Assign)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def origin(case: Case) -> Origin | None:
    last = case.placed[-1] if case.placed else None
    kind = _optimizer(case, last) if last else ""
    if last is None or not kind:
        return None
    moved = _move_of_model(case, last)
    since = ", before the model was moved" if moved else ""
    after = f" to {case.wanted or 'another device'}{where(moved)}" if moved else ""
    why = f"the state of `{kind}` was {_came(case, last)}{since}{after}, and stays there"
    return Origin(why, fixes=(_brought_along(case, kind, moved),))


def _optimizer(case: Case, last: Event) -> str:
    """The class of the optimizer that this is state of, "" if it is none."""
    known = case.odd.optimizer
    if known and known.get("part") != GRADIENT:
        return str(known.get("class"))
    made = last.did is Did.CREATE and last.by is not None and OPTIMIZERS in last.by.file
    return last.by.function.partition(".")[0] if made and last.by else ""


def _came(case: Case, last: Event) -> str:
    if last.did is Did.LOAD:
        path = f" from {last.facts['path']}" if last.facts.get("path") else ""
        return f"read onto {case.odd.device}{path} by `{last.op}`{where(last)}"
    return f"{'made' if last.did is Did.CREATE else 'put'} on {case.odd.device}{where(last)}"


def _move_of_model(case: Case, made: Event) -> Event | None:
    """The first move of a module to where the weights are now, after the state was made."""
    for event in case.timeline.events(Did.MOVE):
        there = event.storage is not None and event.storage.device == case.wanted
        if there and event.time >= made.time and event.site and event.by:
            return event
    return None


def _brought_along(case: Case, kind: str, moved: Event | None) -> Fix:
    """A line behind the move, after which the state lies where the weights are."""
    text = f"move the model before `{kind}` has state, or let its state follow the weights"
    site = moved.site if moved else None
    tree = case.timeline.tree(site.file) if site else None
    move = statement_at(tree, site.line) if tree and site else None
    name = _name(case, tree, move, kind) if tree and isinstance(move, MOVING) else ""
    if site is None or move is None or not name:
        return advice(text)
    return _follows(case, site, move, name) or advice(text)


def _follows(case: Case, site: Site, move: ast.stmt, name: str) -> Fix | None:
    line = f"{name}.load_state_dict({name}.state_dict())"
    edit = line_behind(case.timeline, site.file, move, line)
    text = f"let the state follow the weights: `{line}` after `{ast.unparse(move)}`"
    return case.timeline.fix(text, Safety.UNSAFE, edit)


def _name(case: Case, tree: ast.Module, move: ast.stmt, kind: str) -> str:
    """What the optimizer is called where the model is moved, "" if it has no name there yet."""
    seen = [str(each) for each in case.odd.optimizer.get("names", ())]
    known = set(_known(tree, move))
    return next((each for each in (*seen, *_made(tree, kind)) if each in known), "")


def _known(tree: ast.Module, at: ast.stmt) -> Iterator[str]:
    """Names that have a value at the statement, and attributes that have one anywhere."""
    around = [each for each in ast.walk(tree) if isinstance(each, FUNCTIONS) and _holds(each, at)]
    for scope in (tree, *around[-1:]):
        for node in _own(scope):
            stored = isinstance(getattr(node, "ctx", None), ast.Store)
            if isinstance(node, ast.Name) and stored and node.lineno < at.lineno:
                yield node.id
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield ast.unparse(node)


def _holds(function: ast.AST, statement: ast.stmt) -> bool:
    return any(each is statement for each in ast.walk(function))


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """What stands in the scope, without the functions in it."""
    for child in ast.iter_child_nodes(scope):
        if not isinstance(child, (*FUNCTIONS, ast.ClassDef)):
            yield child
            yield from _own(child)


def _made(tree: ast.Module, kind: str) -> Iterator[str]:
    """Names that hold an optimizer of this class."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            called = ast.unparse(node.value.func).rpartition(".")[2]
            if called == kind and isinstance(node.targets[0], (ast.Name, ast.Attribute)):
                yield ast.unparse(node.targets[0])
