"""The operand was moved there, by the program or by a library on its behalf."""

from __future__ import annotations

from tensortrail.findings import Setting
from tensortrail.rules.devices.shared.origins.case import Case, Origin, advice
from tensortrail.rules.shared.calls import quoted
from tensortrail.rules.shared.lines import doer, line_of, where
from tensortrail.rules.timeline import Did, Event

FILLED = (
    "make memory for the model with `to_empty(device=...)` and load its weights into it, or build "
    "it where it is to run"
)


def origin(case: Case) -> Origin | None:
    last = case.placed[-1] if case.placed else None
    if last is None:
        return None
    if last.did is Did.MOVE and last.other is not None:
        hook = f" for {last.facts['hook']}" if last.facts.get("hook") else ""
        why = (
            f"{case.name} was moved {last.other.device} -> {case.odd.device} by {doer(last)}{hook}"
        )
        back = f"leave {case.name} on {last.other.device}, or move it back before it is used here"
        if case.wanted not in ("", last.other.device):  # where it was would not help either
            back = f"move {case.name} to {case.wanted} instead, where it is used"
            if case.wanted != "cpu" and case.timeline.is_named(case.storage):  # a weight
                back = f"move what it is used with to {case.odd.device}, or it to {case.wanted}"
        if hook and case.odd.device not in ("cpu", "meta") and case.wanted not in ("", "cpu"):
            back = f"in the device map, put {case.name} on {case.wanted}, where it is used"
        elif hook:
            return Origin(why)
        return Origin(why, fixes=(advice(back),))
    if last.did is Did.CREATE and _of_module(last):
        why = f"{case.name} was made on {case.odd.device}{where(last)} and not moved since"
        return Origin(why, settings=_module(case))
    fixes = (advice(FILLED),) if case.odd.device == "meta" and last.did is Did.CREATE else ()
    return Origin(f"{case.name} was put there by {doer(last)}", fixes=fixes)


def _of_module(made: Event) -> bool:
    """Made while a module was: it goes where the module is moved."""
    sites = (each for each in (made.site, made.by) if each)
    return any(each.function.rpartition(".")[2] == "__init__" for each in sites)


def _module(case: Case) -> tuple[Setting, ...]:
    if case.wanted in ("", "cpu"):
        return ()
    at = line_of(case.event)
    place = f" at line {at.line}" if at else ""
    return (
        Setting(
            library="torch",
            name="device",
            value=quoted(case.wanted),
            why=f"{case.name} is used with tensors on {case.wanted}{place}",
            where="the module, before it is used",
            call="to",
        ),
    )
