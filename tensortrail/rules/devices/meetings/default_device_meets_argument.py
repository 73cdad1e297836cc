from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.defaults import with_defaults
from tensortrail.rules.devices.shared.meetings.legal import is_legal
from tensortrail.rules.devices.shared.named.devices_said import devices_said
from tensortrail.rules.devices.shared.written_for.device_aware import sets_up
from tensortrail.rules.places import Held, Meeting, What, Where
from tensortrail.rules.shared.always_given import is_always_given
from tensortrail.rules.shared.functions import functions, parameter_names
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.sentences import one_line
from tensortrail.rules.view import FunctionNode

_DEVICES = ("cuda", "cpu", "mps", "xpu", "npu")


class DefaultDeviceMeetsArgument(Rule):
    """A function makes a tensor on its default `device` and combines it with the caller's tensor.

    ## What it does
    Reports, as a note, a function with a default such as `device="cuda"` or `device="cpu"`, if a
    tensor that it makes on this device is combined with a tensor argument that it does not move.

    Not reported: functions that test the type or number of the device.

    ## Why is this bad?
    A caller that leaves `device` out gets a device mismatch, unless its tensor happens to be on the
    default device. The tensor argument already says which device is right.

    ## Fix safety
    No fix is offered: callers may pass the argument.

    ## References
    - huggingface/pytorch-image-models, `one_hot` of mixup
    """

    code = "DEV520"
    name = "default-device-meets-argument"
    since = "0.2.0"
    severity = Severity.WARNING
    warns = False
    notes = False
    needs_callers = True
    confidence = Confidence.MEDIUM
    triggers = tuple(("torch", f"{quote}{device}") for device in _DEVICES for quote in ('"', "'"))

    bad = (
        Bad(
            """\
import torch

def one_hot(x: torch.Tensor, classes, device="cuda"):
    blank = torch.zeros(len(x), classes, device=device)
    return blank.scatter_(1, x, 1.0)
""",
            lines=(4,),
            instead="""\
import torch

def one_hot(x: torch.Tensor, classes):
    blank = torch.zeros(len(x), classes, device=x.device)
    return blank.scatter_(1, x, 1.0)
""",
        ),
        Bad(
            """\
import torch

def noised(x, scale, *, device="cpu"):
    x = x.unsqueeze(0).contiguous()
    noise = torch.randn(len(x), 3, device=device)
    return x + noise * scale
""",
            lines=(5,),
        ),
    )
    good = (
        Good(
            """\
import torch

def one_hot(x: torch.Tensor, classes, device="cuda"):
    blank = torch.zeros(len(x), classes, device=device)
    return blank.scatter_(1, x.to(device), 1.0)
"""
        ),
        Good(
            """\
import torch

def one_hot(x: torch.Tensor, classes, device=None):
    device = x.device if device is None else device
    blank = torch.zeros(len(x), classes, device=device)
    return blank.scatter_(1, x, 1.0)
"""
        ),
        Good(
            """\
import torch

def centres(rows, stride=16, device="cuda"):
    places = torch.arange(rows, device=device) * stride
    stride = places.new_full((rows,), stride)
    return torch.stack([places, stride])
"""
        ),
        Good(
            """\
import torch

def table(rows: int, device="cuda"):
    return torch.zeros(rows, device=device) + torch.arange(rows, device=device)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for function in functions(module):
            defaults = _default_devices(module, function)
            if not defaults or sets_up(function) or module.function_of(function) is not None:
                continue
            reported: set[ast.AST] = set()
            for meeting in module.places(function).meetings:
                for made, given in meeting.pairs:
                    names = _in_conflict(meeting, made, given, function, defaults)
                    node = _maker(module, function, meeting, names[0]) if names else None
                    if names is not None and node is not None and node not in reported:
                        reported.add(node)
                        given_always = is_always_given(module, function, names[0])
                        severity = Severity.NOTE if given_always else None
                        yield self._reported(module, meeting, node, *names, defaults, severity)

    def _reported(
        self,
        module: Module,
        meeting: Meeting,
        node: ast.AST,
        name: str,
        other: str,
        defaults: dict[str, ast.Constant],
        severity: Severity | None,
    ) -> Finding:
        line = getattr(meeting.node, "lineno", 0)
        return self.finding(
            module,
            node,
            f"`{one_line(module, node)}` is on `{name}`, by default {defaults[name].value!r}, but "
            f"line {line} combines it with `{other}`, which is on the caller's device",
            severity=severity,
            trail=[
                (defaults[name], f"the default of `{name}`"),
                (node, f"made on `{name}`"),
                (meeting.node, f"meets `{other}`"),
            ],
        )


def _default_devices(module: Module, function: FunctionNode) -> dict[str, ast.Constant]:
    """Parameters with the name of a device as their default, of which callers may make use: text
    has no `type` and no `index`."""
    asked = {
        node.value.id
        for node in module.nodes(ast.Attribute, function)
        if isinstance(node.value, ast.Name) and node.attr in ("type", "index")
    }
    return {
        each.arg: default
        for each, default in with_defaults(function.args)
        if isinstance(default, ast.Constant)
        and isinstance(default.value, str)
        and default.value.partition(":")[0] in _DEVICES
        and each.arg not in asked
    }


def _in_conflict(
    meeting: Meeting,
    made: Held,
    given: Held,
    function: FunctionNode,
    defaults: dict[str, ast.Constant],
) -> tuple[str, str] | None:
    """The device argument that one operand lies on, and the argument that the other one is."""
    there, here = made.only, given.only
    if there is None or here is None or there.given or here.given:
        return None
    if What.TENSOR is not made.what or What.TENSOR is not given.what:
        return None
    if there.where is not Where.DEVICE or there.subject not in defaults:
        return None
    if here.where is not Where.OF or is_legal(meeting, made) or is_legal(meeting, given):
        return None
    arguments = parameter_names(function)
    root = here.subject.partition(".")[0].partition("[")[0]
    return (there.subject, here.subject) if root in arguments else None


def _maker(
    module: Module, function: FunctionNode, meeting: Meeting, device: str
) -> ast.Call | None:
    """The last call before the meeting that makes a tensor on the argument."""
    line = getattr(meeting.node, "lineno", 0)
    makers = [
        call
        for call, said in devices_said(module, function)
        if isinstance(said, ast.Name) and said.id == device and call.lineno <= line
    ]
    return max(makers, key=lambda each: (each.lineno, each.col_offset), default=None)
