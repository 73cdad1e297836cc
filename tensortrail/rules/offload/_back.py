"""The edits that take a module, or a part of it, back to the device it was on."""

from __future__ import annotations

import ast

from tensortrail.findings import Edit, Fix, Safety, Site
from tensortrail.rules.offload._moved import Use, given_at
from tensortrail.rules.shared.calls import quoted
from tensortrail.rules.timeline import Event, Timeline

_GETTERS = ("get_input_embeddings", "get_output_embeddings")


def taken_back(timeline: Timeline, use: Use) -> Fix | None:
    """`model.embed(ids)` becomes `model.embed.to("cuda:0")(ids)`."""
    device = next((each for each in use.devices(timeline)), "")
    at, storage = use.event.site, use.operand.storage
    if at is None or storage is None or not device:
        return None
    back = f".to({quoted(device)})"
    place, text = None, ""
    for getter in _GETTERS:
        if place is None and (place := timeline.call(at, getter)) is not None:
            text = f"{place.source}{back}"
    if place is None:
        part = timeline.name(storage).rpartition(".")[0].rpartition(".")[2]
        place = timeline.call(at, part) if part else None
        text = _on_the_part(place, back) if place is not None else ""
    if place is None or not text:
        return None
    return timeline.fix(f"use the part on {device}", Safety.UNSAFE, Edit(place, text))


def _on_the_part(call: Site, back: str) -> str:
    tree = ast.parse(call.source, mode="eval").body
    if not isinstance(tree, ast.Call) or tree.func.end_lineno != 1:
        return ""
    source, end = call.source.encode(), tree.func.end_col_offset or 0
    return f"{source[:end].decode()}{back}{source[end:].decode()}"


def brought_back(timeline: Timeline, event: Event) -> Fix | None:
    """`model.to("cuda:0")` behind the statement whose call took the model away."""
    device, at = str(event.facts.get("from")), event.site
    model = _handed_over(timeline, event)
    end = _end_of_statement(timeline, at) if at and model else None
    if at is None or end is None:
        return None
    place, indent = end
    edit = Edit(place, f"\n{indent}{model}.to({quoted(device)})")
    return timeline.fix(f"take the module back to {device}", Safety.UNSAFE, edit)


def _handed_over(timeline: Timeline, event: Event) -> str:
    """The name that the module has in the function that made the call."""
    at, made = event.site, given_at(timeline, event)
    function = event.facts.get("takes") or event.facts.get("method_of")
    if at is None or made is None or (at.file, at.function) != (made.file, made.function):
        return ""
    given = timeline.argument(made, str(function)) if function else None
    return given.source if given and given.source.isidentifier() else ""


def _end_of_statement(timeline: Timeline, at: Site) -> tuple[Site, str] | None:
    """Where the line ends on which the statement stands alone, and how far it is indented."""
    line = timeline.line(at)
    try:
        (statement,) = ast.parse(line).body
    except (SyntaxError, ValueError):
        return None
    value = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
    name = ast.unparse(value.func).rpartition(".")[2] if isinstance(value, ast.Call) else ""
    call = timeline.call(at, name) if name else None
    whole, end = line.encode(), statement.end_col_offset or 0
    if call is None or not whole[:end].endswith(call.source.encode()):
        return None
    before = end - len(call.source.encode())
    last = call.end + len(whole) - end
    return Site(at.file, at.line, start=last, end=last), " " * (call.column - 1 - before)
