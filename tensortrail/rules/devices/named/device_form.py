from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Safety, Severity
from tensortrail.rules import Bad, Good, Kind, Module, Rule
from tensortrail.rules.devices.shared.named.forms import (
    NUMBERED,
    is_callers,
    is_number,
    is_of_tensor,
    made_device,
    other_number,
    zero_for_none,
)
from tensortrail.rules.devices.shared.named.given_by_callers import given_texts
from tensortrail.rules.devices.shared.named.mistaken_forms import (
    asks_a_device,
    compared_by_type,
    is_normalized,
    made_of_what_was_given,
    no_device,
    number_of_other_backend,
    number_or_itself,
)
from tensortrail.rules.devices.shared.named.two_forms import numbers_beside_devices
from tensortrail.rules.shared.given_devices import said_device
from tensortrail.rules.shared.given_values import passing
from tensortrail.rules.shared.imports import imports_torch
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.sentences import one_line

_CONTEXTS = frozenset({"torch.cuda.device", "torch.xpu.device", "torch.npu.device"})
_NOT_FALSE = "the first GPU has the number 0, which counts as false: it becomes `{}` here"
_NOT_ZERO = "a device without a number is the current GPU, which is not always number 0"


class DeviceForm(Rule):
    """A device is used in the wrong form: without its number, as a string, or as an int.

    ## What it does
    Reports, most of it as notes:

    - `t.device == torch.device("cuda")`, and a comparison with a bare number;
    - a comparison with `torch.device(x)` if `x` may have no number;
    - `.type` or `.index` of a value that may be a string, as an annotation, a default or a call in
      the project says;
    - `.index` used as a number, if a caller gives the device; `.index or -1`, `.index or 0`;
    - `torch.cuda.device(0)`, a context manager, or a number without its backend as a device;
    - the number of the current GPU where another path stores or returns a device.

    ## Why is this bad?
    A comparison is always False: the device of a tensor has a number, and `torch.device("cuda")`
    has none, so its `index` is None. A string has no `.type`: an AttributeError.

    ## Fix safety
    Unsafe: a comparison of types treats all GPUs as the same.

    ## References
    - huggingface/accelerate pull requests 2254 and 3895
    """

    code = "DEV513"
    name = "device-form"
    since = "0.2.0"
    severity = Severity.WARNING
    warns = False
    triggers = (
        ("device(", ".device"),
        (".index", "device"),
        ("device", ".type"),
        ("cuda", ".type"),
        ("cuda.device(",),
        ("device", "or 0"),
        (".index or -",),
        ("xpu.device(",),
        ("current_device()", "device"),
    )

    bad = (
        Bad(
            """\
import torch

def onload(tensor: torch.Tensor):
    if tensor.device != torch.device("cuda"):
        tensor = tensor.to("cuda")
    return tensor
""",
            lines=(4,),
            fixed="""\
import torch

def onload(tensor: torch.Tensor):
    if tensor.device.type != "cuda":
        tensor = tensor.to("cuda")
    return tensor
""",
        ),
        Bad(
            """\
import torch

def place(module, name, device):
    if torch.device(device) != module._parameters[name].device:
        return module._parameters[name].to(device)
""",
            lines=(4,),
        ),
        Bad(
            """\
import torch

def device_map(device):
    device = torch.device(device)
    return {"": device.index if device.type == "cuda" else device.type}
""",
            lines=(5,),
        ),
        Bad(
            """\
import torch
from typing import Union

def pick(device: Union[str, torch.device]):
    return device.type == "cuda"
""",
            lines=(5,),
            fixed="""\
import torch
from typing import Union

def pick(device: Union[str, torch.device]):
    return torch.device(device).type == "cuda"
""",
        ),
        Bad(
            """\
import torch

def move(x):
    return x.to(torch.cuda.device(1))
""",
            lines=(4,),
            fixed="""\
import torch

def move(x):
    return x.to(torch.device("cuda", 1))
""",
        ),
        Bad(
            """\
import torch

def is_here(x: torch.Tensor):
    here = torch.cuda.current_device()
    return x.device == here
""",
            lines=(5,),
        ),
        Bad(
            """\
import torch

def batches(translator, rows):
    return on_device(rows, translator.device.index or -1)
""",
            lines=(4,),
            instead="""\
import torch

def batches(translator, rows):
    index = translator.device.index
    return on_device(rows, -1 if index is None else index)
""",
        ),
        Bad(
            """\
import torch

def chosen(wanted):
    if wanted == "gpu":
        return torch.cuda.current_device()
    return torch.device(wanted)
""",
            lines=(5,),
        ),
        Bad(
            "import torch\n\nclass Engine:\n    def __init__(self, place):\n"
            "        self.place = place\n\n    def half(self, x):\n"
            '        return x.half() if self.place.type == "cuda" else x\n\n\ndef started():\n'
            '    return Engine("cuda" if torch.cuda.is_available() else "cpu")\n',
            lines=(8,),
            fixed="import torch\n\nclass Engine:\n    def __init__(self, place):\n"
            "        self.place = place\n\n    def half(self, x):\n"
            '        return x.half() if torch.device(self.place).type == "cuda" else x\n\n\n'
            "def started():\n"
            '    return Engine("cuda" if torch.cuda.is_available() else "cpu")\n',
        ),
    )
    good = (
        Good(
            "import torch\n\nclass Engine:\n    def __init__(self, place):\n"
            "        self.place = torch.device(place)\n\n    def half(self, x):\n"
            '        return x.half() if self.place.type == "cuda" else x\n\n\ndef started():\n'
            '    return Engine("cuda" if torch.cuda.is_available() else "cpu")\n'
        ),
        Good("import torch\ndef f(t):\n    return t.device == torch.device('cpu')\n"),
        Good("import torch\ndef f(t):\n    return t.device == torch.device('cuda:1')\n"),
        Good("import torch\ndef f(t):\n    return t.device == torch.device('cuda', 1)\n"),
        Good(
            """\
import torch

def f(device):
    device = torch.device(device)
    if device.type == "cuda" and device.index is None:
        device = torch.device("cuda", torch.cuda.current_device())
    return {"": device.index}
"""
        ),
        Good(
            """\
import torch
from typing import Union

def f(device: Union[str, torch.device]):
    if isinstance(device, str):
        device = torch.device(device)
    return device.type
"""
        ),
        Good(
            "import torch\ndef number(wanted):\n    if wanted is None:\n"
            "        return torch.cuda.current_device()\n    return torch.device(wanted).index\n"
        ),
        Good("import torch\ndef f(i):\n    with torch.cuda.device(i):\n        return i\n"),
        Good("import torch\ndef f(t: torch.Tensor):\n    return t.device.type, t.device.index\n"),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for compare in module.nodes(ast.Compare):
            if len(compare.ops) == 1 and isinstance(compare.ops[0], (ast.Eq, ast.NotEq)):
                yield from self._compared(module, compare, compare.left, compare.comparators[0])
                yield from self._compared(module, compare, compare.comparators[0], compare.left)
        for node in module.nodes(ast.Attribute):
            if node.attr in ("type", "index") and isinstance(node.ctx, ast.Load):
                yield from self._of_a_string(module, node)
            if node.attr == "index":
                yield from self._number(module, node)
        for call in module.nodes(ast.Call):
            yield from self._context(module, call)
            yield from self._other_backend(module, call)
            if (number := zero_for_none(module, call)) is not None:
                yield self.finding(module, number, _NOT_ZERO, severity=Severity.NOTE)
        for chosen in module.nodes(ast.IfExp):
            yield from self._rest_is_a_number(module, chosen)
        for here, what in numbers_beside_devices(module):
            yield self.finding(
                module,
                here,
                f"{what} the number of a device here and a device or its name on another path: "
                "comparing it, or asking for its type, fails for one of them",
                severity=Severity.NOTE,
                confidence=Confidence.MEDIUM,
            )

    def _compared(
        self, module: Module, compare: ast.Compare, other: ast.expr, tensors: ast.expr
    ) -> Iterator[Finding]:
        """`other` against `tensors`, the device of a tensor."""
        made = made_device(module, other)
        number = is_number(module, other)
        if not (number or made) or not is_of_tensor(module, tensors):
            return
        if number:
            yield self.finding(
                module,
                compare,
                f"`{one_line(module, other)}` is the number of a device: it never equals a "
                "torch.device",
                severity=Severity.ERROR,
            )
        elif made is not None and len(made.args) == 1 and not made.keywords:
            yield from self._with_made(module, compare, made.args[0], tensors)

    def _with_made(
        self, module: Module, compare: ast.Compare, given: ast.expr, tensors: ast.expr
    ) -> Iterator[Finding]:
        """`torch.device(given)` against `tensors`, the device of a tensor."""
        if isinstance(given, ast.Constant):
            if given.value in NUMBERED and not is_normalized(module, compare, tensors):
                yield self.finding(
                    module,
                    compare,
                    f"`{one_line(module, tensors)}` has a number, as in `{given.value}:0`: it "
                    f'never equals `torch.device("{given.value}")`',
                    severity=Severity.ERROR,
                    fixes=[compared_by_type(module, compare, tensors, str(given.value))],
                )
        elif is_callers(module, given):
            yield self.finding(
                module,
                compare,
                f'`{one_line(module, given)}` may be "cuda", without a number, and '
                f"`{one_line(module, tensors)}` always has one: they are then not equal",
                severity=Severity.NOTE,
                confidence=Confidence.MEDIUM,
            )

    def _of_a_string(self, module: Module, node: ast.Attribute) -> Iterator[Finding]:
        if not isinstance(node.value, (ast.Name, ast.Attribute)):
            return
        other, given = no_device(module, node.value), None
        if not other:
            given = next(given_texts(module, node.value), None)
            other = "a string" if given is not None else ""
        if not other or not asks_a_device(module, node):
            return
        shown = module.text(node.value)
        edit = module.replace(node.value, f"torch.device({shown})")
        can = imports_torch(module)
        yield self.finding(
            module,
            node,
            f"`{shown}` may be {other}, which has no `.{node.attr}`",
            severity=Severity.NOTE,
            trail=passing(given),
            fixes=[module.fix("make it a device", Safety.UNSAFE, edit)] if can else [],
        )

    def _number(self, module: Module, node: ast.Attribute) -> Iterator[Finding]:
        above = module.parent(node)
        if isinstance(above, ast.BoolOp) and isinstance(above.op, ast.Or):
            yield from self._or_else(module, node, above)
            return
        made = made_of_what_was_given(module, node)
        if made is not None:
            yield self.finding(
                module,
                node,
                f'`{one_line(module, node)}` is None if the device is "cuda", without a number',
                trail=[(made, "the device is made here")],
            )

    def _or_else(
        self, module: Module, node: ast.Attribute, either: ast.BoolOp
    ) -> Iterator[Finding]:
        """`device.index or 0`"""
        last = either.values[-1]
        other = other_number(last) if either.values[0] is node else ""
        if other:
            yield self.finding(module, either, _NOT_FALSE.format(other))
        zero = isinstance(last, ast.Constant) and last.value == 0
        if zero and module.kind_of(node.value) is Kind.DEVICE:
            yield self.finding(module, either, _NOT_ZERO, severity=Severity.NOTE)

    def _rest_is_a_number(self, module: Module, chosen: ast.IfExp) -> Iterator[Finding]:
        shown = number_or_itself(module, chosen)
        if shown:
            yield self.finding(
                module,
                chosen,
                f'`{shown}` may be a string, such as "cuda:0": it is then used as a number',
                severity=Severity.NOTE,
            )

    def _other_backend(self, module: Module, call: ast.Call) -> Iterator[Finding]:
        number = number_of_other_backend(module, call)
        if number is not None:
            said, owner = number
            yield self.finding(
                module,
                said,
                f"`{one_line(module, said)}` is a number without a device type: elsewhere, this "
                f"file uses `{owner}.current_device_name()`",
                confidence=Confidence.MEDIUM,
            )

    def _context(self, module: Module, call: ast.Call) -> Iterator[Finding]:
        said = said_device(module, call)
        if isinstance(said, ast.Call) and module.qualified(said.func) in _CONTEXTS:
            kind = module.qualified(said.func).split(".")[1]
            number = module.text(said.args[0]) if said.args else ""
            edit = module.replace(said, f'torch.device("{kind}", {number})')
            yield self.finding(
                module,
                said,
                f"`{one_line(module, said)}` is a context manager, not a device",
                severity=Severity.ERROR,
                fixes=[module.fix("make a device", Safety.UNSAFE, edit)] if number else [],
            )
