from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.calls.default_gpus import (
    is_a_gpu_too,
    is_out_of_place,
    may_lack_a_gpu,
    may_not_be_read,
    needs_a_gpu,
    offloads_again,
    only_asks,
    takes_a_gpu,
)
from tensortrail.rules.devices.shared.calls.devices_bound import (
    bound_devices,
    device_of_self,
    known_device,
)
from tensortrail.rules.devices.shared.named.devices_said import device_parameter
from tensortrail.rules.shared.functions import functions
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.mends import device_given
from tensortrail.rules.shared.sentences import one_line


class GpuByDefaultAtACall(Rule):
    """A call leaves out `device`, whose default is a GPU, although the caller has a device.

    ## What it does
    Reports a call of a project function or class that has the default `device="cuda"` or
    `device="auto"`, in a function that has a device: a parameter, a variable that is not written as
    a GPU, or the `self.device` of its class.

    Reported as a note:

    - a parameter that is a GPU by default too, if no call in the project chooses another device;
    - a variable, if the file puts something on a GPU anyway;
    - a function that only asks what the GPU can do, if no other call passes it a device;
    - a function that reads the device only for some values of another argument;
    - a function that offloads a pipeline, in a class with `self.device`: the argument says where
      the parts are stored, not where they run;
    - a call in a file that never asks whether there is a GPU and offloads no pipeline.

    These notes are reported only if the rule is selected.

    Not reported: a branch that tests for CUDA, tests, and a function that replaces "auto" by
    another device.

    ## Why is this bad?
    The caller asked for the CPU or the second GPU, and this call uses the first GPU. It raises if
    there is no GPU. Otherwise the next operation that combines its tensors with others raises.

    ## Fix safety
    Unsafe: it passes the device on, which changes where the called function works.

    ## References
    - huggingface/pytorch-image-models issue 2488
    - pykale/pykale issue 557
    """

    code = "DEV550"
    name = "gpu-by-default-at-a-call"
    severity = Severity.WARNING
    warns = False
    notes = False
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
        Bad(
            """\
import torch

class Extractor:
    def __init__(self, sizes, device="auto"):
        self.net = torch.nn.Linear(*sizes).to(choose(device))

class Policy(torch.nn.Module):
    @property
    def device(self):
        return next(self.parameters()).device

    def add_extractor(self, sizes):
        self.extractor = Extractor(sizes)
""",
            lines=(13,),
            fixed="""\
import torch

class Extractor:
    def __init__(self, sizes, device="auto"):
        self.net = torch.nn.Linear(*sizes).to(choose(device))

class Policy(torch.nn.Module):
    @property
    def device(self):
        return next(self.parameters()).device

    def add_extractor(self, sizes):
        self.extractor = Extractor(sizes, device=self.device)
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
        Good(
            """\
import torch

class Speaker(torch.nn.Module):
    @property
    def device(self):
        return next(self.parameters()).device

    def embed(self, wave, device="auto"):
        device = self.device if device == "auto" else device
        return wave.to(device)

    def forward(self, wave):
        return self.embed(wave)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for function in functions(module):
            parameter = device_parameter(module, function)
            bound = [] if parameter is not None else bound_devices(module, function)
            own = "" if parameter or bound else device_of_self(module, function)
            for call in module.nodes(ast.Call, function) if parameter or bound or own else ():
                if module.function_of(call) is not function:
                    continue
                at_hand = parameter.arg if parameter else own or known_device(module, bound, call)
                if at_hand and takes_a_gpu(module, call) and not is_out_of_place(call, at_hand):
                    same = parameter is not None and module.once(is_a_gpu_too, function)
                    note = same or (bool(bound) and needs_a_gpu(module))
                    note = note or only_asks(module, call) or may_not_be_read(module, call)
                    note = note or (bool(own) and offloads_again(function, call))
                    note = note or not may_lack_a_gpu(module, call)
                    yield self._found(module, call, at_hand, Severity.NOTE if note else None)

    def _found(
        self, module: Module, call: ast.Call, at_hand: str, severity: Severity | None
    ) -> Finding:
        edit = device_given(module, call, at_hand)
        return self.finding(
            module,
            call,
            f"`{one_line(module, call)}` is called without `device`, which is a GPU by default, "
            f"although `{at_hand}` is available",
            severity=severity,
            fixes=[module.fix("pass the device on", Safety.UNSAFE, edit) if edit else None],
        )
