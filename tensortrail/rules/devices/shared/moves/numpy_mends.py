"""How a tensor comes to the CPU before numpy reads it, in code and after a run."""

from __future__ import annotations

import ast

from tensortrail.findings import Edit, Fix, Safety
from tensortrail.rules import Event, Module, Timeline
from tensortrail.rules.shared.mends import edited


def by_cpu(module: Module, tensor: ast.expr) -> Fix | None:
    edit = module.insert_after(tensor, ".cpu()")
    return module.fix("bring it to the CPU first", Safety.UNSAFE, edit)


def by_cpu_in_run(timeline: Timeline, event: Event, has_gradient: bool) -> Fix:
    way = ".detach().cpu().numpy(" if has_gradient else ".cpu().numpy("
    text = f"bring it to the CPU first: `{way})`"
    call = timeline.call(event.site, "numpy") if event.site else None
    head, found, tail = call.source.rpartition(".numpy(") if call else ("", "", "")
    edit = Edit(call, f"{head}{way}{tail}") if call and found else None
    return edited(timeline, text, edit)
