from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.patterns import pattern
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.offload._deleted_arguments import (
    collects_later,
    is_meant_to_go,
    kept_arguments,
    only_frees,
)
from tensortrail.rules.offload._freed import (
    also_named,
    freed_by,
    offload_next,
    only_skips,
    used_after,
)
from tensortrail.rules.offload._left_over import left_over
from tensortrail.rules.shared.imports import imported_packages
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called, receiver, within

_FRESH = ("module", "deepcopy", "state_dict")
_ACTS = pattern(r"hook|offload|onload|dealloc|dispatch|^(to|cpu|cuda|to_empty)$")


class WrongObjectFreed(Rule):
    """The object that is offloaded or deleted does not hold the memory.

    ## What it does
    Reports:

    - the offload of a fresh result (`deallocate_module(ep.module())`, `copy.deepcopy(m).cpu()`),
      while a variable holds another result of the same call that is used afterwards;
    - a hook or move after a loop whose body only skips elements (`continue`), where it was meant
      to be in the body: it acts on the last element only;
    - `x.to(device)` in a loop that never binds `x`, where an earlier loop does;
    - `m.to(device)` directly before the offload of another module in the same forward hook;
    - a function that only deletes its parameter and calls `gc.collect()` or `empty_cache()`. The
      caller still has the object.

    Reported as a note: the same `del` in a function that does more. In a file that does not import
    torch, it is reported only if the rule is selected (`--select OFF110`).

    ## Why is this bad?
    The next allocation runs out of memory, because what was to be freed is still in use. If the
    fresh result shares its parameters with the variable, that one is left on the wrong device
    instead.

    ## Fix safety
    No fix is offered: which object to free, and when, depends on who uses it later.

    ## References
    - pytorch/TensorRT #3868, #4063, #4088: `exported_program.module()` was offloaded, not the
      lowered module
    - huggingface/accelerate #1315: a module was brought to the GPU before the last one had left
    """

    code = "OFF110"
    name = "wrong-object-freed"
    since = "0.2.0"
    severity = Severity.WARNING
    notes = False
    triggers = (
        "dealloc", ".module()", "deepcopy", ("del ", "collect("), ("del ", "cache"),
        ("continue", "hook"), ("continue", "load"), (".to(", ".offload("), (".to(", "for "),
        (".cpu(", "for "), (".cuda(", "for "),
    )  # fmt: skip

    bad = (
        Bad(
            """\
def compile(exported, settings, lower, build):
    gm = exported.module()
    gm = lower(gm)
    if settings.offload_module_to_cpu:
        deallocate_module(exported.module())
    return build(gm)
""",
            lines=(5,),
            instead="""\
def compile(exported, settings, lower, build):
    gm = lower(exported.module())
    if settings.offload_module_to_cpu:
        deallocate_module(gm)
        deallocate_module(exported.module())
    return build(gm)
""",
        ),
        Bad(
            """\
import gc
import torch

def release(module: torch.nn.Module):
    module.to("cpu")
    del module
    torch.cuda.empty_cache()
    gc.collect()
""",
            lines=(6,),
        ),
        Bad(
            """\
def unhook(pipeline, remove_hook_from_module):
    for _, part in pipeline.components.items():
        if not hasattr(part, "_hf_hook"):
            continue
    remove_hook_from_module(part, recurse=True)
""",
            lines=(5,),
        ),
        Bad(
            """\
class Hook:
    def pre_forward(self, module, *args):
        module.to(self.execution_device)
        if self.previous is not None:
            self.previous.offload()
        return args
""",
            lines=(3,),
        ),
        Bad(
            """\
def quantize(linears, norms, convert, device):
    for linear in linears:
        quantized = convert(linear.to(device))
        linear.to("cpu")
    for norm in norms:
        replaced = convert(norm.to(device))
        norm.replace_by(replaced)
        quantized.to("cpu")
""",
            lines=(8,),
            instead="""\
def quantize(linears, norms, convert, device):
    for linear in linears:
        quantized = convert(linear.to(device))
        linear.to("cpu")
    for norm in norms:
        replaced = convert(norm.to(device))
        norm.replace_by(replaced)
        replaced.to("cpu")
""",
        ),
        Bad(
            """\
import gc
import torch

def free(model):
    del model
    gc.collect()
    torch.cuda.empty_cache()
""",
            lines=(5,),
        ),
    )
    good = (
        Good(
            """\
def quantize(linears, norms, convert, device):
    model = convert(norms)
    for linear in linears:
        quantized = convert(linear.to(device))
        quantized.to("cpu")
    for norm in norms:
        norm.replace_by(convert(norm.to(device)))
        model.to("cpu")
"""
        ),
        Good(
            """\
import gc

def fit(make):
    model = make()
    model.fit()
    del model
    gc.collect()
"""
        ),
        Good(
            """\
def unhook(pipeline, remove_hook_from_module):
    for _, part in pipeline.components.items():
        if not hasattr(part, "_hf_hook"):
            continue
        remove_hook_from_module(part, recurse=True)
"""
        ),
        Good(
            """\
class Hook:
    def pre_forward(self, module, *args):
        if self.previous is not None:
            self.previous.offload()
        module.to(self.execution_device)
        return args
"""
        ),
        Good(
            """\
import copy

def kept(model):
    return copy.deepcopy(model).cpu()
"""
        ),
        Good(
            """import gc

def before_batch(state, model):
    del model  # unused
    if state.step % 100 == 0:
        gc.collect()

def frames(container):
    found = list(container.decode())
    container.close()
    del container
    gc.collect()
    return found
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        yield from self._fresh(module)
        yield from self._deleted(module)
        yield from self._after_the_loop(module)
        yield from self._too_late(module)
        for call, name, loop in left_over(module):
            yield self.finding(
                module,
                call,
                f"`{name.id}` is the last object of the loop on line {loop.lineno}: this loop "
                "never assigns it, so it moves the same object each time",
                trail=[(loop, f"`{name.id}` is bound here")],
            )

    def _fresh(self, module: Module) -> Iterator[Finding]:
        for freed in module.calls(*_FRESH):
            call = module.parent(freed)
            if isinstance(call, ast.Attribute):
                call = module.parent(call)
            if not isinstance(call, ast.Call) or freed_by(module, call) is not freed:
                continue
            named = also_named(module, call, freed)
            use = used_after(module, call, named) if named else None
            if use is not None:
                yield self.finding(
                    module,
                    call,
                    f"`{module.text(freed)}` is a new object each time: this does not offload "
                    f"`{named}`, which line {use.lineno} still uses, or takes away parameters that "
                    "both share",
                    trail=[(use, f"`{named}` is used after it")],
                )

    def _deleted(self, module: Module) -> Iterator[Finding]:
        for delete in module.nodes(ast.Delete):
            function = module.function_of(delete)
            names = kept_arguments(module, function) if function is not None else frozenset()
            if not all(isinstance(each, ast.Name) and each.id in names for each in delete.targets):
                continue  # what was made here is freed along with it
            freed = [
                each.id
                for each in delete.targets
                if isinstance(each, ast.Name) and is_meant_to_go(module, delete, each)
            ]
            if freed and collects_later(module, delete):
                yield self.finding(
                    module,
                    delete,
                    f"`del {', '.join(freed)}` only deletes a name of this function: the caller "
                    "still has the object, so its memory is not freed",
                    severity=None if only_frees(module, delete) else Severity.NOTE,
                    told="torch" in imported_packages(module),
                )

    def _after_the_loop(self, module: Module) -> Iterator[Finding]:
        for loop in module.nodes(ast.For):
            if not only_skips(loop):
                continue
            names = {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}
            for call in module.later(loop, ast.Call):
                given = [*call.args, *([owner] if (owner := receiver(call)) else [])]
                acted = [each for each in given if isinstance(each, ast.Name) and each.id in names]
                if acted and _ACTS.search(called(call)) and not within(call, loop, module):
                    yield self.finding(
                        module,
                        call,
                        f"the call is after the loop, so it acts only on the last `{acted[0].id}`: "
                        "the loop body only skips elements",
                        severity=Severity.ERROR,
                        trail=[(loop, "the loop")],
                    )
                    break

    def _too_late(self, module: Module) -> Iterator[Finding]:
        for statement in module.nodes(ast.Expr):
            call = statement.value
            function = module.function_of(statement)
            if not isinstance(call, ast.Call) or called(call) != "to" or function is None:
                continue
            owner = receiver(call)
            if not isinstance(owner, ast.Name) or "forward" not in function.name:
                continue
            other = offload_next(module, statement)
            if other is not None and freed_by(module, call) is None:
                yield self.finding(
                    module,
                    call,
                    f"`{owner.id}` is loaded before `{module.text(other)}` frees memory: both need "
                    "memory at the same time",
                    confidence=Confidence.MEDIUM,
                    trail=[(other, "this should come first")],
                )
