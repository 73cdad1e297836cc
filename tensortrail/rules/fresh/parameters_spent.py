from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.fresh._spent import first_use, second_use, uses_of
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.sentences import one_line


class ParametersSpent(Rule):
    """An iterator over parameters is gone through a second time, when nothing is left in it.

    ## What it does
    Reports `params = model.parameters()`, `filter(..., model.parameters())`, `map`, `chain` or a
    generator expression over them, if an optimizer, a loop, `sum`, `list` or the like goes through
    it and something else is given it afterwards, or if it is gone through in each round of a loop.

    Not reported: two uses of which only one can run.

    ## Why is this bad?
    The second use sees no parameters. `clip_grad_norm_` clips nothing and returns 0, without an
    error; an optimizer raises "optimizer got an empty parameter list".

    ## Fix safety
    Unsafe: `list(...)` keeps the parameters, and the second use begins to work.

    ## References
    - pytorch/pytorch issue 148259
    - PixArt-alpha/PixArt-alpha pull request 160
    """

    code = "NEW322"
    name = "parameters-spent"
    severity = Severity.ERROR
    errors_as = Severity.NOTE
    triggers = ("parameters(",)

    bad = (
        Bad(
            """\
import torch

def train(net, batches):
    trainable = filter(lambda p: p.requires_grad, net.parameters())
    optimizer = torch.optim.AdamW(trainable, lr=1e-3)
    for batch in batches:
        net(batch).sum().backward()
        torch.nn.utils.clip_grad_norm_(trainable, 1.0)
        optimizer.step()
""",
            lines=(8,),
            fixed="""\
import torch

def train(net, batches):
    trainable = list(filter(lambda p: p.requires_grad, net.parameters()))
    optimizer = torch.optim.AdamW(trainable, lr=1e-3)
    for batch in batches:
        net(batch).sum().backward()
        torch.nn.utils.clip_grad_norm_(trainable, 1.0)
        optimizer.step()
""",
        ),
        Bad(
            """\
import torch

def build(model):
    params = model.parameters()
    print(sum(p.numel() for p in params))
    return torch.optim.SGD(params, lr=0.1)
""",
            lines=(6,),
            fixed="""\
import torch

def build(model):
    params = list(model.parameters())
    print(sum(p.numel() for p in params))
    return torch.optim.SGD(params, lr=0.1)
""",
        ),
        Bad(
            """\
import torch

class Trainer:
    def __init__(self, model):
        self.params = (p for p in model.parameters() if p.requires_grad)
        self.optimizer = torch.optim.Adam(self.params)

    def step(self, loss):
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.params, 1.0)
        self.optimizer.step()

def rounds(model, batches):
    params = model.parameters()
    for batch in batches:
        for p in params:
            p.grad = None
""",
            lines=(10, 16),
            fixed="""\
import torch

class Trainer:
    def __init__(self, model):
        self.params = list(p for p in model.parameters() if p.requires_grad)
        self.optimizer = torch.optim.Adam(self.params)

    def step(self, loss):
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.params, 1.0)
        self.optimizer.step()

def rounds(model, batches):
    params = list(model.parameters())
    for batch in batches:
        for p in params:
            p.grad = None
""",
        ),
    )
    good = (
        Good(
            """\
import torch

def train(net, batches):
    trainable = list(filter(lambda p: p.requires_grad, net.parameters()))
    optimizer = torch.optim.AdamW(trainable, lr=1e-3)
    for batch in batches:
        net(batch).sum().backward()
        torch.nn.utils.clip_grad_norm_(trainable, 1.0)
        optimizer.step()
"""
        ),
        Good(
            """\
import torch

def build(model, kind):
    params = model.parameters()
    if kind == "sgd":
        return torch.optim.SGD(params, lr=0.1)
    return torch.optim.Adam(params, lr=0.1)

def chosen(model, kind):
    params = model.parameters()
    if kind == "sgd":
        optimizer = torch.optim.SGD(params, lr=0.1)
    else:
        optimizer = torch.optim.Adam(params, lr=0.1)
    return optimizer

def named(model):
    params = model.named_parameters()
    for name, p in dict(params).items():
        print(name, p.shape)

def first(model, x):
    params = model.parameters()
    device = next(params).device
    return x.to(device), params

def listed(model):
    params = model.parameters()
    params = list(params)
    return torch.optim.SGD(params, lr=0.1), sum(p.numel() for p in params)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for assign in module.nodes(ast.Assign):
            uses = uses_of(module, assign)
            first = first_use(module, uses, assign)
            again = second_use(module, uses, assign, first) if first is not None else None
            if first is None or again is None:
                continue
            shown = one_line(module, assign.targets[0])
            when = f"line {first.lineno}" if again is not first else "the previous iteration"
            yield self.finding(
                module,
                again,
                f"`{shown}` of line {assign.lineno} is an iterator, and {when} has used it up: "
                "here it is empty",
                trail=_trail(assign, first, again),
                fixes=[_listed(module, assign.value)],
            )


def _trail(assign: ast.Assign, first: ast.expr, again: ast.expr) -> Sequence[tuple[ast.AST, str]]:
    steps: list[tuple[ast.AST, str]] = [(assign, "an iterator, not a list"), (first, "used here")]
    return steps if again is first else [*steps, (again, "empty here")]


def _listed(module: Module, value: ast.expr) -> Fix | None:
    text = module.text(value)
    plain = text[1:-1] if isinstance(value, ast.GeneratorExp) and text[:1] == "(" else text
    return module.fix("keep a list", Safety.UNSAFE, module.replace(value, f"list({plain})"))
