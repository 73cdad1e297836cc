from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Fix, Safety, Severity
from tensortrail.patterns import pattern
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.offload._recursion import dropped_options
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import (
    all_given,
    called,
    is_true,
    keyword,
    name_of,
    resolved_name,
    unpacks,
)

_ATTACHES = pattern(r"^(attach_\w*hooks?\w*|add_hook_to_module|(cpu|disk)_offload|dispatch_model)$")
_REMOVES = pattern(r"^remove_(hooks?_from_(sub)?modules?|hook_from_\w+)$")
_PLACES_AGAIN = pattern(
    r"dispatch|attach|add_hook|offload|^(to|cuda|cpu|empty_cache|save_pretrained)$|place|restore"
)


class HookLost(Rule):
    """A module loses the hook that loads its weights, or never gets one.

    ## What it does
    Reports, in code about offloading:

    - `add_hook_to_module(m, h)` without `append=True` after another hook was attached to `m`;
    - a function that attaches hooks to children by calling itself, and does not pass on one of its
      own options;
    - the removal of all hooks because the model is dispatched (`if hf_device_map:`), with no
      dispatch, move or save after it;
    - `register_parameter` on a module, in a file that registers parameters elsewhere with
      `register_offload_parameter`.

    ## Why is this bad?
    The module computes with placeholders on meta, or with weights that stayed on the CPU: at best
    an error about two devices, at worst undefined values. accelerate keeps one hook per module, so
    a second one replaces the first.

    ## Fix safety
    `append=True` is unsafe: both hooks then run, in the order in which they were added.

    ## References
    - huggingface/accelerate documentation of `add_hook_to_module`
    - huggingface/accelerate #768: the hook of the root replaced the one that offloads
    """

    code = "OFF109"
    name = "hook-lost"
    since = "0.2.0"
    severity = Severity.ERROR
    triggers = (
        "add_hook_to_module", "remove_hook", "register_offload_parameter",
        ("children", "hook"), ("children", "load"), ("children", "dispatch"), ("children", "align"),
    )  # fmt: skip

    bad = (
        Bad(
            """\
from accelerate.hooks import AlignDevicesHook, add_hook_to_module, attach_align_device_hook

def offload(model, device):
    attach_align_device_hook(model, execution_device=device, offload=True)
    add_hook_to_module(model, AlignDevicesHook(io_same_device=True))
    return model
""",
            lines=(5,),
            fixed="""\
from accelerate.hooks import AlignDevicesHook, add_hook_to_module, attach_align_device_hook

def offload(model, device):
    attach_align_device_hook(model, execution_device=device, offload=True)
    add_hook_to_module(model, AlignDevicesHook(io_same_device=True), append=True)
    return model
""",
        ),
        Bad(
            """\
def attach_hooks(module, device, skip=None):
    add_hook_to_module(module, DeviceHook(device, skip=skip))
    for child in module.children():
        attach_hooks(child, device)
""",
            lines=(4,),
            fixed="""\
def attach_hooks(module, device, skip=None):
    add_hook_to_module(module, DeviceHook(device, skip=skip))
    for child in module.children():
        attach_hooks(child, device, skip=skip)
""",
        ),
        Bad(
            """\
class Quantized:
    def finish(self):
        self.pack()
        if self.model.hf_device_map:
            remove_hook_from_submodules(self.model)
        self.done = True
""",
            lines=(5,),
        ),
        Bad(
            """\
from compressed_tensors.utils import register_offload_parameter

def add_scale(module, scale):
    register_offload_parameter(module, "scale", scale)

def add_cache_scale(layer, scale):
    layer.register_parameter("k_scale", scale)
""",
            lines=(7,),
        ),
    )
    good = (
        Good(
            """\
def offload(model, device):
    add_hook_to_module(model, AlignDevicesHook(io_same_device=True), append=True)
    attach_align_device_hook(model, execution_device=device, offload=True)
"""
        ),
        Good(
            """\
def load(model, config):
    if model.hf_device_map:
        remove_hook_from_submodules(model)
    return wrapped(model, config)
"""
        ),
        Good(
            """\
def again(model, hook, other):
    add_hook_to_module(model, hook)
    remove_hook_from_module(model)
    add_hook_to_module(model, other)
"""
        ),
        Good(
            """\
def attach_hooks(module, device, prefix=""):
    add_hook_to_module(module, DeviceHook(device, prefix))
    for name, child in module.named_children():
        attach_hooks(child, device, prefix=f"{prefix}.{name}")
"""
        ),
        Good(
            """\
class Quantized:
    def finish(self):
        if self.model.hf_device_map:
            remove_hook_from_submodules(self.model)
            self.model = dispatch_model(self.model, self.model.hf_device_map)
"""
        ),
        Good(
            """\
def add_scale(module, scale):
    if is_offloaded(module):
        register_offload_parameter(module, "scale", scale)
    else:
        module.register_parameter("scale", scale)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        yield from self._replaced(module)
        yield from self._not_passed_on(module)
        yield from self._removed(module)
        yield from self._registered(module)

    def _replaced(self, module: Module) -> Iterator[Finding]:
        for call in module.calls("add_hook_to_module"):
            append = keyword(call, "append") or (call.args[2] if len(call.args) > 2 else None)
            if append is not None or unpacks(call) or not call.args:
                continue
            if any(guard.mentions("hook") for guard in module.guards_of(call)):
                continue
            before = _attached_before(module, call)
            if before is not None:
                yield self.finding(
                    module,
                    call,
                    f"this hook replaces the one that `{called(before)}` gave "
                    f"`{module.text(call.args[0])}`: `append=True` is missing",
                    trail=[(before, "the first hook is attached here")],
                    fixes=[_with_argument(module, call, "append=True")],
                )

    def _not_passed_on(self, module: Module) -> Iterator[Finding]:
        for call, names in dropped_options(module):
            told = " and ".join(f"`{name}`" for name in names)
            yield self.finding(
                module,
                call,
                f"the recursive call does not pass on {told}: the calls below the first level use "
                "the default",
                severity=Severity.WARNING,
                fixes=[_with_argument(module, call, ", ".join(f"{n}={n}" for n in names))],
            )

    def _removed(self, module: Module) -> Iterator[Finding]:
        for call in module.nodes(ast.Call):
            if not _REMOVES.match(resolved_name(module, call)) or not call.args:
                continue
            whole = "submodules" in resolved_name(module, call) or is_true(keyword(call, "recurse"))
            guards = [each for each in module.guards_of(call) if each.holds]
            if not whole or not any(each.mentions("device_map") for each in guards):
                continue
            later = list(module.later(call, ast.Call))
            if not _is_placed_again(module, later) and not _goes_on(module, call, later):
                yield self.finding(
                    module,
                    call,
                    f"the hooks of `{module.text(call.args[0])}` are removed although it is "
                    "spread over devices, and it is not dispatched again: its parts stay where "
                    "they are, and nothing moves the inputs between them",
                    severity=Severity.WARNING,
                )

    def _registered(self, module: Module) -> Iterator[Finding]:
        if not any(module.calls("register_offload_parameter")):
            return
        for call in module.calls("register_parameter"):
            subject = call.func.value if isinstance(call.func, ast.Attribute) else None
            if not isinstance(subject, ast.Name) or subject.id in ("self", "cls"):
                continue
            function = module.function_of(call)
            if function is None or "offload" in function.name:
                continue
            if any(guard.mentions("offload") for guard in module.guards_of(call)):
                continue
            yield self.finding(
                module,
                call,
                f"`{subject.id}` may be offloaded: `register_parameter` does not tell its hook of "
                "the new parameter, `register_offload_parameter` does",
                severity=Severity.WARNING,
                confidence=Confidence.MEDIUM,
            )


def _is_placed_again(module: Module, later: list[ast.Call]) -> bool:
    return any(_PLACES_AGAIN.search(resolved_name(module, each)) for each in later)


def _goes_on(module: Module, call: ast.Call, later: list[ast.Call]) -> bool:
    """The model is handed to somebody else, who may dispatch it."""
    subject = module.text(call.args[0])
    given = (given for each in later for given in (*each.args, *(k.value for k in each.keywords)))
    returned = (each.value for each in module.later(call, ast.Return) if each.value is not None)
    return any(module.text(each) == subject for each in (*given, *returned))


def _attached_before(module: Module, call: ast.Call) -> ast.Call | None:
    """The nearest call before it that put a hook on the same module."""
    subject = name_of(module, call.args[0])
    for before in module.earlier(call, ast.Call):
        if before.args and name_of(module, before.args[0]) == subject:
            if _REMOVES.match(resolved_name(module, before)):
                return None
            if _ATTACHES.match(resolved_name(module, before)) and _runs_with(module, before, call):
                return before
    return None


def _runs_with(module: Module, before: ast.Call, call: ast.Call) -> bool:
    """No condition lets the first one run without the second or instead of it."""
    around = list(module.ancestors(call))
    return all(up in around for up in module.ancestors(before) if isinstance(up, (ast.If, ast.For)))


def _with_argument(module: Module, call: ast.Call, argument: str) -> Fix | None:
    last = all_given(call)[-1]
    edit = module.insert_after(last, f", {argument}")
    return module.fix(f"pass `{argument}`", Safety.UNSAFE, edit)
