from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.modules.device_of_weights import (
    devices_of_components,
    devices_of_first_parameters,
    inputs_moved_to_weights,
    made_beside_weights,
    own_instead_of_given,
)
from tensortrail.rules.devices.shared.modules.of_each import parameters_of_each
from tensortrail.rules.devices.shared.modules.weights import (
    has_buffers_only,
    is_made_for_offloading,
    is_pipeline,
    knows_hooks,
    tests_meta,
)
from tensortrail.rules.shared.functions import functions
from tensortrail.rules.shared.imports import imported_packages
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.sentences import one_line
from tensortrail.rules.view import FunctionNode


class DeviceFromFirstParameter(Rule):
    """The device of one weight or component is used, although the model computes on another one.

    ## What it does
    Reports, as a note except for the last:

    - `self.device` in a method that has a `device` parameter;
    - inputs of a diffusers component moved to its device, not to `_execution_device`;
    - a tensor made on `self.device` that is combined with an input, in a file that imports
      accelerate;
    - `next(module.parameters()).device` for an input of `module`, for each of several modules, or
      in code about offloading hooks, if nothing tests for meta;
    - as an error, `next(self.parameters())` in a class that has buffers only.

    ## Why is this bad?
    The operation raises: with offloading, a weight is on meta or on the CPU until its hook loads
    it, and an input moved to it goes there too. A class without parameters raises StopIteration.

    ## Fix safety
    Unsafe: it uses the `device` parameter, and is only offered if there is one.

    ## References
    - huggingface/diffusers, inputs moved to `self.device`; vllm-project/compressed-tensors #120
    """

    code = "DEV505"
    name = "device-from-first-parameter"
    since = "0.2.0"
    severity = Severity.WARNING
    errors_as = Severity.NOTE
    warns = False
    notes = False
    triggers = (
        "self.device",
        ("parameters()", "next("),
        ("_execution_device", ".device"),
        ("Pipeline", ".device"),
    )

    bad = (
        Bad(
            """\
class Pipe:
    def __init__(self, unet):
        self.unet = unet

    def prepare(self, latents, mean, device):
        latents = latents.to(device)
        return latents - mean.to(device=self.device)
""",
            lines=(7,),
            fixed="""\
class Pipe:
    def __init__(self, unet):
        self.unet = unet

    def prepare(self, latents, mean, device):
        latents = latents.to(device)
        return latents - mean.to(device=device)
""",
        ),
        Bad(
            """\
from diffusers import DiffusionPipeline

class Pipe(DiffusionPipeline):
    def encode(self, ids, image):
        hidden = self.text_encoder(ids.to(self.text_encoder.device))
        latents = self.vae.encode(image.to(self.device))
        return hidden, latents
""",
            lines=(5, 6),
        ),
        Bad(
            """\
def execution_device(module):
    if is_module_offloaded(module):
        return module._hf_hook.execution_device
    return next(module.parameters()).device
""",
            lines=(4,),
        ),
        Bad(
            """\
import torch

class Packed(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.register_buffer("codes", torch.zeros(size))

    def prepare(self, helper):
        helper.start(next(self.parameters()).device)
""",
            lines=(9,),
        ),
        Bad(
            """\
import torch

class Prompted(torch.nn.Module):
    def forward(self, mask: torch.Tensor, size):
        prefix = torch.ones(mask.shape[0], size).to(self.device)
        return torch.cat((prefix, mask), dim=1)

    def run(self, ids):
        return self.model(ids.to(next(self.model.parameters()).device))
""",
            lines=(5, 9),
        ),
        Bad(
            """\
import torch

def devices_of(model: torch.nn.Module):
    for name, below in model.named_modules():
        print(name, next(below.parameters()).device)
""",
            lines=(5,),
        ),
    )
    good = (
        Good(
            """\
import torch

class Encoder(torch.nn.Module):
    def encode(self, ids, output_device: torch.device):
        out = self.model(ids.to(self.device))
        return out.to(output_device)
"""
        ),
        Good(
            """\
import torch

def devices_of(model: torch.nn.Module):
    for name, below in model.named_modules():
        if isinstance(below, torch.nn.Linear):
            print(name, next(below.parameters()).device)
"""
        ),
        Good(
            """\
class Pipe:
    def prepare(self, latents, device=None):
        device = device or self.device
        if device is None:
            device = self.device
        return latents.to(device)
"""
        ),
        Good(
            """\
class Pipe:
    def prepare(self, latents, device=None):
        if device is None:
            return latents.to(self.device)
        return latents.to(device)
"""
        ),
        Good(
            """\
import torch

class Layer(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = torch.nn.Linear(size, size)
        self.register_buffer("codes", torch.zeros(size))

    def forward(self, x):
        return self.linear(x.to(next(self.parameters()).dtype))

    def where(self):
        return next(self.parameters()).device
"""
        ),
        Good(
            """\
def execution_device(module):
    if is_module_offloaded(module):
        return module._hf_hook.execution_device
    device = next(module.parameters()).device
    if device.type == "meta":
        return module._hf_hook.execution_device
    return device
"""
        ),
        Good(
            """\
class Loader:
    def fetch(self, batch, device):
        batch = batch.to(device)
        kept = batch.to(self.device) if self.device != device else batch
        return kept
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        said: set[int] = set()
        for found in self._all(module):
            if found.site.start not in said:
                said.add(found.site.start)
                yield found

    def _all(self, module: Module) -> Iterator[Finding]:
        for function in functions(module):
            yield from self._given_another(module, function)
            yield from self._first_parameter(module, function)
            yield from self._follows_weights(module, function)
            yield from self._input_of(module, function)
            yield from self._of_each(module, function)
        for cls in module.nodes(ast.ClassDef):
            if is_pipeline(module, cls):
                yield from self._component(module, cls)

    def _given_another(self, module: Module, function: FunctionNode) -> Iterator[Finding]:
        for said, parameter, own in own_instead_of_given(module, function):
            edit = module.replace(said, parameter.arg)
            yield self.finding(
                module,
                said,
                f"`self.device` is used here, although `{function.name}` is given "
                f"`{parameter.arg}`: the two differ with offloading, or with components on "
                "several devices",
                severity=None if own else Severity.NOTE,
                told=True,
                trail=[(parameter, f"`{parameter.arg}` is given here")],
                fixes=[module.fix(f"use `{parameter.arg}`", Safety.UNSAFE, edit)],
            )

    def _follows_weights(self, module: Module, function: FunctionNode) -> Iterator[Finding]:
        for place, given, meeting in made_beside_weights(module, function):
            yield self.finding(
                module,
                place,
                f"`{one_line(module, place)}` is the device of the weights, but the tensor "
                f"is used with `{one_line(module, given)}`: while weights are offloaded, "
                "inputs are elsewhere",
                severity=Severity.NOTE,
                trail=[(meeting, "they meet here")],
                told="accelerate" in imported_packages(module),
            )

    def _input_of(self, module: Module, function: FunctionNode) -> Iterator[Finding]:
        for said, owner in inputs_moved_to_weights(module, function):
            yield self.finding(
                module,
                said,
                f"`{owner}` may compute on another device than its first parameter, which is on "
                "meta or the CPU while it is offloaded or not yet loaded",
                severity=Severity.NOTE,
                told=True,
            )

    def _of_each(self, module: Module, function: FunctionNode) -> Iterator[Finding]:
        for call in parameters_of_each(module, function):
            yield self.finding(
                module,
                call,
                "`next` raises StopIteration for modules without parameters, such as those that "
                "keep their weights in buffers",
                severity=Severity.NOTE,
                told=True,
            )

    def _component(self, module: Module, cls: ast.ClassDef) -> Iterator[Finding]:
        for said, called in devices_of_components(module, cls):
            yield self.finding(
                module,
                said,
                f"`{one_line(module, said)}` is where offloaded weights are, but `{called}` "
                "computes on `self._execution_device`",
                severity=None if is_made_for_offloading(module, said) else Severity.NOTE,
                told=True,
            )

    def _first_parameter(self, module: Module, function: FunctionNode) -> Iterator[Finding]:
        for call, owner, device in devices_of_first_parameters(module, function):
            if module.text(owner) == "self" and has_buffers_only(module, call):
                yield self.finding(
                    module,
                    call,
                    "this class keeps its tensors in buffers: there is no first parameter, and "
                    "`next` raises StopIteration",
                    severity=Severity.ERROR,
                    confidence=Confidence.MEDIUM,
                )
            elif knows_hooks(module, function) and not tests_meta(module, function):
                shown = module.text(owner)
                yield self.finding(
                    module,
                    device,
                    f"the device may be meta: a parent of offloaded modules has no hook of its "
                    f"own, and the parameters of `{shown}` are on meta until a hook loads them",
                    confidence=Confidence.MEDIUM,
                )
