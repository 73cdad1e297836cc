from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Safety, Severity
from tensortrail.patterns import pattern
from tensortrail.rules import Bad, Good, Guard, Module, Near, Rule
from tensortrail.rules.shared.in_tests import in_tests


class NumberMayBeNone(Rule):
    """A device is written as a string with its index, which may be None.

    ## What it does
    Reports, as a note, `f"{device.type}:{device.index}"` if no condition around it tests the index.

    Not reported: code under a condition about the index or the type.

    ## Why is this bad?
    The index of `torch.device("cuda")`, and of the CPU, is None: `torch.device("cuda:None")` is an
    invalid device string, and as a key it differs from `str(device)`.

    ## Fix safety
    Unsafe: `str(device)` has no index if the device has none, and other code may compare the old
    string.

    ## References
    - pytorch/torchrec, `fx/tracer.py`
    """

    code = "DEV661"
    name = "number-may-be-none"
    severity = Severity.WARNING
    confidence = Confidence.MEDIUM
    proven = False
    triggers = (Near(".type}:{", pattern(rb"[^\n]*\.type\}:\{[^\n{}]*\.index\}"), ("torch",)),)

    bad = (
        Bad(
            "import torch\n\n\ndef named(place):\n"
            '    return torch.device(f"{place.type}:{place.index}")\n',
            lines=(5,),
            fixed="import torch\n\n\ndef named(place):\n    return torch.device(str(place))\n",
        ),
    )
    good = (
        Good(
            "import torch\n\n\ndef named(place):\n    if place.index is None:\n"
            "        return place\n"
            '    return torch.device(f"{place.type}:{place.index}")\n'
        ),
        Good(
            "import torch\n\n\ndef named(place, other):\n"
            '    return torch.device(f"{place.type}:{other.index}")\n'
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for text in module.nodes(ast.JoinedStr):
            device = _written(module, text)
            if device is None or any(_asks(module, each) for each in module.guards_of(text)):
                continue
            shown = module.text(device)
            edit = module.replace(text, f"str({shown})")
            yield self.finding(
                module,
                text,
                f"`{shown}.index` is None for a device without a number, such as `cuda` or `cpu`",
                fixes=[module.fix(f"write it as `str({shown})`", Safety.UNSAFE, edit)],
            )


def _asks(module: Module, guard: Guard) -> bool:
    """About the number or the type, also under another name."""
    names = (each for each in ast.walk(guard.test) if isinstance(each, ast.Name))
    origins = (origin for each in names for origin in module.value_of(each).origins)
    return guard.mentions("index", "type") or any(
        isinstance(each, ast.Attribute) and each.attr in ("index", "type") for each in origins
    )


def _written(module: Module, text: ast.JoinedStr) -> ast.expr | None:
    """`d` of `f"{d.type}:{d.index}"`, and nothing more."""
    match text.values:
        case [
            ast.FormattedValue(value=ast.Attribute(value=one, attr="type")),
            ast.Constant(value=":"),
            ast.FormattedValue(value=ast.Attribute(value=other, attr="index")),
        ] if module.text(one) == module.text(other):
            return one
    return None
