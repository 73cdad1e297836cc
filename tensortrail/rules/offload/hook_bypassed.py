from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tensortrail.findings import Confidence, Finding, Fix, Safety, Setting, Severity
from tensortrail.rules import Bad, Did, Event, Good, Module, Rule, Timeline
from tensortrail.rules.offload._captured import captured, onloads
from tensortrail.rules.shared.device_maps import kept_on
from tensortrail.rules.shared.failures import was_handled
from tensortrail.rules.shared.history import placing
from tensortrail.rules.shared.hook_events import hooks_telling
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.lines import by_line, place
from tensortrail.rules.shared.mends import brought_around
from tensortrail.rules.shared.operands import Operand, not_brought, operands
from tensortrail.rules.shared.sentences import first_of

BEFORE = (
    "change it before the model is offloaded; or take the hooks off first, with "
    "remove_hook_from_submodules of accelerate.hooks, and offload the model again"
)

OTHERWISE = {
    "removed": "leave the hook on its module as long as that is used: without it, what was loaded "
    "onto meta has no values; or load the weights again, to where they are used",
    "added": "add it before the model is offloaded, or offload the model again afterwards",
}


class HookBypassed(Rule):
    """An offloaded weight is used while its module does not run, so no hook has loaded it.

    ## What it does
    In a run, follows the hooks of accelerate and diffusers on offloaded modules. Reports:

    - an operation with a weight that its hook has left elsewhere, because only a part of the module
      was used, the hook had been removed, or the module's forward was replaced;
    - a weight that was written while its hook had it loaded: the hook drops the new values;
    - a weight that was changed between the calls of its module, where it is on meta and has no
      values to change.

    In code, reports a weight that is bound to a name before its module is onloaded, and used after
    it.

    ## Why is this bad?
    The operation raises, or computes with a placeholder or undefined memory. The hook loads a
    weight before the forward of its own module and removes it afterwards, so `other.weight` in
    another forward or a helper is a placeholder, or on the CPU. Writes in between are lost.

    ## What you may see
    ```
    RuntimeError: Tensor on device cpu is not on the expected device meta!
    ```

    ## Fix safety
    Unsafe: a recorded run offers `align_module_device` around a statement that takes the weight
    itself. Elsewhere it names the module to call, which is often the better way.

    ## References
    - huggingface/accelerate documentation of `align_module_device`
    - huggingface/diffusers documentation, "Reduce memory usage"
    """

    code = "OFF105"
    name = "hook-bypassed"
    since = "0.2.0"
    severity = Severity.ERROR
    explains = ("DEV502", "DEV507", "DEV508", "OFF102")

    triggers = ("pre_forward", "align_module", "onload_module")

    bad = (
        Bad(
            """\
def observe(module, observer):
    order = getattr(module, "weight_g_idx", None)
    offloaded = is_module_offloaded(module)
    if offloaded:
        module._hf_hook.pre_forward(module)
    return observer(module.weight, order)
""",
            lines=(2,),
        ),
        Bad(
            """\
def scaled(layer, factor):
    weight = layer.weight
    with align_module_device(layer):
        return weight * factor
""",
            lines=(2,),
            instead="""\
def scaled(layer, factor):
    with align_module_device(layer):
        weight = layer.weight
        return weight * factor
""",
        ),
    )
    good = (
        Good(
            """\
def observe(module, observer):
    if is_module_offloaded(module):
        module._hf_hook.pre_forward(module)
    order = getattr(module, "weight_g_idx", None)
    return observer(module.weight, order)
"""
        ),
        Good(
            """\
def scaled(layer, factor):
    weight = layer.weight
    rows = weight.shape[0]
    with align_module_device(layer):
        return layer.weight * factor / rows
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for onload, subject in onloads(module):
            for assign, use in captured(module, onload, subject):
                yield self.finding(
                    module,
                    assign,
                    f"`{module.text(assign.targets[0])}` is read before line {onload.lineno} loads "
                    f"the weights of `{module.text(subject)}`: if it is offloaded, line "
                    f"{use.lineno} uses a placeholder without values",
                    severity=Severity.WARNING,
                    trail=[(onload, "brought here"), (use, "used here")],
                )

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for events in by_line(timeline.events(Did.ERROR, Did.MEET)):
            for event in events:
                if left := _left(timeline, event):
                    yield self._used(timeline, event, left)
                    break
        lost = (each for each in timeline.events(Did.HOOK) if each.facts.get("lost"))
        for events in by_line(lost):
            yield self._lost(timeline, events)
        for events in by_line(hooks_telling(timeline, "written on meta")):
            yield self._without_effect(timeline, events)

    def _without_effect(self, timeline: Timeline, events: list[Event]) -> Finding:
        names = [f"`{each.facts['written on meta']}`" for each in events]
        kept = str(events[0].facts.get("kept_in") or "memory")
        return self.finding_in_run(
            timeline,
            events[0],
            f"changing {first_of(names, 1)} does nothing: between the calls of its module it is on "
            f"meta and has no values, and its hook loads the old ones from {kept}",
            confidence=Confidence.HIGH,
            fixes=[Fix(BEFORE, Safety.DISPLAY, ())],
        )

    def _used(self, timeline: Timeline, event: Event, left: Operand) -> Finding:
        hook = left.hook
        caught = event.did is Did.ERROR and was_handled(timeline, event)
        inside = f" in `{function}`" if (function := _function(event)) else ""
        made = str(event.facts.get("result") or "meta")
        silent = f", and gives uninitialised memory on {made}" if made != "meta" else ""
        return self.finding_in_run(
            timeline,
            event,
            f"`{event.op}`{inside} is given `{hook.get('parameter')}`, which is on {left.device}"
            f"{silent}{_made(timeline, event, left)}: {not_brought(hook)}{_kept(hook)}",
            severity=Severity.WARNING if caught else Severity.ERROR,
            confidence=Confidence.HIGH,
            about=left.storage,
            fixes=[_brought(timeline, event, left)],
            settings=_settings(timeline, event, left),
            evidence={"kept in": str(hook.get("kept_in") or "memory")},
        )

    def _lost(self, timeline: Timeline, events: list[Event]) -> Finding:
        names = list(dict.fromkeys(str(each.facts.get("parameter")) for each in events))
        were, their = ("were", "their") if len(names) > 1 else ("was", "its")
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        kept = str(events[0].facts.get("kept_in") or "memory")
        done = "replaced" if events[0].facts.get("lost") == "replaced" else "written"
        return self.finding_in_run(
            timeline,
            events[0],
            f"`{names[0]}`{more} {were} {done} while {their} hook had loaded "
            f"{'them' if len(names) > 1 else 'it'}: the hook discards the new values and loads the "
            f"old ones from {kept} the next time",
            severity=Severity.WARNING,
            confidence=Confidence.HIGH,
            fixes=[Fix(BEFORE, Safety.DISPLAY, ())],
            evidence={"weights": str(len(names)), "kept in": kept},
        )


def _left(timeline: Timeline, event: Event) -> Operand | None:
    """An operand that a hook should have brought. On the CPU it may serve, if nothing raised."""
    for operand in operands(timeline, event):
        brings = operand.hook and operand.hook.get("why") != "moved"
        if brings and _was_moved(timeline, event, operand):
            continue
        if brings and (event.did is Did.ERROR or operand.device == "meta"):
            return operand
    return None


def _function(event: Event) -> str:
    function = event.site.function if event.site else ""
    return "" if function == "<module>" else function


def _was_moved(timeline: Timeline, event: Event, operand: Operand) -> bool:
    """A weight without a hook lies where the program put it: no hook was to bring it."""
    if operand.hook.get("why") != "added" or operand.storage is None:
        return False
    history = timeline.history(operand.storage, event)
    return any(each.did is Did.MOVE for each in placing(history))


def _made(timeline: Timeline, event: Event, left: Operand) -> str:
    """The line that made a weight which came too late for a hook."""
    if left.hook.get("why") != "added" or left.storage is None:
        return ""
    placed = placing(timeline.history(left.storage, event))
    return f", made{place(placed[-1].site)}" if placed and placed[-1].site else ""


def _kept(hook: Mapping[str, Any]) -> str:
    """The file that holds the values, if they are not in memory."""
    return f"; its values are in {hook['kept_in']}" if hook.get("kept_in") else ""


def _brought(timeline: Timeline, event: Event, left: Operand) -> Fix | None:
    """Around the statement where the program itself takes the weight; else the module is named."""
    hook = left.hook
    if hook.get("why") in OTHERWISE:
        return Fix(OTHERWISE[str(hook["why"])], Safety.DISPLAY, ())
    if hook.get("why") != "bypassed":
        return None
    around = None
    if hook.get("hook") == "accelerate.AlignDevicesHook" and event.site:
        around = brought_around(timeline, event.site, str(hook.get("parameter")))
    return around or _by_a_call(str(hook.get("called") or hook.get("shown") or hook.get("module")))


def _by_a_call(module: str) -> Fix:
    told = f"call `{module}` itself: `forward`, or another function with its weights, runs no hook"
    return Fix(told, Safety.DISPLAY, ())


def _settings(timeline: Timeline, event: Event, left: Operand) -> Iterable[Setting]:
    """The device map that keeps the module where it is used."""
    if left.hook.get("hook") != "accelerate.AlignDevicesHook":
        return
    module, device = (str(left.hook.get(key)) for key in ("module", "to"))
    if left.hook.get("why") == "bypassed":
        yield from kept_on(timeline, event, module, device)
