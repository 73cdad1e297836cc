from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.copies._streams import runs_on_side_stream
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called, receiver, root_of
from tensortrail.rules.shared.origins import behind


class RecordedForItsOwnStream(Rule):
    """`record_stream` names the stream on which the tensor was made, which has no effect.

    ## What it does
    Reports `x.record_stream(torch.cuda.current_stream())` under `with torch.cuda.stream(side):`, if
    `x` was made under it too. Methods and functions of the file that are called under such a `with`
    are followed.

    ## Why is this bad?
    The memory is reused while the other stream may still read it, and values are wrong now and
    then. `record_stream` should name the *other* stream, the one that was current before the
    `with`. Inside it, the current stream is `side`, to which the memory belongs already.

    ## Fix safety
    No fix is offered: call `current_stream()` before the `with`, and pass its result.

    ## References
    - pytorch documentation of `torch.Tensor.record_stream`
    - huggingface/diffusers pull request 12721
    """

    code = "XFR611"
    name = "recorded-for-its-own-stream"
    triggers = (("record_stream", "current_stream", "with "),)

    bad = (
        Bad(
            """\
import torch

def bring(weights, side, device):
    with torch.cuda.stream(side):
        moved = weights.to(device, non_blocking=True)
        moved.record_stream(torch.cuda.current_stream())
    return moved
""",
            lines=(6,),
            instead="""\
import torch

def bring(weights, side, device):
    user = torch.cuda.current_stream()
    with torch.cuda.stream(side):
        moved = weights.to(device, non_blocking=True)
        moved.record_stream(user)
    return moved
""",
        ),
        Bad(
            """\
from contextlib import nullcontext
import torch

class Group:
    def _bring(self, parameter, kept):
        parameter.data = kept.to(self.device, non_blocking=True)
        parameter.data.record_stream(torch.cuda.current_stream())

    def _bring_all(self):
        for parameter, kept in self.kept.items():
            self._bring(parameter, kept)

    def onload(self):
        around = nullcontext() if self.stream is None else torch.cuda.stream(self.stream)
        with around:
            self._bring_all()
""",
            lines=(7,),
        ),
    )
    good = (
        Good(
            """\
import torch

def bring(weights, given, side, device):
    with torch.cuda.stream(side):
        moved = weights.to(device, non_blocking=True)
        given.record_stream(torch.cuda.current_stream())
    torch.cuda.current_stream().wait_stream(side)
    moved.record_stream(torch.cuda.current_stream())
    return moved

class Other:
    def use(self, x):
        y = x.to("cuda")
        y.record_stream(torch.cuda.current_stream())

    def run(self, x):
        self.use(x)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for call in module.calls("record_stream"):
            made = _made_before(module, call) if _of_current(module, call) else None
            around = runs_on_side_stream(module, made) if made is not None else None
            if around is None or runs_on_side_stream(module, call) is None:
                continue
            yield self.finding(
                module,
                call,
                "the current stream here is the one on which the tensor was made, so nothing is "
                "recorded: take `current_stream()` before the `with` that changes it",
                trail=[
                    (around, "here the side stream becomes the current one"),
                    (made, "the tensor is made under it"),
                    (call, "and recorded for the same stream"),
                ],
            )


def _of_current(module: Module, call: ast.Call) -> bool:
    stream = behind(module, call.args[0]) if len(call.args) == 1 else None
    if not isinstance(stream, ast.Call) or called(stream) != "current_stream":
        return False
    innermost = module.contexts_of(call)[:1]
    return module.contexts_of(stream)[:1] == innermost


def _made_before(module: Module, call: ast.Call) -> ast.Assign | None:
    """The nearest statement that binds what is recorded, if a call makes it there."""
    owner = receiver(call)
    names = {module.text(owner), module.text(root_of(owner))} if owner is not None else set()
    for assign in module.earlier(call, ast.Assign):
        if names & set(map(module.text, assign.targets)):
            same = list(module.contexts_of(assign)) == list(module.contexts_of(call))
            return assign if isinstance(assign.value, ast.Call) and same else None
    return None
