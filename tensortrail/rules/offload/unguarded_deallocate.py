from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from tensortrail.findings import Confidence, Finding, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule, Timeline
from tensortrail.rules.offload import _back, _moved
from tensortrail.rules.offload._sent_away import (
    deallocated,
    guarded_by_setting,
    sent_back_anyway,
    sent_to_cpu,
    setting_beside,
    trail_to,
)
from tensortrail.rules.offload._settings import (
    advice,
    is_about_offload,
    is_plain_setting,
)
from tensortrail.rules.shared.lines import by_line
from tensortrail.rules.shared.objects import receiver


class UnguardedDeallocate(Rule):
    """The caller's module is moved, whatever the offload setting says.

    ## What it does
    In code, reports:

    - `deallocate_module(x)`, and `x.cpu()` or `x.to("cpu" | "meta")` of a module that the caller
      owns, where the class or function has (or forwards) an offload setting and no test of it
      guards the move;
    - the same under a reversed guard;
    - a submodule that is sent to `settings.device`, although only offloading is a reason to.

    In a recorded run, reports parameters that a call of Torch-TensorRT moved from an accelerator to
    the CPU, although the setting says not to.

    ## Why is this bad?
    The user passed `offload_module_to_cpu=False` and still finds the model on the CPU. The next
    call of a part outside the compiled region, such as an embedding, mixes CPU weights with CUDA
    ids. `ExportedProgram.module()` shares its parameters with the model it was exported from:
    moving it moves the user's model.

    ## What you may see
    ```
    RuntimeError: Expected all tensors to be on the same device, but got index is on cuda:0
    ```

    ## Fix safety
    Unsafe: code after it may rely on the move. The guard is the one used elsewhere in the class, or
    reads the setting where it is kept. In a run: the module is moved back after the call.

    ## References
    - pytorch/TensorRT issue 3728, pull requests 3736, 4629 and 4647
    """

    code = "OFF101"
    name = "unguarded-deallocate"
    since = "0.2.0"
    severity = Severity.ERROR
    passes_clear = False
    triggers = (
        "deallocate_module",
        (".cpu(", "offload"),
        (".to(", "offload"),
    )

    bad = (
        Bad(
            """\
class Compiled:
    def __init__(self, model: torch.nn.Module, **settings):
        self.model = model
        self.settings = settings

    def compile(self):
        self.engine = build(self.model)
        if self.settings.get("offload_module_to_cpu", False):
            deallocate_module(self.model)

    def refit(self):
        self.engine = refit(self.engine, self.model)
        deallocate_module(self.model)
""",
            lines=(13,),
            fixed="""\
class Compiled:
    def __init__(self, model: torch.nn.Module, **settings):
        self.model = model
        self.settings = settings

    def compile(self):
        self.engine = build(self.model)
        if self.settings.get("offload_module_to_cpu", False):
            deallocate_module(self.model)

    def refit(self):
        self.engine = refit(self.engine, self.model)
        if self.settings.get("offload_module_to_cpu", False):
            deallocate_module(self.model)
""",
        ),
        Bad(
            """\
def compile(exported, offload_module_to_cpu: bool = False):
    deallocate_module(exported.module())
    return convert(exported)
""",
            lines=(2,),
            fixed="""\
def compile(exported, offload_module_to_cpu: bool = False):
    if offload_module_to_cpu:
        deallocate_module(exported.module())
    return convert(exported)
""",
        ),
        Bad(
            """\
def compile(model, offload_module_to_cpu=False):
    if not offload_module_to_cpu:
        deallocate_module(model)
""",
            lines=(3,),
        ),
        Bad(
            """\
import torch

def export(model: torch.nn.Module, path, cpu_offload: bool = False):
    graph = trace(model)
    model.to("cpu")
    return graph
""",
            lines=(5,),
            fixed="""\
import torch

def export(model: torch.nn.Module, path, cpu_offload: bool = False):
    graph = trace(model)
    if cpu_offload:
        model.to("cpu")
    return graph
""",
        ),
        Bad(
            """\
import torch

class Settings:
    device: torch.device
    offload_module_to_cpu: bool = False

def convert(gm: torch.fx.GraphModule, settings: Settings):
    for name, _ in gm.named_children():
        submodule = getattr(gm, name)
        submodule.to(settings.device)
""",
            lines=(10,),
            fixed="""\
import torch

class Settings:
    device: torch.device
    offload_module_to_cpu: bool = False

def convert(gm: torch.fx.GraphModule, settings: Settings):
    for name, _ in gm.named_children():
        submodule = getattr(gm, name)
        if settings.offload_module_to_cpu:
            submodule.to(settings.device)
""",
        ),
    )
    good = (
        Good(
            """\
def compile(model, offload_module_to_cpu=False):
    if offload_module_to_cpu:
        deallocate_module(model)
"""
        ),
        Good(
            """\
def compile(model, offload_module_to_cpu=False):
    if not offload_module_to_cpu:
        return model
    deallocate_module(model)
"""
        ),
        Good("def run(model):\n    deallocate_module(model)\n"),
        Good(
            """\
import torch

def measure(offload_module_to_cpu: bool = False):
    probe = torch.nn.Linear(2, 2)
    deallocate_module(probe)
    return offload_module_to_cpu
"""
        ),
        Good(
            """\
import torch

class Wrapper(torch.nn.Module):
    def __init__(self, inner: torch.nn.Module, offload_to_cpu: bool):
        self.inner = inner
        self.offload_to_cpu = offload_to_cpu

    def cpu(self):
        self.inner.cpu()
        return self
"""
        ),
        Good(
            """\
import torch

def probe(cpu_offload: bool):
    model = torch.nn.Linear(2, 2)
    model.to("cpu")
    return model
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for call in module.nodes(ast.Call):
            subject = deallocated(module, call) or sent_to_cpu(module, call)
            if subject is not None:
                yield from self._unguarded(module, call, subject)
            else:
                yield from self._sent_back(module, call)

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for event, *others in by_line(_moved.against_setting(timeline)):
            told = self.finding_in_run(
                timeline,
                event,
                _moved.against(timeline, event),
                fixes=[_back.brought_back(timeline, event)],
                settings=_moved.setting(timeline, event),
                evidence={"calls": str(1 + len(others))},
            )
            yield replace(told, trail=(*told.trail, *_moved.in_library(timeline, event)))

    def _unguarded(self, module: Module, call: ast.Call, subject: ast.expr) -> Iterator[Finding]:
        settings = module.offload_settings(call)
        if not settings:
            return
        guards = [each for each in module.guards_of(call) if is_about_offload(each)]
        shown = module.text(subject)
        if not guards:
            name = settings[0].name
            yield self.finding(
                module,
                call,
                f"`{shown}` is moved to the CPU here whatever `{name}` says",
                severity=_weight(module, call),
                trail=trail_to(module, subject, settings),
                fixes=[guarded_by_setting(module, call, subject, settings)],
                settings=advice(name),
            )
        elif guards[0].exact and not guards[0].holds and is_plain_setting(guards[0].test):
            test = module.text(guards[0].test)
            yield self.finding(
                module,
                call,
                f"`{shown}` is moved to the CPU only when `{test}` is off: the guard is reversed",
                trail=[(guards[0].test, "the move depends on this being false")],
                settings=advice(settings[0].name),
            )

    def _sent_back(self, module: Module, call: ast.Call) -> Iterator[Finding]:
        back = sent_back_anyway(module, call)
        if back is not None:
            holder, setting = back.value, setting_beside(module, back)
            statement, condition = module.statement_of(call), f"{module.text(holder)}.{setting}"
            yield self.finding(
                module,
                call,
                f"`{module.text(receiver(call) or call)}` is sent to `{module.text(back)}` even "
                f"when `{setting}` is off and it was never moved away",
                severity=Severity.WARNING,
                confidence=Confidence.MEDIUM,
                trail=[(back, "only offloading is a reason for this move")],
                fixes=[module.wrap_in_if(statement, condition, Safety.UNSAFE)],
            )


def _weight(module: Module, call: ast.Call) -> Severity:
    """A move may have another reason than offloading; `deallocate_module` has none."""
    return Severity.WARNING if deallocated(module, call) is None else Severity.ERROR
