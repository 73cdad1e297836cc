from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Did, Event, Good, Module, Rule, Timeline
from tensortrail.rules.devices.shared.in_runs.errors import is_move
from tensortrail.rules.devices.shared.in_runs.refused_moves import without_the_move
from tensortrail.rules.devices.shared.modules.dispatched import is_quantized, moved_by_hand
from tensortrail.rules.shared.device_maps import on_one
from tensortrail.rules.shared.failures import was_handled, weight
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.lines import by_line
from tensortrail.rules.shared.operands import operands


class MovedAfterDispatch(Rule):
    """A model is moved by hand after it was dispatched, offloaded or quantized.

    ## What it does
    In code, reports `model.to(device)` and `model.cuda()` after one of these in the same function:

    - `from_pretrained` with `device_map="auto"`, `load_in_8bit` or a quantization config with it;
    - `dispatch_model`, `cpu_offload` or `enable_model_cpu_offload()`.

    In a recorded run, reports a move of such a model, or of a part of it, if

    - the library refuses it, warns or does nothing;
    - weights are afterwards on another device than the one to which the hooks send their inputs; or
    - a part that is offloaded as a whole now stays on the device.

    ## Why is this bad?
    The move raises, or the next call does: hooks decide where each weight is. A weight on the CPU
    or on disk cannot be moved. A weight on another GPU is moved, and its hook still sends inputs to
    the old place. A model that is offloaded as a whole stays on the device, and saves no memory.

    ## What you may see
    ```
    You can't move a model that has some modules offloaded to cpu or disk.
    ```

    ## Fix safety
    In code, no fix is offered: the map or the move may be wrong. A recorded run offers to remove a
    move that the library refuses or ignores. Unsafe: the map may be the wrong one of the two.

    ## References
    - huggingface/accelerate documentation, "Handling big models for inference"
    - huggingface/diffusers documentation, "Reduce memory usage"
    """

    code = "DEV509"
    name = "moved-after-dispatch"
    since = "0.2.0"
    severity = Severity.ERROR
    explains = ("DEV507", "OFF105")
    triggers = (
        "device_map=", ("load_in_8bit", "from_pretrained"), "dispatch_model(", "cpu_offload(",
        "disk_offload(", "load_checkpoint_and_dispatch(",
    )  # fmt: skip

    bad = (
        Bad(
            """\
from transformers import AutoModelForCausalLM

def load(name):
    model = AutoModelForCausalLM.from_pretrained(name, device_map="auto")
    model.to("cuda")
    return model
""",
            lines=(5,),
            instead="""\
from transformers import AutoModelForCausalLM

def load(name):
    model = AutoModelForCausalLM.from_pretrained(name, device_map={"": "cuda:0"})
    return model
""",
        ),
        Bad(
            """\
def run(pipe, prompt, device):
    pipe.enable_model_cpu_offload()
    pipe = pipe.to(device)
    return pipe(prompt)
""",
            lines=(3,),
        ),
        Bad(
            """\
from transformers import AutoModelForCausalLM

def load(name, device, load_in_8bit=False):
    return AutoModelForCausalLM.from_pretrained(name, load_in_8bit=load_in_8bit).to(device)
""",
            lines=(4,),
            instead="""\
from transformers import AutoModelForCausalLM

def load(name, device, load_in_8bit=False):
    model = AutoModelForCausalLM.from_pretrained(name, load_in_8bit=load_in_8bit)
    if not load_in_8bit:
        model.to(device)
    return model
""",
        ),
    )
    good = (
        Good(
            """\
import accelerate

def load(model, path, device):
    accelerate.load_checkpoint_and_dispatch(model, path)
    return model.to(device)
"""
        ),
        Good(
            """\
from transformers import AutoModelForCausalLM

def loaded(name, device, device_map):
    if device_map is not None:
        model = AutoModelForCausalLM.from_pretrained(name, device_map="auto")
    else:
        model = AutoModelForCausalLM.from_pretrained(name)
    if device_map is None:
        model = model.to(device)
    return model
"""
        ),
        Good(
            """\
def load(cls, name):
    model = cls.from_pretrained(name, device_map={"": "cuda:0"})
    return model.to("cuda:0")
"""
        ),
        Good(
            """\
import torch

def load(cls, name):
    model = cls.from_pretrained(name, device_map="auto")
    return model.to(torch.bfloat16)
"""
        ),
        Good(
            """\
from accelerate.hooks import remove_hook_from_module

def run(pipe):
    pipe.enable_model_cpu_offload()
    pipe("a")
    remove_hook_from_module(pipe.unet)
    pipe.to("cuda")
"""
        ),
        Good(
            """\
def load(cls, name, device):
    if device == "auto":
        model = cls.from_pretrained(name, device_map="auto")
    else:
        model = cls.from_pretrained(name)
        model.to(device)
    return model
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for moved in moved_by_hand(module):
            yield self.finding(
                module,
                moved.call,
                f"the weights of `{moved.name}` are already placed: this move raises if any of "
                "them is offloaded, and otherwise undoes the device map"
                if not is_quantized(module, moved.placed)
                else (
                    f"the weights of `{moved.name}` are or may be quantized: a model in 8 bit "
                    "refuses `cuda()`, and before bitsandbytes 0.48 also `to()`"
                ),
                severity=Severity.WARNING,
                trail=[(moved.placed, "they are placed here")],
            )

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        asked = (each for each in timeline.events(Did.HOOK) if "refused" in each.facts)
        for events in by_line(asked):
            yield self._refused(timeline, events)
        modules = timeline.events(Did.MODULE)
        for events in by_line(each for each in modules if each.facts.get("away")):
            yield self._away(timeline, events[0])
        for events in by_line(each for each in modules if each.facts.get("brought")):
            yield self._brought(timeline, events[0])
        errors = timeline.events(Did.ERROR)
        for events in by_line(each for each in errors if _moves_what_a_hook_brings(timeline, each)):
            severity, confidence = weight(timeline, events)
            yield self._part(timeline, events[0], severity, confidence)

    def _refused(self, timeline: Timeline, events: list[Event]) -> Finding:
        event = events[0]
        facts, how = event.facts, event.op.rpartition(".")[2]
        message = str(facts.get("refused"))
        does = f"refuses: {message}" if message else "does nothing"
        caught = was_handled(timeline, event)
        return self.finding_in_run(
            timeline,
            event,
            f"`{facts.get('model')}` is {facts.get('kind')}: `.{how}` {does}",
            severity=Severity.ERROR if message and not caught else Severity.WARNING,
            confidence=Confidence.HIGH,
            fixes=[without_the_move(timeline, event.site)],
            evidence={"attempts": str(len(events))},
        )

    def _away(self, timeline: Timeline, event: Event) -> Finding:
        parts, count = event.facts["away"], int(event.facts.get("parts", 0))
        module, device, now = parts[0]
        more = f" and {count - 1} more" if count > 1 else ""
        return self.finding_in_run(
            timeline,
            event,
            f"`{event.facts.get('class')}` was dispatched and is moved here: `{module}`{more} is "
            f"on {now} now, and its hook sends inputs to {device}",
            settings=on_one(timeline, event, str(event.facts.get("class")), str(now)),
            evidence={"parts": str(count)},
        )

    def _brought(self, timeline: Timeline, event: Event) -> Finding:
        module, device = event.facts["brought"][0]
        return self.finding_in_run(
            timeline,
            event,
            f"`{module}` is offloaded as a whole and is moved to {device} by hand: it stays there "
            "until its hook offloads it again, and takes the memory that offloading was to save",
            severity=Severity.NOTE,
        )

    def _part(
        self, timeline: Timeline, event: Event, severity: Severity, confidence: Confidence
    ) -> Finding:
        hook = next(each.hook for each in operands(timeline, event) if each.hook.get("called"))
        return self.finding_in_run(
            timeline,
            event,
            f"`{hook.get('parameter')}` is offloaded and cannot be moved: {hook.get('hook')} "
            f"brings it to {hook.get('to')} when {hook.get('called')} is called",
            severity=severity,
            confidence=confidence,
        )


def _moves_what_a_hook_brings(timeline: Timeline, event: Event) -> bool:
    """A move of a module ends in its tensors' moves, in torch's own code."""
    by = event.by.function if event.by else ""
    if not is_move(event) or not by.startswith("Module."):
        return False
    given = operands(timeline, event)
    return any(each.hook.get("called") and each.device == "meta" for each in given)
