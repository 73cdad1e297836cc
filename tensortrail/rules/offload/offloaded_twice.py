from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.findings import Finding
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called, receiver
from tensortrail.rules.view import FunctionNode

_HOOKING = ("cpu_offload", "cpu_offload_with_hook")
_UNDOES = re.compile(r"remove_\w*hook|detach_hook")


class OffloadedTwice(Rule):
    """A class has several ways to offload its parts, and none removes the hooks of another.

    ## What it does
    Reports a method that puts accelerate hooks on the parts of its class (`cpu_offload`,
    `cpu_offload_with_hook`), if another method of the class puts hooks of another kind on them and
    the class never removes any.

    ## Why is this bad?
    Calling both methods leaves both kinds of hooks on the same modules. The hooks of the submodules
    go on moving weights that the outer hook has loaded: less memory is saved than expected, or
    weights are on two devices.

    ## Fix safety
    No fix is offered: `remove_hook_from_module(part, recurse=True)` belongs before the new hooks.

    ## References
    - huggingface/diffusers pull request 7448
    """

    code = "OFF123"
    name = "offloaded-twice"
    warns = False
    triggers = (("cpu_offload", "cpu_offload_with_hook"),)

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
    )
    good = (
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
                    (call, "these come on top"),
                ],
            )


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
