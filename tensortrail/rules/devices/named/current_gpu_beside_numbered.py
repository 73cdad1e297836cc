from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.named.at_hand import at_hand_in
from tensortrail.rules.devices.shared.named.decided_by import decided, meets_given
from tensortrail.rules.devices.shared.named.written import (
    given_instead,
    is_without_number,
    numbered_beside,
    written_literals,
)
from tensortrail.rules.shared.conditions import are_exclusive
from tensortrail.rules.shared.functions import functions
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.sentences import one_line
from tensortrail.rules.view import FunctionNode


class CurrentGpuBesideNumbered(Rule):
    """A function puts one thing on the current GPU and another on a GPU by its number.

    ## What it does
    Reports, as a note, `"cuda"` and `.cuda()` in a function that puts something else on
    `f"cuda:{number}"`, if nothing in the project makes that GPU the current one.

    Not reported: two branches of one condition, and functions with a device at hand (see DEV510).

    ## Why is this bad?
    With any number but that of the current GPU, the first operation on both raises "Expected all
    tensors to be on the same device". With the first GPU, which is the current one, it works.

    ## Fix safety
    Unsafe: the tensor goes to the GPU with the number.

    ## References
    - zjunlp/EasyEdit, `compute_z`
    """

    code = "DEV638"
    name = "current-gpu-beside-numbered"
    severity = Severity.NOTE
    triggers = (("cuda:", "def "),)
    bad = (
        Bad(
            """\
import torch

def searched(model, ids, options):
    ids = torch.tensor(ids).to(f"cuda:{options.gpu}")
    change = torch.zeros(model.config.width, requires_grad=True, device="cuda")
    return model(ids) + change
""",
            lines=(5,),
            fixed="""\
import torch

def searched(model, ids, options):
    ids = torch.tensor(ids).to(f"cuda:{options.gpu}")
    change = torch.zeros(model.config.width, requires_grad=True, device=f"cuda:{options.gpu}")
    return model(ids) + change
""",
        ),
    )
    good = (
        Good(
            """\
import torch

def placed(model, number):
    if number >= 0:
        return model.to(f"cuda:{number}")
    else:
        return model.cuda()
"""
        ),
        Good(
            """\
import torch

def started(model, number):
    torch.cuda.set_device(number)
    return model.to("cuda"), torch.zeros(3, device=f"cuda:{number}")
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for function in functions(module):
            yield from self._beside(module, function)

    def _beside(self, module: Module, function: FunctionNode) -> Iterator[Finding]:
        numbered = numbered_beside(module, function)
        if numbered is None or at_hand_in(module, function) is not None:
            return
        if module.sets_current_gpu():
            return
        shown = module.text(numbered)
        for call, said in written_literals(module, function):
            meant = decided(module, call, shown) or are_exclusive(module, call, numbered)
            meant = meant or meets_given(module, call, shown)
            if is_without_number(module, said) and not meant:
                yield self.finding(
                    module,
                    call if said is None else said,
                    f"`{one_line(module, call)}` is on the current GPU, but the function puts "
                    f"others on `{one_line(module, numbered)}`, which may be another one",
                    trail=[(numbered, "the GPU of the others")],
                    fixes=[given_instead(module, call, said, shown)],
                )
