from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.modules.numbered_parts import Crossed, crossed
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.sentences import one_line


class PartsOnSeveralGpus(Rule):
    """A module is spread over several GPUs, and a tensor is not moved from one part to the next.

    ## What it does
    Looks at classes that put their own modules on two or more devices, each with a number or in a
    variable: `self.first = nn.Linear(4, 4).to("cuda:0")`. Reports

    - a call of one part with the output of another one;
    - a sum or `torch.cat` of the outputs of two parts,

    if the tensor was not moved in between.

    ## Why is this bad?
    The call raises "Expected all tensors to be on the same device, but found at least two devices,
    cuda:0 and cuda:1": the weights of the second part are on another GPU than the tensor.

    ## Fix safety
    No fix is offered: either of the two may be moved.

    ## References
    - pytorch tutorial on model parallelism
    """

    code = "DEV587"
    name = "parts-on-several-gpus"
    since = "0.2.0"
    severity = Severity.ERROR
    proven = False
    triggers = ((".to(", "forward"), (".cuda(", "forward"))
    bad = (
        Bad(
            """\
import torch
from torch import nn

class Spread(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4).to("cuda:0")
        self.second = nn.Linear(4, 4).to("cuda:1")

    def forward(self, x):
        hidden = torch.relu(self.first(x.to("cuda:0")))
        return self.second(hidden)
""",
            lines=(12,),
            instead="""\
import torch
from torch import nn

class Spread(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4).to("cuda:0")
        self.second = nn.Linear(4, 4).to("cuda:1")

    def forward(self, x):
        hidden = torch.relu(self.first(x.to("cuda:0")))
        return self.second(hidden.to("cuda:1"))
""",
        ),
        Bad(
            """\
from torch import nn

class Spread(nn.Module):
    def __init__(self, left, right):
        super().__init__()
        self.left, self.right = left, right
        self.encoder = nn.Linear(4, 4).to(left)
        self.decoder = nn.Linear(4, 4).to(right)

    def forward(self, x):
        hidden = self.encoder(x)
        return self.decoder(hidden.to(self.right)) + hidden
""",
            lines=(12,),
        ),
    )
    good = (
        Good(
            """\
from torch import nn

class Spread(nn.Module):
    def __init__(self, left, right):
        super().__init__()
        self.right = right
        self.encoder = nn.Linear(4, 4).to(left)
        self.decoder = nn.Linear(4, 4).to(right)

    def forward(self, x):
        hidden = self.encoder(x).to(self.right)
        return self.decoder(hidden) + hidden
"""
        ),
        Good(
            """\
from torch import nn

class Together(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4).to("cuda:0")
        self.second = nn.Linear(4, 4).to("cuda:0")

    def forward(self, x):
        return self.second(self.first(x))
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for cls in module.nodes(ast.ClassDef):
            reported: set[int] = set()
            for each in crossed(module, cls):
                if each.call.lineno not in reported:
                    reported.add(each.call.lineno)
                    yield self._reported(module, each)

    def _reported(self, module: Module, found: Crossed) -> Finding:
        shown = one_line(module, found.call)
        return self.finding(
            module,
            found.call,
            f"`{shown}` combines a tensor on `{found.lies.device}` with one on "
            f"`{found.taken.device}`: nothing moves it in between",
            trail=[
                (found.lies.moved, f"this part is put on `{found.lies.device}`"),
                (found.taken.moved, f"the other part is put on `{found.taken.device}`"),
            ],
        )
