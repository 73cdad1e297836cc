"""The operand came out of a DataLoader, and nothing moved the batch."""

from __future__ import annotations

import ast

from tensortrail.findings import Fix, Safety
from tensortrail.rules.devices.shared.origins.case import Case, Origin, advice
from tensortrail.rules.shared.device_names import device_here
from tensortrail.rules.shared.lines import where
from tensortrail.rules.shared.operands import operands
from tensortrail.rules.timeline import Did, Event

OP = "DataLoader"
PREPARES = "Accelerator.prepare_model"


def origin(case: Case) -> Origin | None:
    last = case.placed[-1] if case.placed else None
    if last is None or last.did is not Did.CREATE or last.op != OP:
        return None
    part, beside = _part(last), _moved_part(case, last)
    which = f"{part} of the batch" if part and (beside or "`" in part) else "the batch"
    came = f"{which} came out of the DataLoader{where(last)} on {case.odd.device}"
    if beside is None:
        wanted = case.wanted or "where the module is"
        nothing = f"{came}, and nothing moved it to {wanted}"
        if (prepared := _prepared(case)) is not None:
            why = f"{nothing}: the model was prepared{where(prepared)}, and this loader was not"
            return Origin(
                why, fixes=(advice(f"pass the loader to `prepare` too{where(prepared)}"),)
            )
        return Origin(nothing, fixes=(_moved(case, last),))
    name, move = beside
    why = f"{came}, and only other parts of it were moved: {name}{where(move)}"
    nested = last.facts.get("form") == "nested"
    fix = advice(f"move {part} too{where(move)}") if nested else _moved(case, last)
    return Origin(why, fixes=(fix,))


def _prepared(case: Case) -> Event | None:
    """The move of another operand by accelerate, which also prepares loaders that bring batches to
    the device."""
    storages = (each.storage for each in operands(case.timeline, case.event))
    for storage in filter(None, storages):
        for event in case.timeline.history(storage, case.event):
            if event.did is Did.MOVE and event.by and event.by.function == PREPARES:
                return event
    return None


def _part(event: Event) -> str:
    """The tensor's place in its batch: `more.mask`, part 1; "" for a batch of one tensor."""
    path = str(event.facts.get("part", ""))
    return f"part {path}" if path.isdigit() else f"`{path}`" if path else ""


def _moved_part(case: Case, last: Event) -> tuple[str, Event] | None:
    """A part of the same batch that was moved, and by which event."""
    parts = {
        each.storage.key: _part(each)
        for each in case.timeline.events(Did.CREATE)
        if each.storage and each.op == OP and _batch(each) == _batch(last)
    }
    for event in case.timeline.events(Did.MOVE):
        if event.other is not None and event.other.key in parts and _batch(last)[1]:
            return parts[event.other.key], event
    return None


def _batch(event: Event) -> tuple[str, object]:
    return event.process, event.facts.get("batch")


def _moved(case: Case, batch: Event) -> Fix:
    """A line that moves the batch, at the beginning of the loop's body."""
    text = "move the batch at the beginning of the loop"
    loop = _loop(case, batch)
    if loop is None or batch.site is None or not case.wanted:
        return advice(text)
    device = device_here(case.timeline, batch.site, case.wanted)
    first = loop.body[0]
    moved = _line(loop.target, str(batch.facts.get("form", "")), device)
    line = f"{' ' * first.col_offset}{moved}\n"
    edit = case.timeline.insert(batch.site.file, first.lineno, line) if moved else None
    return (case.timeline.fix(text, Safety.UNSAFE, edit) if edit else None) or advice(text)


def _line(target: ast.expr, form: str, device: str) -> str:
    """The statement that moves what the loop gives; "" for what no one line can move."""
    if isinstance(target, ast.Name):
        batch = target.id
        return {
            "tensor": f"{batch} = {batch}.to({device})",
            "sequence": f"{batch} = [each.to({device}) for each in {batch}]",
            "dict": f"{batch} = {{key: each.to({device}) for key, each in {batch}.items()}}",
        }.get(form, "")
    names = _names(target) if form == "sequence" else ()
    moves = ", ".join(f"{name}.to({device})" for name in names)
    return f"{', '.join(names)} = {moves}" if names else ""


def _loop(case: Case, batch: Event) -> ast.For | None:
    site = batch.site
    tree = case.timeline.tree(site.file) if site else None
    for node in ast.walk(tree) if site and tree else ():
        if isinstance(node, ast.For) and site and node.iter.lineno == site.line:
            return node if node.body[0].lineno > node.lineno else None
    return None


def _names(target: ast.expr) -> tuple[str, ...]:
    parts = target.elts if isinstance(target, ast.Tuple) else []
    names = tuple(each.id for each in parts if isinstance(each, ast.Name))
    return names if len(names) == len(parts) else ()
