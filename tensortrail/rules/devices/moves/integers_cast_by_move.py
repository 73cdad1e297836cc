from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.moves.integers_cast import Cast, integers_cast
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called
from tensortrail.rules.shared.sentences import one_line

_NET = """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(10, 4))
        self.embed = nn.Embedding(8, 4)
        self.layer = nn.Linear(4, 4)

"""


class IntegersCastByMove(Rule):
    """Indices or labels are moved by `ids.to(x)`, which makes them floats.

    ## What it does
    Reports `ids.to(x)` and `ids.type_as(x)`, where `x` is a tensor of floats (a layer gave it or
    takes it), if the result is used as integers only can be: as an index, in an embedding, in
    `gather`, or, where the values are known to be integers, as the labels of `cross_entropy`.

    Not reported: other uses of such a move, for which it is often meant.

    ## Why is this bad?
    The next operation raises: `.to(other)` takes the type of the other tensor along with its
    device.

    ## What you may see
    ```
    IndexError: tensors used as indices must be long, int, byte or bool tensors
    RuntimeError: expected target dtype to be Long or Byte, but got Float
    ```

    ## Fix safety
    Unsafe: the move takes the device only.

    ## References
    - pytorch documentation of `torch.Tensor.to`: `to(other)` gives the dtype and device of `other`
    """

    code = "DEV651"
    name = "integers-cast-by-move"
    severity = Severity.ERROR
    proven = False
    triggers = (("torch", ".to("), ("torch", ".type_as("))

    bad = (
        Bad(
            """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(10, 4))
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        positions = torch.arange(x.shape[1])
        positions = positions.to(x)
        return self.layer(x) + self.table[positions]
""",
            lines=(12,),
            fixed="""\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(10, 4))
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        positions = torch.arange(x.shape[1])
        positions = positions.to(x.device)
        return self.layer(x) + self.table[positions]
""",
        ),
        Bad(
            _NET
            + """\
    def forward(self, x):
        hidden = self.layer(x)
        best = hidden.argmax(-1).type_as(hidden)
        return self.embed(best)

    def error(self, x):
        logits = self.layer(x)
        labels = torch.tensor([0, 2])
        return nn.functional.cross_entropy(logits, labels.to(logits))

    def picked(self, x, ids):
        hidden = self.layer(x)
        return hidden.gather(-1, ids.to(hidden))
""",
            lines=(13, 19, 23),
            fixed=_NET
            + """\
    def forward(self, x):
        hidden = self.layer(x)
        best = hidden.argmax(-1).to(hidden.device)
        return self.embed(best)

    def error(self, x):
        logits = self.layer(x)
        labels = torch.tensor([0, 2])
        return nn.functional.cross_entropy(logits, labels.to(logits.device))

    def picked(self, x, ids):
        hidden = self.layer(x)
        return hidden.gather(-1, ids.to(hidden.device))
""",
        ),
    )
    good = (
        Good(
            _NET
            + """\
    def forward(self, x, ids):
        hidden = self.layer(x)
        best = hidden.argmax(-1).to(hidden.device)
        ids = ids.to(best)
        return self.embed(best) + self.table[ids]

    def error(self, x, target):
        logits = self.layer(x)
        return nn.functional.cross_entropy(logits, target.to(logits))

    def mask(self, x, mask):
        hidden = self.layer(x)
        return nn.functional.binary_cross_entropy_with_logits(hidden, mask.to(hidden))

    def cast_back(self, x, ids):
        hidden = self.layer(x)
        ids = ids.to(hidden)
        ids = ids.long()
        return self.embed(ids)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for cast in integers_cast(module):
            shown, by = one_line(module, cast.move), one_line(module, cast.by)
            yield self.finding(
                module,
                cast.move,
                f"`{shown}` also converts to the dtype of `{by}`, but line {cast.use.lineno} needs "
                "integers",
                trail=[(cast.move, "made a tensor of floats"), (cast.taker, "integers are needed")],
                fixes=[_device_only(module, cast)],
            )


def _device_only(module: Module, cast: Cast) -> Fix | None:
    func, by = cast.move.func, module.text(cast.by)
    if not isinstance(func, ast.Attribute) or not isinstance(cast.by, (ast.Name, ast.Attribute)):
        return None
    owner = module.text(func.value)
    edit = module.replace(cast.move, f"{owner}.to({by}.device)")
    if called(cast.move) == "to":
        edit = module.replace(cast.by, f"{by}.device")
    return module.fix("move it without changing its dtype", Safety.UNSAFE, edit)
