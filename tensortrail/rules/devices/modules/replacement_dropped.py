from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shared.functions import called_here, matched, own_returns, parameter_names
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called, is_one_of, method_called
from tensortrail.rules.shared.objects import given as given_to
from tensortrail.rules.view import FunctionNode

_OVER = ("named_modules", "modules", "named_children", "children")
_PUTS = ("setattr", "add_module", "register_module", "set_submodule")


class ReplacementDropped(Rule):
    """A loop over modules drops the result of a function that may return a new module.

    ## What it does
    Reports `convert(module, ...)` as a statement of its own in a loop over `model.named_modules()`,
    if the function is in the same file and

    - returns its module on one path, and the result of another call on another
      (`return handler(module, config)`);
    - puts nothing into the model itself.

    ## Why is this bad?
    The model keeps the old module, and no error is raised: the new one, converted or moved, is
    lost. It works for modules that are changed in place.

    ## Fix safety
    No fix is offered: the result should be stored in the parent, under the name of the module.

    ## References
    - pytorch/ao: `quantize_` with settings by name dropped modules that were swapped
    """

    code = "DEV566"
    name = "replacement-dropped"
    confidence = Confidence.MEDIUM
    triggers = ("modules(", "children(")

    bad = (
        Bad(
            """\
def convert(module, name, config):
    for pattern, part in config.items():
        if name.startswith(pattern):
            return HANDLERS[part](module, part)
    return module

def quantize(model, config, device):
    for name, module in model.named_modules():
        convert(module, name, config)
        module.to(device)
""",
            lines=(9,),
            instead="""\
def convert(module, name, config):
    for pattern, part in config.items():
        if name.startswith(pattern):
            return HANDLERS[part](module, part)
    return module

def quantize(model, config, device):
    for name, module in dict(model.named_modules()).items():
        new = convert(module, name, config).to(device)
        parent, _, last = name.rpartition(".")
        setattr(model.get_submodule(parent), last, new)
""",
        ),
    )
    good = (
        Good(
            """\
def frozen(module):
    for weight in module.parameters():
        weight.requires_grad = False
    return module

def counted(module, kind):
    if kind:
        return len(module)
    return kind(module)

def swapped(parent, name, module):
    setattr(parent, name, Wrapper(module))
    if parent is module:
        return module
    return Wrapper(module)

class Plan:
    def apply(self, module):
        module.register_forward_hook(self.moved)
        return module

def planned(module, plan: Plan):
    if isinstance(plan, Plan):
        return plan.apply(module)
    return module

def run(model, plan):
    for name, module in model.named_modules():
        frozen(module)
        planned(module, plan)
        swapped(model, name, module)
        module.count = counted(module, name)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for loop in module.nodes(ast.For):
            if not _goes_through_modules(loop):
                continue
            bound = {each.id for each in ast.walk(loop.target) if isinstance(each, ast.Name)}
            for statement in module.nodes(ast.Expr, loop):
                call = statement.value
                if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
                    continue
                made = _made_of(module, call, bound)
                if made is not None:
                    yield self.finding(
                        module,
                        call,
                        f"`{called(call)}` may return another module than it was given, and the "
                        "result is dropped: the model keeps the old one",
                        trail=[
                            (made, "returns the result of another call"),
                            (call, "dropped here"),
                        ],
                    )


def _goes_through_modules(loop: ast.For) -> bool:
    """`for ... in model.named_modules()`, or in a list of them."""
    return any(isinstance(e, ast.Call) and called(e) in _OVER for e in ast.walk(loop.iter))


def _made_of(module: Module, call: ast.Call, bound: set[str]) -> ast.Return | None:
    """The `return` of the function that may give another module than that of the loop."""
    function = called_here(module, call)
    if function is None or any(True for _ in module.calls(*_PUTS, inside=function)):
        return None
    given = {name for name, each in matched(function, call) if is_one_of(each, bound)}
    return _answer(module, function, given)


def _answer(module: Module, function: FunctionNode, given: set[str]) -> ast.Return | None:
    own = own_returns(module, function)
    same = any(each.value is not None and is_one_of(each.value, given) for each in own)
    if not same or any(each.value is None for each in own):
        return None
    made = (each for each in own if isinstance(each.value, ast.Call) and _takes(each.value, given))
    return next((each for each in made if not _gives_back(module, each.value)), None)


def _gives_back(module: Module, call: ast.expr | None) -> bool:
    """`plan.apply(module)`, where the method of the class of `plan` returns what it was given."""
    method = method_called(module, call) if isinstance(call, ast.Call) else ""
    return bool(method) and module.about(method, _returns_an_argument) is True


def _returns_an_argument(module: Module, function: ast.AST) -> bool:
    """On every path, as it is."""
    if not isinstance(function, ast.FunctionDef):
        return False
    own = own_returns(module, function)
    names = parameter_names(function)
    bound = {e.id for e in module.nodes(ast.Name, function) if isinstance(e.ctx, ast.Store)}
    return bool(own) and all(
        each.value is not None and is_one_of(each.value, names - bound) for each in own
    )


def _takes(call: ast.Call, names: set[str]) -> bool:
    return any(is_one_of(each, names) for each in given_to(call))
