"""How what a move made of a leaf gets a gradient again."""

from __future__ import annotations

import ast

from tensortrail.findings import Fix, Safety, Site
from tensortrail.rules.shared.dtypes import is_dtype
from tensortrail.rules.shared.mends import (
    edited,
    line_behind,
    source_of,
    statement_at,
    statement_of,
)
from tensortrail.rules.shared.objects import called, receiver
from tensortrail.rules.timeline import Event, Timeline
from tensortrail.rules.view import Module


def keeps_gradient(module: Module, node: ast.expr) -> bool:
    """`x.retain_grad()` was called in the function."""
    name, function = module.text(node), module.function_of(node)
    owners = (receiver(each) for each in module.calls("retain_grad", inside=function))
    return any(each is not None and module.text(each) == name for each in owners)


def device_given(module: Module, move: ast.Call) -> str:
    """The device that a move names and nothing else, as text; "" if it says more, or none."""
    if called(move) == "cuda" and not move.args and not move.keywords:
        return '"cuda"'
    said = [*move.args, *(each.value for each in move.keywords if each.arg == "device")]
    alone = called(move) == "to" and len(said) == 1 == len(move.args) + len(move.keywords)
    return module.text(said[0]) if alone and not is_dtype(module, said[0]) else ""


def leaf_again(timeline: Timeline, event: Event, name: str) -> Fix:
    """`x = x.detach().requires_grad_()` before the line that makes the optimizer."""
    line = f"{name or 'x'} = {name or 'x'}.detach().requires_grad_()"
    text = f"make it a leaf when it is where it belongs: `{line}`"
    site = event.site
    statement = statement_of(timeline, site)
    if site is None or statement is None or not name.isidentifier():
        return Fix(text, Safety.DISPLAY, ())
    edit = timeline.insert(site.file, statement.lineno, f"{' ' * statement.col_offset}{line}\n")
    return edited(timeline, text, edit)


def parameter_of_moved(timeline: Timeline, site: Site | None) -> Fix | None:
    """`nn.Parameter(x).to(device)` gives a plain tensor: what is moved has to become the
    parameter."""
    statement = statement_of(timeline, site)
    for node in ast.walk(statement) if statement else ():
        match node:
            case ast.Call(
                func=ast.Attribute(attr=move, value=ast.Call(args=[inner, *_]) as made)
            ) if ast.unparse(made.func).endswith("Parameter") and site is not None:
                shown = [source_of(timeline, site.file, each) for each in (node, made, inner)]
                moved = f"{shown[2]}{shown[0].removeprefix(shown[1])}"
                new = shown[1].replace(shown[2], moved, 1)
                text = f"make the parameter of what was moved (`.{move}` first): `{new}`"
                return edited(timeline, text, timeline.replace(site.file, node, new))
    return None


def target_of(timeline: Timeline, site: Site | None) -> str:
    """What the line assigns."""
    match statement_of(timeline, site):
        case ast.Assign(targets=[target]):
            return ast.unparse(target)
    return ""


def gradient_kept(timeline: Timeline, event: Event, name: str, moved: bool) -> Fix:
    """Behind the line that computes it: a leaf again, if a move alone took that away; otherwise the
    graph behind it may be needed, and its gradient is kept too."""
    line = f"{name} = {name}.detach().requires_grad_()" if moved else f"{name}.retain_grad()"
    why = "make it a leaf when it is where it belongs" if moved else "have its gradient kept"
    text = f"{why}: `{line}`"
    match event.facts.get("made"):
        case [str(file), int(number)]:
            tree = timeline.tree(file)
            statement = statement_at(tree, number) if tree else None
            edit = line_behind(timeline, file, statement, line) if statement else None
            return edited(timeline, text, edit)
    return Fix(text, Safety.DISPLAY, ())
