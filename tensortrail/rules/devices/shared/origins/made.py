"""The operand was made by the program, by a call that names no device."""

from __future__ import annotations

from collections.abc import Mapping

from tensortrail.findings import Setting
from tensortrail.patterns import pattern
from tensortrail.rules.devices.shared.origins.case import Case, Origin, advice
from tensortrail.rules.shared.calls import carrier, gives
from tensortrail.rules.shared.device_names import device_here
from tensortrail.rules.shared.lines import where
from tensortrail.rules.timeline import Did, Event

MAKERS = frozenset({
    "torch.tensor", "torch.as_tensor", "torch.ones", "torch.zeros", "torch.full", "torch.empty",
    "torch.arange", "torch.linspace", "torch.logspace", "torch.eye", "torch.rand", "torch.randn",
    "torch.randint", "torch.randperm", "torch.tril_indices", "torch.triu_indices",
    "torch.ones_like", "torch.zeros_like", "torch.full_like", "torch.empty_like",
    "torch.rand_like", "torch.randn_like", "torch.randint_like",
})  # fmt: skip
"""Functions that take the device of what they make, by its name."""
MAIN = "MainThread"
_CURRENT = pattern(r"""device\s*=\s*(torch\.device\(\s*)?["']cuda["']""")


def origin(case: Case) -> Origin | None:
    last = case.placed[-1] if case.placed else None
    if last is None or last.did is not Did.CREATE or last.op not in MAKERS or last.by is not None:
        return None
    function = last.op.rpartition(".")[2]
    at = carrier(case.timeline, last.site, function)
    named = at is not None and gives(at, "device")
    how = f"`{last.op}`" if named else f"`{last.op}`, which is given no device"
    why = f"{case.name} was made on {case.odd.device}{where(last)} by {how}"
    if named and at is not None and _CURRENT.search(at.source) and case.wanted[:5] == "cuda:":
        return Origin(why, fixes=(advice(_current(case, last)),))
    if case.wanted in ("", "cpu"):
        return Origin(why)
    if named:
        return Origin(why, fixes=(advice(_given_another(case)),))
    if _while_building(last) and "." in case.timeline.name(case.storage):  # a module has it
        return _put_in_later(case, last, why)
    settings = _device(case, last, function) if at else ()
    there = f"make it on {case.wanted}{where(last)}: give `{last.op}` a `device`"
    return Origin(why, settings=settings, fixes=() if settings else (advice(there),))


def _given_another(case: Case) -> str:
    """The device that was asked for is one where weights wait, as often as not."""
    moves = case.timeline.events(Did.MOVE)
    offloaded = any(each.facts.get("hook") and each.time < case.event.time for each in moves)
    why = ", not where offloaded weights wait for their turn" if offloaded else ""
    return f"make {case.name} on {case.wanted}, where it is used{why}"


def _current(case: Case, made: Event) -> str:
    """Every thread has a current GPU of its own, and begins with the first."""
    here = f"`cuda` without a number is the current GPU, {case.odd.device} here: "
    chosen = f"`torch.cuda.set_device({case.wanted[5:]})`"
    if made.thread not in ("", MAIN):
        thread = f"each thread has its own, and begins with cuda:0: call {chosen} in the thread"
        return f"{here}{thread} as well, or write {case.wanted!r}"
    return f"{here}call {chosen} before, or write {case.wanted!r}"


def _put_in_later(case: Case, made: Event, why: str) -> Origin:
    """In a model that was moved before, what a part makes stays where it was made."""
    for event in reversed(case.timeline.events(Did.MODULE)):
        after = event.facts.get("after")
        if event.time < made.time and isinstance(after, Mapping) and case.wanted in after:
            since = f", after `{event.facts.get('class')}` was moved to {case.wanted}{where(event)}"
            change = f"move the model again when it is complete: `.to({case.wanted!r})`"
            return Origin(why + since, fixes=(advice(change),))
    return Origin(why)


def _device(case: Case, made: Event, function: str) -> tuple[Setting, ...]:
    if made.site is None:
        return ()
    at = carrier(case.timeline, made.site, function)
    return (
        Setting(
            "torch",
            "device",
            device_here(case.timeline, made.site, case.wanted),
            f"the result is used with tensors on {case.wanted}",
            f"torch.{function}",
            function,
            at,
        ),
    )


def _while_building(made: Event) -> bool:
    """In the constructor of a module: what is made there goes where the module is moved."""
    function = made.site.function if made.site else ""
    return function.rpartition(".")[2] == "__init__"
