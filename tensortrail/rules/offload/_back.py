"""The edit that takes a part of a module back to the device on which it is used."""

from __future__ import annotations

import ast

from tensortrail.findings import Edit, Fix, Safety, Site
from tensortrail.rules._calls import quoted
from tensortrail.rules.offload._moved import Use
from tensortrail.rules.timeline import Timeline

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
