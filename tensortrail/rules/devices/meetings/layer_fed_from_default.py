from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.calls.explained import is_followed_by
from tensortrail.rules.devices.shared.calls.own_layers import fed_from_default, has_no_weights
from tensortrail.rules.devices.shared.written_for.beforehand import need_not_move
from tensortrail.rules.devices.shared.written_for.device_aware import is_of_module, sets_up
from tensortrail.rules.devices.shared.written_for.makers import (
    left_to_its_default,
    made_without_device,
    makers_and_callers,
)
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.moves import TO_DEVICE
from tensortrail.rules.shared.sentences import one_line
from tensortrail.rules.view import FunctionNode


class LayerFedFromDefault(Rule):
    """A layer of a module only gets tensors that are on the default device.

    ## What it does
    Looks at methods of modules. Reports, as a note, a call of one of the object's layers, such as
    `self.encoder(coords, mask)`, if every tensor that it gets was made in the method without a
    device: by a factory, or by a function of the file that uses the default device unless it gets
    another.

    Not reported: methods that set the object up, layers without weights as far as their class is
    known, and calls whose result is moved.

    ## Why is this bad?
    Once the module is on a GPU, its weights are there and the tensors are not, and the call raises
    "Expected all tensors to be on the same device".

    ## Fix safety
    No fix is offered: the tensors belong on the device of the weights.

    ## References
    - facebookresearch/esm, commit 5a72e2c8a5
    """

    code = "DEV668"
    name = "layer-fed-from-default"
    severity = Severity.NOTE
    proven = False
    confidence = Confidence.MEDIUM
    triggers = (("torch", "Module", "self."),)

    bad = (
        Bad(
            """\
import torch
from torch import nn

def batch(rows, device=None):
    found = torch.tensor(rows)
    return found if device is None else found.to(device)

class Sampler(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder

    def sample(self, rows):
        found = batch(rows)
        return self.encoder(found)

    def blank(self, n):
        rows = torch.zeros(n, 3)
        return self.encoder(rows)
""",
            lines=(15, 18),
            instead="""\
import torch
from torch import nn

def batch(rows, device=None):
    found = torch.tensor(rows)
    return found if device is None else found.to(device)

class Sampler(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder

    def sample(self, rows):
        found = batch(rows, device=next(self.encoder.parameters()).device)
        return self.encoder(found)

    def blank(self, rows):
        return self.encoder(rows.new_zeros(len(rows), 3))
""",
        ),
    )
    good = (
        Good(
            """\
import torch
from torch import nn

class Sampler(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder, self.shape = encoder, self.tried(encoder)
        self.encoder(torch.zeros(1, 3))

    def sample(self, rows, x):
        return self.encoder(x, torch.zeros(len(x), 3))

    def tried(self, encoder):
        return encoder(torch.zeros(1, 3)).shape

    def shown(self, rows):
        return self.sample(rows, torch.zeros(1, 3))
"""
        ),
        Good(
            """\
import torch
from torch import nn

class Sampler(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder

    def sample(self, rows):
        return self.encoder(torch.tensor(rows).to(self.encoder.weight.device))
"""
        ),
        Good(
            """\
import torch
from torch import nn

class Waves(nn.Module):
    def forward(self, x):
        return x.sin()

class Timed(nn.Module):
    def __init__(self, other):
        super().__init__()
        self.waves, self.other = Waves(), other

    def forward(self, x):
        blank = self.other(torch.zeros(len(x), 3)).to(x.device)
        return x + blank, self.waves(torch.zeros(3, 3))
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        made = (*made_without_device(module), *left_to_its_default(module))
        for function in makers_and_callers(module, made):
            if is_of_module(module, function) and not sets_up(function):
                yield from self._of(module, function)

    def _of(self, module: Module, function: FunctionNode) -> Iterator[Finding]:
        met = {meeting.node for meeting in module.places(function).meetings}
        reported: set[ast.AST] = set()
        for call, made in fed_from_default(module, function):
            if call in met or made in reported or need_not_move(module, call):
                continue
            if has_no_weights(module, call) or is_followed_by(module, call, TO_DEVICE):
                continue
            reported.add(made)
            yield self.finding(
                module,
                made,
                f"`{one_line(module, call.func)}` only gets tensors on the default device, but its "
                "weights may be on a GPU",
                trail=((made, "made without a device"), (call, "given to a layer of the object")),
            )
