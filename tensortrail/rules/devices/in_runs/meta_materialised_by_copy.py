from __future__ import annotations

import ast
import os
from collections.abc import Iterator

from tensortrail.findings import Edit, Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Event, Good, Module, Rule, Timeline
from tensortrail.rules.devices.shared.in_runs.errors import is_move, meta_operand
from tensortrail.rules.devices.shared.in_runs.on_meta import (
    is_made_on_meta,
    is_the_same,
    may_be_caught,
    says_meta,
)
from tensortrail.rules.devices.shared.moves.meta_in_other_branch import untested_moves
from tensortrail.rules.shared.failures import NO_VALUES, errors, weight
from tensortrail.rules.shared.given_devices import said_device
from tensortrail.rules.shared.history import lacking_file, not_loaded, put_there
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.lines import doer, where
from tensortrail.rules.shared.moves import MOVES
from tensortrail.rules.shared.operands import Operand, called
from tensortrail.rules.shared.sentences import one_line


class MetaMaterialisedByCopy(Rule):
    """A meta tensor or module is moved to a device as if it had data.

    ## What it does
    In code, reports `p.to(device)`, `p.cuda()` and `p.cpu()` under a condition that says that `p`
    is on meta, or if `p` was made on meta on every path. Reported as a warning: a move in a branch
    that does not ask whether `p` is on meta, although another branch of the same `if` does before
    it moves `p` or the module that has it.

    In a recorded run, reports moves and copies that failed because their source is on meta, with
    the name of the parameter and the line that put it there.

    ## Why is this bad?
    The move raises NotImplementedError: a tensor on meta has no data to copy. Memory has to be made
    on the device and filled from a checkpoint. Offloaded weights come back when their hooks run.

    ## What you may see
    ```
    NotImplementedError: Cannot copy out of meta tensor; no data! Please use torch.nn.Module
    ```

    ## Fix safety
    For display only: the memory that `to_empty` makes has to be filled.

    ## References
    - pytorch/pytorch documentation of `torch.nn.Module.to_empty`
    """

    code = "DEV507"
    name = "meta-materialised-by-copy"
    since = "0.2.0"
    severity = Severity.ERROR
    triggers = (("meta", ".to("), ("meta", ".cuda("), ("meta", ".cpu("))

    bad = (
        Bad(
            """\
import torch

def materialise(module):
    for name, param in module.named_parameters():
        if param.device == torch.device("meta"):
            param = param.to(device="cuda")
        yield name, param
""",
            lines=(6,),
            instead="""\
import torch

def materialise(module):
    for name, param in module.named_parameters():
        if param.device == torch.device("meta"):
            param = torch.empty_like(param, device="cuda")  # a load fills it
        yield name, param
""",
        ),
        Bad(
            """\
def place(weight, device):
    if weight.is_meta:
        return weight.to(device)
    return weight
""",
            lines=(3,),
        ),
        Bad(
            """\
import torch

def room(rows):
    table = torch.empty(rows, 8, device="meta")
    return table.to("cuda")
""",
            lines=(5,),
            instead="""\
import torch

def room(rows):
    table = torch.empty(rows, 8, device="meta")
    return torch.empty_like(table, device="cuda")
""",
        ),
        Bad(
            """\
def quantize(layer, index):
    if layer.bits == 8 and str(layer.weight.device) != "meta":
        layer = layer.cuda(index)
    elif layer.bits == 4:
        layer.weight = layer.weight.cuda(index)
    return layer
""",
            lines=(5,),
            instead="""\
def quantize(layer, index):
    if layer.bits == 8 and str(layer.weight.device) != "meta":
        layer = layer.cuda(index)
    elif layer.bits == 4 and str(layer.weight.device) != "meta":
        layer.weight = layer.weight.cuda(index)
    return layer
""",
        ),
    )
    good = (
        Good(
            """\
import torch

def room(rows, real):
    table = torch.empty(rows, 8, device="meta")
    if real:
        table = torch.empty(rows, 8)
    return table.to("cuda")
"""
        ),
        Good(
            """\
import torch

def place(weight, device):
    if weight.is_meta:
        return torch.empty_like(weight, device=device)
    return weight.to(device)
"""
        ),
        Good(
            """\
def place(weight, device):
    if not weight.is_meta:
        weight = weight.to(device)
    return weight
"""
        ),
        Good(
            """\
def place(weight, loaded, device):
    if weight.device.type == "meta":
        weight = loaded.to(device)
    return weight
"""
        ),
        Good(
            """\
import torch

def place(weight: torch.Tensor, device):
    if weight.is_meta:
        weight = torch.zeros(weight.shape)
        weight = weight.to(device)
    return weight
"""
        ),
        Good(
            """\
import torch

def cast(weight):
    if weight.is_meta:
        return weight.to(torch.bfloat16).to("meta")
    return weight
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        yield from (self._untested(module, *each) for each in untested_moves(module))
        for call in module.calls(*MOVES):
            func = call.func
            if not isinstance(func, ast.Attribute) or not _goes_to_a_device(module, call):
                continue
            test = says_meta(module, call, module.text(func.value))
            if test is not None and is_the_same(module, func.value, test):
                yield self.finding(
                    module,
                    call,
                    f"`{one_line(module, func.value)}` is on meta here: there is nothing to "
                    "copy, and this raises",
                    trail=[(test, "the condition says so")],
                )
                continue
            made = is_made_on_meta(module, func.value)
            if made is not None and not may_be_caught(module, call):
                yield self.finding(
                    module,
                    call,
                    f"`{one_line(module, func.value)}` was made on meta: there is nothing to "
                    "copy, and this raises",
                    trail=[(made, "made here, without values")],
                )

    def _untested(self, module: Module, call: ast.Call, test: ast.expr) -> Finding:
        moved = one_line(module, call.func).rpartition(".")[0]
        return self.finding(
            module,
            call,
            f"`{moved}` may be on meta, and then this raises: the branch in line {test.lineno} "
            "tests that before it moves, and this one does not",
            severity=Severity.WARNING,
            trail=[(test, "another branch tests it")],
        )

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for events in errors(timeline, NO_VALUES):
            moves = [each for each in events if is_move(each) and meta_operand(timeline, each)]
            source = meta_operand(timeline, moves[0]) if moves else None
            if source is None:
                continue
            event = moves[0]
            severity, confidence = weight(timeline, moves)
            why, key = _why(timeline, event, source)
            yield self.finding_in_run(
                timeline,
                event,
                f"`{event.op}` has nothing to copy: {called(timeline, source)} is on meta{why}",
                severity=severity,
                confidence=confidence,
                about=source.storage,
                fixes=[_given_values(key) if key else _to_empty(timeline, event)],
                evidence={"attempts": str(len(moves))},
            )


def _why(timeline: Timeline, event: Event, source: Operand) -> tuple[str, str]:
    """Why there is no data, and the key that a loaded state dict or file should have had."""
    if lacking := not_loaded(timeline, source.storage, event):
        why = f"; the state dict loaded{where(lacking)} lacks it, and nothing else loads it"
        return why, str(lacking.facts["missing"])
    file, key = lacking_file(timeline, source.storage, event)
    if file:
        return f"; {os.path.basename(file)}, which is loaded there, has no `{key}`", key
    by = put_there(timeline, source.storage, event) if source.storage else None
    return (f", put there by {doer(by)}" if by else ""), ""


def _given_values(key: str) -> Fix:
    """`to_empty` of the whole module would throw away what was loaded."""
    owner = key.rpartition(".")[0]
    itself = f"`get_submodule({owner!r})`" if owner else "the module"
    what = (
        f"give it values before the move: load a state dict with `{key}`, or call `to_empty` and "
        f"`reset_parameters()` of {itself}"
    )
    return Fix(what, Safety.DISPLAY, ())


def _to_empty(timeline: Timeline, event: Event) -> Fix | None:
    """For `module.to(device)`: the module's move ends in its tensors' ones, in library code."""
    if event.site is None or event.by is None or event.op != "Tensor.to":
        return None
    call, device = timeline.call(event.site, "to"), timeline.argument(event.site, "to")
    if call is None or device is None:
        return None
    head, _, tail = call.source.rpartition(".to(")
    if tail.strip() not in (f"{device.source})", f"device={device.source})"):
        return None
    edit = Edit(call, f"{head}.to_empty(device={device.source})")
    what = "make memory there with `to_empty`, then load the weights into it"
    return timeline.fix(what, Safety.DISPLAY, edit)


def _goes_to_a_device(module: Module, call: ast.Call) -> bool:
    if module.text(call.func).rpartition(".")[2] in MOVES - {"to"}:
        return True
    said = said_device(module, call)
    return said is not None and "meta" not in module.text(said)
