from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.named.device_texts import (
    constant_text,
    is_known_device,
    is_no_type,
    is_of_an_object,
    is_type_of_a_device,
    made_a_text,
    may_be_known_device,
    may_tell_a_device,
    names_a_number,
    takes_a_device,
    tells_a_device,
    texts_in,
)
from tensortrail.rules.devices.shared.named.device_values import is_of_a_tensor
from tensortrail.rules.devices.shared.named.forms import NUMBERED, is_tested
from tensortrail.rules.devices.shared.named.given_by_callers import given_devices
from tensortrail.rules.shared.given_values import passing
from tensortrail.rules.shared.imports import imported_packages
from tensortrail.rules.shared.sentences import one_line

_OF_TEXTS = frozenset(
    "startswith endswith split rsplit partition lower upper strip replace removeprefix".split()
)
_AUTOCASTS = frozenset({"torch.autocast", "torch.amp.autocast"})
_OTHERS = frozenset({"tensorflow", "jax", "paddle", "mxnet", "cupy"})
"""Libraries whose tensors have a device too."""


class DeviceTakenForText(Rule):
    """A `torch.device` is used as a string, or as the name of a device type.

    ## What it does
    Reports

    - `"cpu" in t.device`, and string methods such as `t.device.startswith("cuda")`;
    - `torch.autocast(model.device)`; as a note, `str(x.device)`, which torch takes since 2.4;
    - `str(t.device) == "cuda"`: this string has a number, as in `cuda:0`;
    - a device type compared with something else: `t.device.type == "cuda:0"`, or `"gpu"`, which
      is not in `str(t.device)` either. A variable that is `"cuda"` or `"cpu"` is such a type too.

    Not reported: other arguments and settings, which may be strings. A value is known as a device
    if it is the device of a tensor or parameter, or the result of `torch.device(...)`. A note:
    `"cpu" in device` of an argument that is annotated as one, or as `str | torch.device`, and these
    uses of an argument without a type for which a call passes a device.

    ## Why is this bad?
    `in` raises a TypeError, a string method an AttributeError, and autocast a ValueError. A
    comparison raises nothing, and the branch is never taken.

    ## Fix safety
    Unsafe: a branch that never ran now runs.

    ## References
    - mosaicml/llm-foundry pull request 302
    - volcengine/verl pull request 1909
    - lucidrains/vector-quantize-pytorch, "fix mps detection"
    - predibase/lorax pull request 16
    """

    code = "DEV573"
    name = "device-taken-for-text"
    severity = Severity.ERROR
    warns = False
    triggers = (
        (" in ", "device"), ("str(", ".device"), ("autocast", "device"), ".device.",
        (".type", "cuda:"), (".type", "gpu"), ('"gpu', "cuda"), ("'gpu", "cuda"),
        ("device", "startswith("), ("device", "split("),
    )  # fmt: skip
    bad = (
        Bad(
            """\
def place(model):
    first = next(model.parameters()).device
    return "cpu" if "cpu" in first else "cuda"
""",
            lines=(3,),
            fixed="""\
def place(model):
    first = next(model.parameters()).device
    return "cpu" if "cpu" in str(first) else "cuda"
""",
        ),
        Bad(
            """\
import torch

def blend(old: torch.Tensor, new, decay):
    if str(old.device) == "mps":
        return old * decay + new * (1 - decay)
    return old.lerp_(new, 1 - decay)
""",
            lines=(4,),
            fixed="""\
import torch

def blend(old: torch.Tensor, new, decay):
    if old.device.type == "mps":
        return old * decay + new * (1 - decay)
    return old.lerp_(new, 1 - decay)
""",
        ),
        Bad(
            """\
import torch

def answer(model, ids):
    with torch.autocast(model.device, torch.bfloat16):
        return model.generate(ids)
""",
            lines=(4,),
            fixed="""\
import torch

def answer(model, ids):
    with torch.autocast(model.device.type, torch.bfloat16):
        return model.generate(ids)
""",
        ),
        Bad(
            """\
import torch

def check(x: torch.Tensor):
    if not x.device.startswith("cuda"):
        raise ValueError("a GPU is needed")
""",
            lines=(4,),
            fixed="""\
import torch

def check(x: torch.Tensor):
    if not str(x.device).startswith("cuda"):
        raise ValueError("a GPU is needed")
""",
        ),
        Bad(
            """\
import torch

def is_first(x: torch.Tensor):
    return x.device.type == "gpu" or x.device.type == "cuda:0"
""",
            lines=(4,),
            instead="""\
import torch

def is_first(x: torch.Tensor):
    return x.device == torch.device("cuda", 0)
""",
        ),
        Bad(
            """\
import torch

def run(model, x: torch.Tensor):
    with torch.autocast(device_type=str(x.device), dtype=torch.bfloat16):
        return model(x)
""",
            lines=(4,),
            fixed="""\
import torch

def run(model, x: torch.Tensor):
    with torch.autocast(device_type=x.device.type, dtype=torch.bfloat16):
        return model(x)
""",
        ),
        Bad(
            """\
import torch

def padding(tokens: torch.Tensor, device: torch.device):
    if "gpu" not in str(tokens.device):
        return None
    return 8 if "gpu" in str(device) else None
""",
            lines=(4, 6),
            instead="""\
import torch

def padding(tokens: torch.Tensor, device: torch.device):
    if tokens.device.type != "cuda":
        return None
    return 8 if device.type == "cuda" else None
""",
        ),
        Bad(
            """\
import torch

def chosen(wanted, tokens: torch.Tensor):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if wanted and device == "gpu":
        device = "cpu"
    return device if tokens.device.type in ("gpu", "xpu") else None
""",
            lines=(5, 7),
            instead="""\
import torch

def chosen(wanted, tokens: torch.Tensor):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if wanted and device == "cuda":
        device = "cpu"
    return device if tokens.device.type in ("cuda", "xpu") else None
""",
        ),
        Bad(
            "import torch\n\ndef number(place):\n    return int(place.split(':')[1])\n\n"
            "def used(x: torch.Tensor):\n    return torch.cuda.get_device_name(number(x.device))\n",
            lines=(4,),
        ),
    )
    good = (
        Good("def f(device):\n    return 'cpu' in device or device.startswith('cuda')\n"),
        Good("def f(device):\n    return 'gpu' in str(device) or 'gpu' in device.lower()\n"),
        Good("import torch\n\ndef f(x: torch.Tensor):\n    return 'cpu' in str(x.device)\n"),
        Good("import torch\n\ndef f(x: torch.Tensor):\n    return str(x.device) == 'cpu'\n"),
        Good("import torch\n\ndef f(x: torch.Tensor):\n    return str(x.device) == 'cuda:1'\n"),
        Good("import torch\n\ndef f(device):\n    return str(torch.device(device)) == 'cuda'\n"),
        Good("import torch\n\ndef f(x: torch.Tensor):\n    return torch.autocast(x.device.type)\n"),
        Good("import torch\n\ndef f(args):\n    return torch.autocast(args.device)\n"),
        Good(
            "import torch\n\ndef f(kind):\n    device = 'cuda' if kind else 'cpu'\n"
            "    kind = 'gpu' if device == 'cuda' else device\n"
            "    return kind == 'gpu' or kind in ('gpu', 'cpu')\n"
        ),
        Good(
            "import torch\n\ndef f(device: torch.device = 'cuda'):\n"
            "    return torch.autocast(device)\n"
        ),
        Good(
            """\
import torch

def f(x: torch.Tensor):
    devices = {x.device: x}
    return x.device in devices or x.device.type.startswith("cuda")
"""
        ),
        Good(
            "import torch\n\ndef f(model):\n    kind = model.device\n"
            "    if isinstance(kind, torch.device):\n        kind = kind.type\n"
            "    return torch.autocast(kind)\n"
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        imported = imported_packages(module)
        if "torch" not in imported and not _OTHERS.isdisjoint(imported):
            return  # their tensors say a device as a text, or in another way
        for compare in module.nodes(ast.Compare):
            if len(compare.ops) == 1:
                yield from self._compared(module, compare)
        for call in module.nodes(ast.Call):
            yield from self._method(module, call)
            yield from self._autocast(module, call)

    def _compared(self, module: Module, compare: ast.Compare) -> Iterator[Finding]:
        left, operation, right = compare.left, compare.ops[0], compare.comparators[0]
        if isinstance(operation, (ast.In, ast.NotIn)):
            yield from self._sought(module, compare, isinstance(operation, ast.In))
            yield from self._taken(module, compare, left, right)
            if not may_be_known_device(module, right):
                return
            if constant_text(module, left) is not None and is_known_device(module, right):
                shown = one_line(module, right)
                edit = module.replace(right, f"str({module.text(right)})")
                yield self._raises(module, compare, f"`{shown}` is a torch.device, and `in` "
                                   "raises a TypeError on it", module.fix("search its string",
                                   Safety.UNSAFE, edit))  # fmt: skip
        elif isinstance(operation, (ast.Eq, ast.NotEq)):
            for node, other in ((left, right), (right, left)):
                text = constant_text(module, other) if may_tell_a_device(module, node) else None
                if text is not None:
                    yield from self._equal(module, compare, node, text)

    def _taken(
        self, module: Module, compare: ast.Compare, text: ast.expr, device: ast.expr
    ) -> Iterator[Finding]:
        """`"cpu" in device` of an argument that may be one, as its annotation says."""
        if constant_text(module, text) is None or is_tested(module, compare):
            return
        given = next(given_devices(module, device), None)
        if given is not None or takes_a_device(module, device):
            shown = module.text(device)
            what = f"`{shown}` may be a torch.device, and `in` raises a TypeError on it"
            yield self.finding(module, compare, what, severity=Severity.NOTE, trail=passing(given))

    def _sought(self, module: Module, compare: ast.Compare, found: bool) -> Iterator[Finding]:
        """`"gpu" in str(device)`."""
        text, right = constant_text(module, compare.left), compare.comparators[0]
        if text is None and may_tell_a_device(module, compare.left):
            yield from self._among(module, compare, texts_in(module, right))
        if text is None or text.lower() != "gpu" or not tells_a_device(module, right):
            return
        yield self.finding(
            module,
            compare,
            f'no device type is called "{text}": this is {"never" if found else "always"} true',
        )

    def _among(self, module: Module, compare: ast.Compare, texts: list[str]) -> Iterator[Finding]:
        """`device.type in ("gpu", "xpu")`."""
        wrong = next((each for each in texts if is_no_type(each)), None)
        if wrong is not None and is_type_of_a_device(module, compare.left):
            message = f'no device type is called "{wrong}": it is never found'
            yield self.finding(module, compare, message)

    def _equal(
        self, module: Module, compare: ast.Compare, node: ast.expr, text: str
    ) -> Iterator[Finding]:
        always = "never" if isinstance(compare.ops[0], ast.Eq) else "always"
        device = made_a_text(module, node) if text in NUMBERED else None
        if device is not None and is_of_a_tensor(module, device):
            shown = module.text(device)
            edit = module.replace(node, f"{shown}.type")
            yield self.finding(
                module,
                compare,
                f"the string of a tensor's device has a number, as in `{text}:0`: this is {always} "
                "true",
                fixes=[module.fix("compare the type", Safety.UNSAFE, edit)],
            )
        if is_no_type(text) and is_type_of_a_device(module, node):
            yield self.finding(
                module,
                compare,
                f'no device type is called "{text}": this is {always} true',
            )

    def _method(self, module: Module, call: ast.Call) -> Iterator[Finding]:
        func = call.func
        if not isinstance(func, ast.Attribute) or func.attr not in _OF_TEXTS:
            return
        if is_tested(module, call):
            return
        shown = one_line(module, func.value)
        if is_known_device(module, func.value):
            edit = module.replace(func.value, f"str({module.text(func.value)})")
            yield self._raises(
                module,
                call,
                f"`{shown}` is a torch.device, which has no `{func.attr}`",
                module.fix("use its string", Safety.UNSAFE, edit),
            )
        elif (given := next(given_devices(module, func.value), None)) is not None:
            what = f"`{shown}` may be a torch.device, which has no `{func.attr}`"
            yield self.finding(module, call, what, severity=Severity.NOTE, trail=passing(given))

    def _autocast(self, module: Module, call: ast.Call) -> Iterator[Finding]:
        if module.qualified(call.func) not in _AUTOCASTS:
            return
        given = module.argument(call, 0, "device_type")
        if given is None or is_tested(module, call):
            return
        certain = is_known_device(module, given)
        if certain or is_of_an_object(module, given):
            edit = module.replace(given, f"{module.text(given)}.type")
            yield self._raises(
                module,
                given,
                f"`{one_line(module, given)}` is a torch.device, but autocast takes a device type, "
                "which is a string",
                module.fix("pass the type", Safety.UNSAFE, edit),
                None if certain else Severity.WARNING,
            )
            return
        device = made_a_text(module, given)
        text = constant_text(module, given)
        if (device is not None and is_of_a_tensor(module, device)) or names_a_number(text):
            by_type = module.replace(given, f"{module.text(device or given)}.type")
            yield self._raises(
                module,
                given,
                "autocast takes a device type, such as `cuda`: torch before 2.4 raises if it is "
                "given a number too",
                module.fix("pass the type", Safety.UNSAFE, by_type) if device else None,
                Severity.NOTE,
            )

    def _raises(
        self,
        module: Module,
        node: ast.expr,
        message: str,
        fix: Fix | None,
        severity: Severity | None = None,
    ) -> Finding:
        sure = Confidence.HIGH if severity is None else Confidence.MEDIUM
        return self.finding(module, node, message, severity=severity, confidence=sure, fixes=[fix])
