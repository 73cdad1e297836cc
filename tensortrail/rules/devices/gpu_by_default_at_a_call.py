from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices._accepted import accepts
from tensortrail.rules.devices._at_hand import device_parameter, is_cuda_literal
from tensortrail.rules.devices._customs import may_be_given_anything, named
from tensortrail.rules.shared.functions import functions
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.mends import device_given
from tensortrail.rules.shared.sentences import one_line
from tensortrail.rules.view import FunctionNode


class GpuByDefaultAtACall(Rule):
    """A call leaves out `device`, whose default is a GPU, where the caller has another at hand.

    ## What it does
    Flags a call of a function or class of the project that has `device="cuda"` as a default and is
    not given one, in a function that has a `device` of its own: a parameter, or a variable that is
    no GPU by its text. A branch that asks for CUDA is not flagged, nor are tests.

    ## Why is this bad?
    Whoever asks for the CPU, or for the second GPU, gets the first one at this call: it stops where
    there is no GPU, and elsewhere its tensors meet those of another device.

    ## Fix safety
    Unsafe: it passes the device on, which changes where the callee works.

    ## References
    - huggingface/pytorch-image-models issue 2488
    - pykale/pykale issue 557
    """

    code = "DEV550"
    name = "gpu-by-default-at-a-call"
    severity = Severity.WARNING
    triggers = (("torch", "device"),)

    bad = (
        Bad(
            """\
import torch

def loader(data, device=torch.device("cuda")):
    return [each.to(device) for each in data]

def train(model, data, device):
    model.to(device)
    for batch in loader(data):
        model(batch)
""",
            lines=(8,),
            fixed="""\
import torch

def loader(data, device=torch.device("cuda")):
    return [each.to(device) for each in data]

def train(model, data, device):
    model.to(device)
    for batch in loader(data, device=device):
        model(batch)
""",
        ),
        Bad(
            """\
import torch
from steps import one_epoch

def main(args, model, data):
    device = torch.device(args.device)
    model = model.to(device)
    return one_epoch(model, data)
""",
            lines=(7,),
            files={
                "steps.py": """\
def one_epoch(model, data, device="cuda:0"):
    return [model(each.to(device)) for each in data]
"""
            },
            fixed="""\
import torch
from steps import one_epoch

def main(args, model, data):
    device = torch.device(args.device)
    model = model.to(device)
    return one_epoch(model, data, device=device)
""",
        ),
    )
    good = (
        Good(
            """\
import torch

def loader(data, device="cuda"):
    return [each.to(device) for each in data]

def train(model, data, device):
    model.to(device)
    return [model(each) for each in loader(data, device)]

def timed(model, data):
    device = torch.device("cuda")
    model.to(device)
    return [model(each) for each in loader(data)]

def either(model, data, device):
    model.to(device)
    if device.type == "cuda":
        return loader(data)
    return data

def whatever(data):
    return loader(data)
"""
        ),
        Good(
            """\
import torch

def loader(data, device="cpu"):
    return [each.to(device) for each in data]

def train(model, data, device):
    model.to(device)
    return loader(data)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for function in functions(module):
            parameter = device_parameter(module, function)
            bound = [] if parameter is not None else _bound(module, function)
            for call in module.nodes(ast.Call, function) if parameter or bound else ():
                if module.function_of(call) is not function or not _takes_gpu(module, call):
                    continue
                at_hand = parameter.arg if parameter else _known(module, bound, call)
                if at_hand:
                    yield self._found(module, call, at_hand)

    def _found(self, module: Module, call: ast.Call, at_hand: str) -> Finding:
        edit = device_given(module, call, at_hand)
        return self.finding(
            module,
            call,
            f"`{one_line(module, call)}` leaves out `device`, whose default is a GPU: "
            f"`{at_hand}` is not asked",
            fixes=[module.fix("pass the device on", Safety.UNSAFE, edit) if edit else None],
        )


def _takes_gpu(module: Module, call: ast.Call) -> bool:
    if (
        "device" in named(call)
        or may_be_given_anything(call)
        or not accepts(module, call, "device")
    ):
        return False
    return "device" in module.gpu_defaults_of(call) and not any(
        guard.mentions("cuda", "gpu", "device") for guard in module.guards_of(call)
    )


def _bound(module: Module, function: FunctionNode) -> list[ast.Assign]:
    """Where the function binds a variable `device`."""
    return [
        each
        for each in module.nodes(ast.Assign, function)
        for target in each.targets
        if isinstance(target, ast.Name) and target.id == "device"
    ]


def _known(module: Module, bound: list[ast.Assign], call: ast.Call) -> str:
    """ "device", if it is bound before the call and is no GPU by its text."""
    values = [each.value for each in bound if _is_before(each, call)]
    known = values and not any(is_cuda_literal(module, each) for each in values)
    return "device" if known else ""


def _is_before(statement: ast.stmt, call: ast.Call) -> bool:
    return (statement.lineno, statement.col_offset) < (call.lineno, call.col_offset)
