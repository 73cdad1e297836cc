from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.offload._by_accelerate import ends_offloading, offloading_calls
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.optimizers import is_optimizer, model_behind
from tensortrail.rules.shared.sentences import one_line


class OffloadedThenTrained(Rule):
    """An optimizer is made of the parameters of a model that accelerate offloads.

    ## What it does
    Reports `torch.optim.SGD(model.parameters())` after `cpu_offload(model)` or
    `disk_offload(model)` of accelerate.

    Not reported: hooks that are removed before.

    ## Why is this bad?
    Between two calls the weights of the model are placeholders on meta without values, and those
    the optimizer gets. The gradients go to the copies of one call, which are dropped with it: no
    weight changes, and no error is raised, or `step` raises for a tensor on meta.

    ## Fix safety
    No fix is offered: offloading by hooks is for inference. DeepSpeed and FSDP offload a model that
    is trained.

    ## References
    - huggingface/accelerate documentation, big model inference
    """

    code = "OFF130"
    name = "offloaded-then-trained"
    severity = Severity.ERROR
    proven = False
    triggers = (("optim", "cpu_offload"), ("optim", "disk_offload"))

    bad = (
        Bad(
            """\
import torch
from accelerate import cpu_offload

def setup(net):
    net = cpu_offload(net, execution_device=torch.device("cuda"))
    return net, torch.optim.SGD(net.parameters(), lr=0.1)
""",
            lines=(6,),
            instead="""\
import torch

def setup(net):
    net = net.to("cuda")
    return net, torch.optim.SGD(net.parameters(), lr=0.1)
""",
        ),
        Bad(
            """\
import accelerate
from torch.optim import AdamW

def setup(net, folder):
    accelerate.disk_offload(net, folder)
    groups = [{"params": [p for p in net.parameters() if p.dim() > 1]}]
    optimizer = AdamW(groups, lr=0.1)
    return optimizer
""",
            lines=(7,),
        ),
    )
    good = (
        Good(
            """\
import torch
from accelerate import cpu_offload
from accelerate.hooks import remove_hook_from_module

def setup(net, head):
    cpu_offload(net)
    return torch.optim.SGD(head.parameters(), lr=0.1)

def again(net):
    cpu_offload(net)
    remove_hook_from_module(net, recurse=True)
    return torch.optim.SGD(net.parameters(), lr=0.1)

def either(net, trains):
    if trains:
        return torch.optim.SGD(net.parameters(), lr=0.1)
    return cpu_offload(net)

def other(net, make):
    cpu_offload(net)
    net = make()
    return torch.optim.SGD(net.parameters(), lr=0.1)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for call in offloading_calls(module):
            for model in _names(module, call):
                made = _trained(module, call, model)
                if made is not None:
                    yield self._found(module, made, model, call)
                    break

    def _found(self, module: Module, made: ast.Call, model: str, call: ast.Call) -> Finding:
        return self.finding(
            module,
            made,
            f"`{model}` has been offloaded since line {call.lineno}: between two calls its "
            "parameters are on meta, and this optimizer changes none of its weights",
            trail=[(call, f"`{one_line(module, call)}`"), (made, "made of parameters on meta")],
        )


def _names(module: Module, call: ast.Call) -> list[str]:
    """`a` and `b` of `a = cpu_offload(b)`."""
    given = module.argument(call, 0, "model")
    statement = module.statement_of(call)
    bound = statement.targets[0] if isinstance(statement, ast.Assign) else None
    is_result = isinstance(statement, ast.Assign) and statement.value is call
    return [module.text(e) for e in (bound if is_result else None, given) if e is not None]


def _trained(module: Module, call: ast.Call, model: str) -> ast.Call | None:
    own = module.statement_of(call)
    for each in module.later(call, ast.Assign):
        if each is not own and any(module.text(target) == model for target in each.targets):
            return None
    for later in module.later(call, ast.Call):
        if ends_offloading(module, later):
            return None
        if is_optimizer(module, later) and model_behind(module, later) == model:
            return later
    return None
