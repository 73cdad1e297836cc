from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.offload._by_accelerate import ends_offloading, offloading_calls
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called, is_name, receiver, resolved_name
from tensortrail.rules.view import FunctionNode

_HOOKING = ("cpu_offload", "cpu_offload_with_hook")
_PLACE = ("cpu_offload", "disk_offload", "dispatch_model")
_UNDOES = re.compile(r"remove_\w*hook|detach_hook")


class OffloadedTwice(Rule):
    """Hooks that offload are put on modules that may still have those of an earlier call.

    ## What it does
    Reports `dispatch_model(model)`, `cpu_offload(model)` or `disk_offload(model)` after
    `cpu_offload(model)` or `disk_offload(model)` of the same model in a function, if nothing
    removes the hooks in between.

    Reported as a note: a method that puts accelerate hooks on the parts of its class
    (`cpu_offload`, `cpu_offload_with_hook`), if another method of the class puts hooks of another
    kind on them and the class never removes any.

    ## Why is this bad?
    The second call raises: the weights are on meta, and only the first hooks know their values. If
    a class has two such methods and a caller uses both, the same modules have both kinds of hooks:
    one moves weights that the other has loaded, which saves less memory or leaves the weights on
    two devices.

    ## What you may see
    ```
    ValueError: weight is on the meta device, we need a `value` to put in on cuda:0.
    ```

    ## Fix safety
    No fix is offered: `remove_hook_from_module(part, recurse=True)` belongs before the new hooks.

    ## References
    - huggingface/diffusers pull request 7448
    """

    code = "OFF123"
    name = "offloaded-twice"
    warns = False
    triggers = (
        ("cpu_offload", "cpu_offload_with_hook"),
        ("cpu_offload", "accelerate"),
        ("disk_offload", "accelerate"),
    )

    bad = (
        Bad(
            """\
from accelerate import cpu_offload, cpu_offload_with_hook

class Pipeline:
    def offload_each_weight(self, device):
        for part in (self.unet, self.vae):
            cpu_offload(part, device)

    def offload_whole_models(self, device):
        hook = None
        for part in (self.unet, self.vae):
            _, hook = cpu_offload_with_hook(part, device, prev_module_hook=hook)
        self.last = hook
""",
            lines=(11,),
            instead="""\
from accelerate import cpu_offload, cpu_offload_with_hook
from accelerate.hooks import remove_hook_from_module

class Pipeline:
    def offload_each_weight(self, device):
        for part in (self.unet, self.vae):
            remove_hook_from_module(part, recurse=True)
            cpu_offload(part, device)

    def offload_whole_models(self, device):
        hook = None
        for part in (self.unet, self.vae):
            remove_hook_from_module(part, recurse=True)
            _, hook = cpu_offload_with_hook(part, device, prev_module_hook=hook)
        self.last = hook
""",
        ),
        Bad(
            """\
from accelerate import cpu_offload, dispatch_model

def run(model, x, device_map):
    cpu_offload(model, execution_device="cuda:0")
    before = model(x)
    dispatch_model(model, device_map=device_map)
    return before - model(x)
""",
            lines=(6,),
        ),
    )
    good = (
        Good(
            """\
from accelerate import cpu_offload, dispatch_model
from accelerate.hooks import remove_hook_from_submodules

def run(model, other, x, device_map):
    cpu_offload(model, execution_device="cuda:0")
    before = model(x)
    dispatch_model(other, device_map=device_map)
    remove_hook_from_submodules(model)
    dispatch_model(model, device_map=device_map)
    return before - model(x)

def either(model, device_map):
    if device_map is None:
        cpu_offload(model)
    else:
        dispatch_model(model, device_map=device_map)
"""
        ),
        Good(
            """\
from accelerate import cpu_offload_with_hook

class Pipeline:
    def offload_whole_models(self, device):
        hook = None
        for part in (self.unet, self.vae):
            _, hook = cpu_offload_with_hook(part, device, prev_module_hook=hook)
        self.last = cpu_offload_with_hook(self.checker, device)
"""
        ),
        Good(
            """\
from accelerate import cpu_offload, cpu_offload_with_hook
from accelerate.hooks import remove_hook_from_module

class Pipeline:
    def offload_each_weight(self, device):
        cpu_offload(self.unet, device)

    def offload_whole_models(self, device):
        remove_hook_from_module(self.unet, recurse=True)
        self.last = cpu_offload_with_hook(self.unet, device)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        yield from self._in_functions(module)
        for cls in module.nodes(ast.ClassDef):
            ways = _ways(module, cls)
            kinds = {_kind(module, call) for call in ways.values()}
            if len(ways) < 2 or len(kinds) < 2 or _UNDOES.search(_code(module, cls)):
                continue
            function, call = next(e for e in ways.items() if _kind(module, e[1]) == _HOOKING[1])
            other = next(each for each in ways if each is not function)
            yield self.finding(
                module,
                call,
                f"`{other.name}` may have put hooks on the same modules, and nothing removes them "
                "before these are added",
                trail=[
                    (ways[other], f"the hooks of `{other.name}`"),
                    (_moved_before(module, call), "moved with those hooks still on"),
                    (call, "the new hooks are added on top"),
                ],
            )

    def _in_functions(self, module: Module) -> Iterator[Finding]:
        for first in offloading_calls(module):
            again = _offloaded_again(module, first)
            if again is not None:
                yield self.finding(
                    module,
                    again,
                    f"line {first.lineno} has offloaded this model: its weights are on meta, and "
                    "only its present hooks can load their values",
                    severity=Severity.ERROR,
                    trail=[(first, "offloaded here"), (again, "offloaded again")],
                )


def _offloaded_again(module: Module, first: ast.Call) -> ast.Call | None:
    """The next call of the function that places the same model, if its hooks stay until then."""
    if not first.args or not isinstance(first.args[0], ast.Name):
        return None
    model = first.args[0].id
    for call in module.later(first, ast.Call):
        bound = module.parent(call)
        rebinds = isinstance(bound, ast.Assign) and is_name(bound.targets[0], model)
        if call.args and is_name(call.args[0], model):
            if resolved_name(module, call) in _PLACE:
                return call if call is not first else None
            if ends_offloading(module, call) or rebinds:
                return None
        elif rebinds:
            return None
    return None


def _ways(module: Module, cls: ast.ClassDef) -> dict[FunctionNode, ast.Call]:
    """The methods that put hooks on modules, with the first call that does."""
    found: dict[FunctionNode, ast.Call] = {}
    for call in module.calls(*_HOOKING, inside=cls):
        function = module.function_of(call)
        if function is not None and module.class_of(call) is cls and call.args:
            found.setdefault(function, call)
    return found


def _kind(module: Module, call: ast.Call) -> str:
    return module.qualified(call.func).rpartition(".")[2]


def _moved_before(module: Module, call: ast.Call) -> ast.Call | None:
    """`self.to("cpu")` ahead of the new hooks, which weights on meta cannot follow."""
    for each in module.earlier(call, ast.Call):
        owner = receiver(each)
        if called(each) == "to" and isinstance(owner, ast.Name) and owner.id == "self":
            return each
    return None


def _code(module: Module, cls: ast.ClassDef) -> str:
    """The names that the class uses, without its words."""
    names = [each.attr for each in module.nodes(ast.Attribute, cls)]
    return " ".join(names + [module.qualified(each) for each in module.nodes(ast.Name, cls)])
