from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tensortrail.findings import Confidence, Finding, Fix, Safety, Setting, Severity, Site
from tensortrail.rules import Bad, Branch, Did, Event, Good, Module, Rule, Timeline
from tensortrail.rules.shared.calls import carrier
from tensortrail.rules.shared.device_maps import placements
from tensortrail.rules.shared.failures import was_handled
from tensortrail.rules.shared.lines import by_line
from tensortrail.rules.shared.offload_tests import (
    SEVERAL,
    Incomplete,
    asked_of,
    incomplete,
    offloads,
    subject_of,
)
from tensortrail.rules.shared.operands import Operand, operands
from tensortrail.rules.shared.origins import text_behind
from tensortrail.rules.shared.sentences import one_line


class OffloadGuardIncomplete(Rule):
    """The test whether a model is offloaded misses a case.

    ## What it does
    In code, reports a decision about offloading by `len(set(device_map.values())) > 1`, or by
    `"cpu" in device_map.values()`, if nothing else makes the condition true for `"disk"`.

    In a recorded run, reports such a test that was false, in a function that is running while a
    weight which a hook has on disk is used without being loaded.

    ## Why is this bad?
    Weights are still on meta when they are saved or converted, because the model counts as not
    offloaded: one wholly on disk has a single device in its map, and one on GPU and disk has no
    `"cpu"`.

    ## Fix safety
    Unsafe: the added case runs code that did not run before.

    ## References
    - transformers `save_pretrained` and `from_pretrained`, which ask for both
    - vllm-project/compressed-tensors pull request 357
    """

    code = "OFF103"
    name = "offload-guard-incomplete"
    since = "0.2.0"
    severity = Severity.WARNING
    warns = False
    confidence = Confidence.MEDIUM
    explains = ("OFF105", "DEV502", "DEV507", "DEV508")
    needs_callers = True
    triggers = tuple(("device_map", word) for word in ("load", "is_meta", "save_pretrained"))

    bad = (
        Bad(
            """\
def save(model):
    device_map = model.hf_device_map
    is_offloaded = len(set(device_map.values())) > 1
    if is_offloaded:
        onload(model)
""",
            lines=(3,),
            fixed="""\
def save(model):
    device_map = model.hf_device_map
    is_offloaded = (len(set(device_map.values())) > 1 or "disk" in device_map.values())
    if is_offloaded:
        onload(model)
""",
        ),
        Bad(
            """\
def save(model, device_map):
    if "cpu" in device_map.values():
        state_dict = load_offloaded(model)
""",
            lines=(2,),
            fixed="""\
def save(model, device_map):
    if ("cpu" in device_map.values() or "disk" in device_map.values()):
        state_dict = load_offloaded(model)
""",
        ),
        Bad(
            """\
def save(model):
    places = model.hf_device_map.values()
    device_map = model.hf_device_map
    is_offloaded = len(set(device_map.values())) > 1 and ("cpu" in places or "disk" in places)
""",
            lines=(4,),
            fixed="""\
def save(model):
    places = model.hf_device_map.values()
    device_map = model.hf_device_map
    is_offloaded = (len(set(device_map.values())) > 1 or "disk" in device_map.values()) and \
("cpu" in places or "disk" in places)
""",
        ),
    )
    good = (
        Good(
            """\
def report(model, device_map):
    if len(set(device_map.values())) > 1:
        logger.info("some weights are offloaded to the CPU")
"""
        ),
        Good(
            """\
def save(model, device_map):
    if "cpu" in device_map.values() or "disk" in device_map.values():
        state_dict = load_offloaded(model)
"""
        ),
        Good(
            """\
def load(model, device_map):
    if len(set(device_map.values())) > 1 or "disk" in set(device_map.values()):
        offload(model)
"""
        ),
        Good(
            """\
def place(model, device_map, offload_folder):
    if len(set(device_map.values())) == 1:
        return model.to(next(iter(device_map.values())))
"""
        ),
        Good(
            """\
def configure(self, device_map):
    self.offload_to_cpu = "cpu" in device_map.values()
"""
        ),
        Good(
            """\
def synchronise(self, device_map, offload):
    if len(set(device_map.values())) > 1:
        barrier()
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for test in module.nodes(ast.Compare):
            found = _found(module, test)
            if found is None or any(each.mentions("disk") for each in module.guards_of(test)):
                continue
            yield self.finding(
                module,
                test,
                f"`{one_line(module, test)}` misses a model that lies on disk",
                trail=[(found.decision, "this condition decides whether weights are offloaded")],
                fixes=[self._with_disk(module, test, found.subject)],
            )

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for events in by_line(timeline.events(Did.ERROR, Did.MEET)):
            for event in events:
                misled = (each for each in operands(timeline, event) if each.hook.get("guard"))
                if (operand := next(misled, None)) is not None:
                    yield self._seen(timeline, event, operand)
                    break

    def _seen(self, timeline: Timeline, event: Event, operand: Operand) -> Finding:
        guard, hook = operand.hook["guard"], operand.hook
        site = Site(str(guard["file"]), int(guard["line"]), function=str(guard["function"]))
        places, kept = " and ".join(map(str, guard["places"])), str(hook.get("kept_in") or "memory")
        caught = event.did is Did.ERROR and was_handled(timeline, event)
        told = self.finding_in_run(
            timeline,
            event,
            f"`{guard['test']}` in `{site.function}` takes a model whose weights are all on "
            f"{places} for one that is not offloaded: `{event.op}` is given "
            f"`{hook.get('parameter')}` without its values, which are in {kept}",
            severity=Severity.WARNING if caught else Severity.ERROR,
            confidence=Confidence.HIGH,
            about=operand.storage,
            settings=_two_places(timeline, guard),
            evidence={"device map": places},
        )
        decides = replace(event, site=site, storage=None, facts={"said": "decides it here"})
        (step,) = timeline.steps([decides])
        return replace(told, trail=(*told.trail, replace(step, message="decided here")))

    def _with_disk(self, module: Module, test: ast.Compare, subject: ast.expr) -> Fix | None:
        text = module.text(test)
        asked = module.replace(test, f'({text} or "disk" in {module.text(subject)})')
        return module.fix("test for disk too", Safety.UNSAFE, asked)


def _found(module: Module, test: ast.Compare) -> Incomplete | None:
    """The test where it stands, or as the condition of a branch that another name leads to."""
    if subject_of(test) is None:
        return None
    up = list(module.ancestors(test))
    found = incomplete(test, up, module.text)
    if found is not None:
        return found
    asked = asked_of(test, up, module.text)
    if asked is None or "device_map" not in text_behind(module, asked.subject):
        return None
    function = module.function_of(test)
    for branch in module.branches(function):
        holds = any(each.test is test and each.holds and each.exact for each in branch.guards)
        others = any("disk" in each.text for each in branch.guards)
        if holds and not others and not _elsewhere_asked(module, branch):
            return asked if offloads(branch.body, module.text) else None
    return None


def _elsewhere_asked(module: Module, branch: Branch) -> bool:
    """An `elif` of the same decision asks for the disk."""
    others = branch.node.orelse if isinstance(branch.node, ast.If) else []
    return any("disk" in module.text(each).split("\n")[0] for each in others)


def _two_places(timeline: Timeline, guard: Mapping[str, Any]) -> Iterator[Setting]:
    """A map that the test does not take for one device."""
    parts = [str(each) for each in guard.get("parts", ())]
    if guard.get("kind") == SEVERAL and len(parts) > 1:
        for event in placements(timeline):
            library, _, call = event.op.rpartition(".")
            if event.facts.get("model") == guard.get("model"):
                yield Setting(
                    library=library,
                    name="device_map",
                    value=repr({**dict.fromkeys(parts, "disk"), parts[-1]: "cpu"}),
                    why="lies in two places, which this test can tell from one device",
                    where=call,
                    call=call,
                    at=carrier(timeline, event.site, call),
                )
                return
