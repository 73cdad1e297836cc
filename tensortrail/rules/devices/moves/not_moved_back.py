from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.moves.sent_to_cpu import (
    Loop,
    moved_before,
    sent_to_cpu,
    stays_there,
)
from tensortrail.rules.devices.shared.written_for.told import told_device
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import given, within


class NotMovedBack(Rule):
    """A loop moves its model to the CPU and calls it on the GPU in the next iteration.

    ## What it does
    Reports `model.cpu()` and `model.to("cpu")` in a loop that also calls `model(...)`, if the model
    was moved to a device before the loop and nothing in the loop moves it back. The move may be in
    a function of the file that is given the model.

    Not reported: a loop that ends after the move, a move of a copy, and a loop that passes the
    model to code outside of the file.

    ## Why is this bad?
    The next round raises "Expected all tensors to be on the same device": `.cpu()` moves a module
    in place, so the weights are on the CPU and the batches on the GPU. The state of the optimizer
    stays on the GPU as well.

    ## Fix safety
    No fix is offered: save the state dict as it is, and read it with `map_location="cpu"`, or copy
    its tensors: `{key: value.cpu() for key, value in model.state_dict().items()}`.

    ## References
    - pytorch documentation of `torch.nn.Module.cpu`
    """

    code = "DEV616"
    name = "not-moved-back"
    severity = Severity.WARNING
    proven = False
    confidence = Confidence.HIGH
    triggers = (("torch", ".cpu("), ("torch", "cpu", ".to("))

    bad = (
        Bad(
            """\
import torch

def train(model, loader, device, epochs):
    model = model.to(device)
    for epoch in range(epochs):
        for x, y in loader:
            loss = (model(x.to(device)) - y.to(device)).pow(2).mean()
            loss.backward()
        torch.save(model.cpu().state_dict(), "model.pt")
""",
            lines=(9,),
            instead="""\
import torch

def train(model, loader, device, epochs):
    model = model.to(device)
    for epoch in range(epochs):
        for x, y in loader:
            loss = (model(x.to(device)) - y.to(device)).pow(2).mean()
            loss.backward()
        torch.save({k: v.cpu() for k, v in model.state_dict().items()}, "model.pt")
""",
        ),
        Bad(
            """\
import torch

class Trainer:
    def __init__(self, net):
        self.net = net.cuda()

    def fit(self, loader):
        step = 0
        while step < 100:
            for x in loader:
                self.net(x.cuda()).sum().backward()
                step += 1
            self.net.to("cpu")
            torch.save(self.net, "net.pt")
""",
            lines=(13,),
        ),
        Bad(
            """\
import torch

def save(net, path):
    torch.save(net.cpu().state_dict(), path)

def train(model, loader):
    model.cuda()
    for epoch in range(3):
        for x in loader:
            model(x.cuda()).sum().backward()
        save(model, "model.pt")
""",
            lines=(11,),
        ),
    )
    good = (
        Good(
            """\
import torch

def train(model, loader, device, epochs):
    model = model.to(device)
    for epoch in range(epochs):
        for x in loader:
            model(x.to(device)).sum().backward()
        torch.save(model.cpu().state_dict(), "model.pt")
        model.to(device)
"""
        ),
        Good(
            """\
import copy
import torch

def train(model, loader, device):
    model.to(device)
    for epoch in range(3):
        for x in loader:
            model(x.to(device)).sum().backward()
        torch.save(copy.deepcopy(model).cpu(), "model.pt")
    torch.save(model.cpu().state_dict(), "last.pt")
"""
        ),
        Good(
            """\
import torch

def train(model, loader, device):
    model.to(device)
    for step, x in enumerate(loader):
        model(x.to(device)).sum().backward()
        if step == 100:
            torch.save(model.cpu().state_dict(), "model.pt")
            break
"""
        ),
        Good(
            """\
import torch
from steps import one_epoch

def train(model, loader, device):
    model.to(device)
    for epoch in range(3):
        one_epoch(model, loader, device)
        print(model(torch.ones(1, 4, device=device)))
        torch.save(model.cpu().state_dict(), "model.pt")
"""
        ),
        Good(
            """\
def scores(model, rows, device):
    model.to(device)
    for row in rows:
        model.to("cpu")
        print(model(row))
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for loop, call in _calls_in_loops(module):
            for model in sent_to_cpu(module, call):
                used = _used_on_gpu(module, loop, call, model)
                if used is None or _is_left(module, call, loop):
                    continue
                moved = moved_before(module, loop, model)
                if moved is not None and stays_there(module, loop, call, model):
                    yield self._found(module, call, model, used, moved)

    def _found(
        self, module: Module, call: ast.Call, model: str, used: ast.Call, moved: ast.Call
    ) -> Finding:
        return self.finding(
            module,
            call,
            f"the call moves `{model}` itself to the CPU, and the next round of the loop calls it "
            f"in line {used.lineno}: nothing moves it back",
            trail=[(moved, "it was moved here"), (used, "it is called again here")],
        )


def _calls_in_loops(module: Module) -> Iterator[tuple[Loop, ast.Call]]:
    """With the outermost loop of the function around the call."""
    loops: tuple[Loop, ...] = (*module.nodes(ast.For), *module.nodes(ast.While))
    for loop in loops:
        function = module.function_of(loop)
        around = (each for each in module.ancestors(loop) if isinstance(each, Loop))
        if not any(module.function_of(each) is function for each in around):
            for call in module.nodes(ast.Call, loop):
                if module.function_of(call) is function:
                    yield loop, call


def _is_left(module: Module, call: ast.Call, loop: Loop) -> bool:
    """Something ends the loop in the block of the call, or in one around it."""
    statement: ast.AST = module.statement_of(call)
    while statement is not loop:
        above = module.parent(statement)
        for block in (getattr(above, name, None) for name in ("body", "orelse", "finalbody")):
            if isinstance(block, list) and statement in block and _ends(block):
                return True
        if above is None:
            return True
        statement = above
    return False


def _ends(block: list[ast.stmt]) -> bool:
    return isinstance(block[-1], (ast.Return, ast.Raise, ast.Break))


def _used_on_gpu(module: Module, loop: Loop, call: ast.Call, model: str) -> ast.Call | None:
    """A call of the model in the loop, with something that was moved there."""
    for each in module.nodes(ast.Call, loop):
        if module.text(each.func) != model or within(call, each, module):
            continue
        if any(told_device(module, argument) is not None for argument in given(each)):
            return each
    return None
