from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shared.functions import functions
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called, is_before, receiver
from tensortrail.rules.shared.values import CHANGES
from tensortrail.rules.storage._changed_by_calls import ChangedByCall, changed_by_calls
from tensortrail.rules.storage._read_after import is_read_after
from tensortrail.rules.view import FunctionNode
from tensortrail.rules.words import Kind

_MAY_BE_LEFT_OUT = (ast.If, ast.For, ast.While, ast.Try, ast.Match)


class OtherNameChanged(Rule):
    """A tensor is kept under another name without a copy, and then changed in place.

    ## What it does
    - Reports `scores.masked_fill_(mask, 0)`, `x += y` and `x[i] = y` after `kept = scores`, if the
      function reads both names afterwards.
    - Reports `out = step(x)`, if `step` changes its argument in place and returns it, or a view of
      it, and the function reads both names afterwards.
    - Reports `x = step(x)` with such a function in a generator that has yielded `x`: whoever kept
      what was yielded finds the new values in it.

    Not reported: names that are bound again on every way in between, or to a copy, and names of
    which only sizes, types or devices are read.

    ## Why is this bad?
    No error is raised. Both names are one tensor, so the kept values change too: the function
    returns or logs the new values as the old ones.

    ## Fix safety
    Unsafe: `.clone()` takes the memory of the tensor.

    ## References
    - lucidrains/x-transformers, commit 746aebe317, attention before and after the softmax
    - NVIDIA/earth2studio, commit b43f88fe94, a step of a forecast that writes into its input
    - pytorch documentation, "Tensor Views" and in-place operations
    """

    code = "STO242"
    name = "other-name-changed"
    severity = Severity.WARNING
    proven = False
    confidence = Confidence.MEDIUM
    triggers = (
        *(("torch", f".{name}(") for name in sorted(CHANGES)),
        ("torch", "] ="),
        *(("torch", f" {sign}= ") for sign in "+-*/"),
    )

    bad = (
        Bad(
            """\
import torch

def attention(dots, mask):
    before = dots
    dots.masked_fill_(mask, -1e9)
    return dots.softmax(-1), before
""",
            lines=(5,),
            fixed="""\
import torch

def attention(dots, mask):
    before = dots.clone()
    dots.masked_fill_(mask, -1e9)
    return dots.softmax(-1), before
""",
        ),
        Bad(
            """\
import torch

def attention(dots, mask, bias=None):
    before = dots
    if bias is not None:
        dots = dots + bias
    dots.masked_fill_(mask, -1e9)
    return dots.softmax(-1), before
""",
            lines=(7,),
            fixed="""\
import torch

def attention(dots, mask, bias=None):
    before = dots.clone()
    if bias is not None:
        dots = dots + bias
    dots.masked_fill_(mask, -1e9)
    return dots.softmax(-1), before
""",
        ),
        Bad(
            """\
import torch

def block(layer, x: torch.Tensor):
    residual = x
    x += layer(x)
    return x * residual
""",
            lines=(5,),
            fixed="""\
import torch

def block(layer, x: torch.Tensor):
    residual = x.clone()
    x += layer(x)
    return x * residual
""",
        ),
        Bad(
            """\
import torch

def shifted(x: torch.Tensor, by):
    flat = x.view(-1)
    flat[0] = by
    return flat

def both(x, by):
    moved = shifted(x, by)
    return moved - x.view(-1)
""",
            lines=(9,),
            fixed="""\
import torch

def shifted(x: torch.Tensor, by):
    flat = x.view(-1)
    flat[0] = by
    return flat

def both(x, by):
    moved = shifted(x.clone(), by)
    return moved - x.view(-1)
""",
        ),
        Bad(
            """\
import torch

class Forecast:
    def step(self, x: torch.Tensor, time):
        x = x.squeeze(2)
        for index in range(len(x)):
            x[index] = self.model(x[index])
        return x.unsqueeze(2), time + 1

    def states(self, x, time):
        yield x, time
        while True:
            x, time = self.step(x, time)
            yield x, time
""",
            lines=(13,),
            fixed="""\
import torch

class Forecast:
    def step(self, x: torch.Tensor, time):
        x = x.squeeze(2)
        for index in range(len(x)):
            x[index] = self.model(x[index])
        return x.unsqueeze(2), time + 1

    def states(self, x, time):
        yield x, time
        while True:
            x, time = self.step(x.clone(), time)
            yield x, time
""",
        ),
    )
    good = (
        Good(
            """\
import torch

def attention(dots, mask):
    before = dots.clone()
    dots.masked_fill_(mask, -1e9)
    return dots.softmax(-1), before
"""
        ),
        Good(
            """\
import torch

def block(layer, x: torch.Tensor, count: int):
    residual = x
    x = layer(x)
    x += 1
    left = count
    count -= 1
    out = x
    out.add_(residual)
    return out.view(x.shape), left, count
"""
        ),
        Good(
            """\
import torch

def clipped(x, in_place):
    before = x
    if not in_place:
        x = x.clone()
    x.clamp_(0, 1)
    return x, before
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        yield from (self._by_a_call(module, each) for each in changed_by_calls(module))
        for function in functions(module):
            for kept, name, statement in _second_names(module, function):
                change = _change(module, function, statement, (kept, name))
                if change is not None:
                    yield self._found(module, statement, change, kept, name)

    def _by_a_call(self, module: Module, found: ChangedByCall) -> Finding:
        text, name = module.text(found.given), called(found.call)
        kept = "was yielded above" if found.is_yielded else "is read below"
        edit = module.insert_after(found.given, ".clone()")
        return self.finding(
            module,
            found.call,
            f"`{name}` changes its argument in place and returns it: `{text}`, which {kept}, "
            "gets the new values too",
            trail=[(found.change, "changed in place")] if found.change is not None else [],
            fixes=[module.fix("give it a copy", Safety.UNSAFE, edit)],
        )

    def _found(
        self, module: Module, statement: ast.Assign, change: ast.stmt, kept: str, name: str
    ) -> Finding:
        edit = module.insert_after(statement.value, ".clone()")
        return self.finding(
            module,
            change,
            f"`{kept}` is `{name}` itself, not a copy: this changes both, and both are read below",
            trail=[(statement, "no copy"), (change, "changed in place")],
            fixes=[module.fix("keep a copy", Safety.UNSAFE, edit)],
        )


def _second_names(module: Module, function: FunctionNode) -> Iterator[tuple[str, str, ast.Assign]]:
    """`before = dots`, where `before` is bound once."""
    for statement in module.nodes(ast.Assign, function):
        target, value = statement.targets[0], statement.value
        if not isinstance(target, ast.Name) or not isinstance(value, ast.Name):
            continue
        if len(statement.targets) == 1 and len(_stores(module, function, target.id)) == 1:
            yield target.id, value.id, statement


def _stores(module: Module, function: FunctionNode, name: str) -> list[ast.Name]:
    return [each for each in module.uses(name, function) if isinstance(each.ctx, ast.Store)]


def _change(
    module: Module, function: FunctionNode, since: ast.Assign, names: tuple[str, str]
) -> ast.stmt | None:
    """The first change in place of either, while both are the same and are read afterwards."""
    for node in module.nodes(ast.stmt, function):
        changed = _changed_by(module, node)
        if changed not in names or not is_before(since, node):
            continue
        if any(_is_bound_between(module, function, name, since, node) for name in names):
            return None
        if all(is_read_after(module, node, name) for name in names):
            return node
    return None


def _changed_by(module: Module, statement: ast.stmt) -> str:
    """The name of the tensor that the statement changes in place."""
    changed: ast.expr | None = None
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        changed = receiver(call) if called(call) in CHANGES else None
    elif isinstance(statement, ast.AugAssign):
        changed = statement.target
    elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        changed = statement.targets[0]
    if isinstance(changed, ast.Subscript):
        changed = changed.value
    if not isinstance(changed, ast.Name):
        return ""
    by_method = isinstance(statement, ast.Expr)
    return changed.id if by_method or _is_tensor(module, changed) else ""


def _is_tensor(module: Module, name: ast.Name) -> bool:
    return module.value_of(name).is_only(Kind.TENSOR, Kind.PARAMETER)


def _is_bound_between(
    module: Module, function: FunctionNode, name: str, since: ast.Assign, until: ast.stmt
) -> bool:
    """On every way from the one to the other, or to a copy."""
    return any(
        is_before(since, each)
        and is_before(each, until)
        and (bound := module.statement_of(each)) is not until
        and (_is_on_the_way(module, bound, until) or _copies(module, bound))
        for each in _stores(module, function, name)
    )


def _is_on_the_way(module: Module, statement: ast.stmt, until: ast.stmt) -> bool:
    """No condition or loop is around it that is not around the other too."""
    around = set(module.ancestors(until))
    return all(
        each in around for each in module.ancestors(statement) if isinstance(each, _MAY_BE_LEFT_OUT)
    )


def _copies(module: Module, statement: ast.stmt) -> bool:
    return any(True for _ in module.calls("clone", "copy", "deepcopy", inside=statement))
