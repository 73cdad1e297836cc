from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called, is_before, receiver
from tensortrail.rules.view import FunctionNode
from tensortrail.rules.words import Kind

_SAME_MEMORY = ("detach", "numpy", "view", "flatten", "ravel", "squeeze")
_LISTS = ("parameters",)
_OTHER_STEPS = ("torch.optim.lr_scheduler.", "torch.profiler.", "torch.autograd.profiler.")


class OldValuesNotCopied(Rule):
    """A weight is kept without a copy, to be compared with itself after training.

    ## What it does
    Reports `before = model.fc.weight.data`, `.detach()`, `.detach().numpy()`,
    `list(model.parameters())[0]` or the parameter itself, if an optimizer makes steps after it in
    the same function and `before` is then used together with the same weight, read again.

    ## Why is this bad?
    Both are the same memory, which the optimizer changes in place: the difference is zero, and a
    model that learns seems not to.

    ## Fix safety
    Unsafe: `.clone()` takes the memory of the weight.

    ## References
    - pytorch documentation of `torch.Tensor.numpy`: "shares the same underlying storage"
    - pytorch/pytorch#97586
    """

    code = "STO226"
    name = "old-values-not-copied"
    severity = Severity.ERROR
    proven = False
    triggers = ((".step(", ".data"), (".step(", "detach("), (".step(", "parameters("),
                (".step(", ".weight"))  # fmt: skip

    bad = (
        Bad(
            """\
import torch

def learns(model, optimizer, x):
    before = model.fc.weight.data
    model(x).sum().backward()
    optimizer.step()
    after = model.fc.weight.data
    return not torch.equal(before, after)
""",
            lines=(4,),
            fixed="""\
import torch

def learns(model, optimizer, x):
    before = model.fc.weight.data.clone()
    model(x).sum().backward()
    optimizer.step()
    after = model.fc.weight.data
    return not torch.equal(before, after)
""",
        ),
        Bad(
            """\
import torch

def learns(model, optimizer, x):
    a = list(model.parameters())[0]
    model(x).sum().backward()
    optimizer.step()
    b = list(model.parameters())[0]
    return not torch.equal(a.data, b.data)
""",
            lines=(4,),
            fixed="""\
import torch

def learns(model, optimizer, x):
    a = list(model.parameters())[0].clone()
    model(x).sum().backward()
    optimizer.step()
    b = list(model.parameters())[0]
    return not torch.equal(a.data, b.data)
""",
        ),
        Bad(
            """\
import torch

model = torch.nn.Linear(4, 1)
start = model.weight.detach().numpy()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
print(abs(model.weight.detach().numpy() - start).max())
""",
            lines=(4,),
            fixed="""\
import torch

model = torch.nn.Linear(4, 1)
start = model.weight.detach().numpy().copy()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
print(abs(model.weight.detach().numpy() - start).max())
""",
        ),
        Bad(
            """\
import torch

def learns(model, schedule, x):
    before = model.fc.weight.data
    schedule.zero_grad()
    model(x).sum().backward()
    schedule.step()
    return not torch.equal(before, model.fc.weight.data)
""",
            lines=(4,),
            fixed="""\
import torch

def learns(model, schedule, x):
    before = model.fc.weight.data.clone()
    schedule.zero_grad()
    model(x).sum().backward()
    schedule.step()
    return not torch.equal(before, model.fc.weight.data)
""",
        ),
    )
    good = (
        Good(
            """\
import torch

def learns(model, optimizer, x):
    before = model.fc.weight.data.clone()
    model(x).sum().backward()
    optimizer.step()
    after = model.fc.weight.data
    return not torch.equal(before, after)
"""
        ),
        Good(
            """\
import torch

def ratio(model, optimizer, x):
    weight = model.fc.weight.data
    first = weight.norm()
    model(x).sum().backward()
    optimizer.step()
    return first / weight.norm(), torch.equal(weight, model.other.weight.data)
"""
        ),
        Good(
            """\
import torch

def learns(model, optimizer, x):
    before = model.fc.weight.data
    shown = before.clone()
    model(x).sum().backward()
    optimizer.step()
    return torch.equal(shown, before)
"""
        ),
        Good(
            """\
import torch
from torch.optim.lr_scheduler import StepLR

def unchanged(model, optimizer, x, world, action):
    first = model.fc.weight.data
    rates = StepLR(optimizer, 1)
    seen = world.step(action)
    rates.step()
    return torch.equal(first, model.fc.weight.data), seen
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for kept in module.nodes(ast.Assign):
            target = kept.targets[0]
            weight = _weight(module, kept.value) if isinstance(target, ast.Name) else ""
            if not weight or not isinstance(target, ast.Name):
                continue
            step = _step_after(module, kept)
            use = _compared(module, step, target.id, weight) if step is not None else None
            if step is not None and use is not None:
                yield self.finding(
                    module,
                    kept,
                    f"`{target.id}` is the memory of `{weight}` itself, which line {step.lineno} "
                    f"changes in place: line {use.lineno} compares it with itself",
                    trail=[(step, "changed in place here"), (use, "used as the old values here")],
                    fixes=[_copied(module, kept.value)],
                )


def _weight(module: Module, node: ast.expr) -> str:
    """`model.fc.weight` of `model.fc.weight.detach().numpy()`; "" if it is a copy or no weight."""
    while True:
        owner = receiver(node) if isinstance(node, ast.Call) else None
        if owner is not None and isinstance(node, ast.Call) and called(node) in _SAME_MEMORY:
            node = owner
        elif isinstance(node, ast.Attribute) and node.attr == "data":
            node = node.value
        else:
            break
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        listed = node.value
        inner = listed.args[0] if isinstance(listed, ast.Call) and listed.args else None
        is_list = isinstance(inner, ast.Call) and called(inner) in _LISTS
        return module.text(node) if is_list else ""
    if not isinstance(node, ast.Attribute):
        return ""
    named = node.attr in ("weight", "bias") or module.value_of(node).is_only(Kind.PARAMETER)
    return module.text(node) if named else ""


def _step_after(module: Module, kept: ast.Assign) -> ast.Call | None:
    """`optimizer.step()` later in the same function; a scheduler's does not change weights."""
    steps = module.once(_steps, module.function_of(kept) or module.top)
    return next((each for each in steps if is_before(kept, each)), None)


def _steps(module: Module, function: FunctionNode) -> list[ast.Call]:
    """Of what the function has make steps, that of its optimizers, or else of the first."""
    around = None if function is module.top else function
    found: dict[str, list[ast.Call]] = {}
    for call in module.calls("step", inside=around):
        owner = receiver(call)
        if owner is not None and module.function_of(call) is around and _may_train(module, call):
            found.setdefault(module.text(owner), []).append(call)
    known = _optimizers(module) & found.keys()
    return [call for name in known or list(found)[:1] for call in found[name]]


def _may_train(module: Module, step: ast.Call) -> bool:
    """No step of an environment, whose answer is used, nor of a scheduler or a profiler."""
    owner = receiver(step)
    if owner is None or not isinstance(module.parent(step), ast.Expr):
        return False
    origins = module.value_of(owner).origins
    made = (module.qualified(each.func) for each in origins if isinstance(each, ast.Call))
    return not any(each.startswith(_OTHER_STEPS) for each in made)


def _optimizers(module: Module) -> set[str]:
    """What the file asks for what only optimizers have, as it is written."""
    calls = (receiver(each) for each in module.calls("zero_grad"))
    read = (each.value for each in module.members("param_groups"))
    return {module.text(each) for each in (*calls, *read) if each is not None}


def _compared(module: Module, step: ast.Call, name: str, weight: str) -> ast.Name | None:
    """A use behind the step in one statement with the weight, or with what was read of it there."""
    function = module.function_of(step)
    read = module.once(_read_again, function or module.top).get(weight, ())
    again = {target for target, at in read if is_before(step, at)} - {name}
    for use in module.uses(name, function):
        if not is_before(step, use):
            continue
        if isinstance(use.ctx, ast.Store):
            return None
        statement = module.statement_of(use)
        if isinstance(statement, (ast.For, ast.While, ast.If, ast.With)):
            continue
        others = {each.id for each in module.nodes(ast.Name, statement)}
        if again & others or weight in module.text(statement).replace(" ", ""):
            return use
    return None


def _read_again(module: Module, function: FunctionNode) -> dict[str, list[tuple[str, ast.Assign]]]:
    """The variables that each weight is read into, and where."""
    found: dict[str, list[tuple[str, ast.Assign]]] = {}
    for each in module.nodes(ast.Assign, None if function is module.top else function):
        target = each.targets[0]
        if isinstance(target, ast.Name) and (weight := _weight(module, each.value)):
            found.setdefault(weight, []).append((target.id, each))
    return found


def _copied(module: Module, value: ast.expr) -> Fix | None:
    copy = ".copy()" if isinstance(value, ast.Call) and called(value) == "numpy" else ".clone()"
    return module.fix("copy the values", Safety.UNSAFE, module.insert_after(value, copy))
