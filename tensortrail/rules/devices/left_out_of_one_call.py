from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from tensortrail.findings import Confidence, Finding, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices._accepted import accepting, is_maker, is_weighted_layer, passes_on
from tensortrail.rules.devices._customs import is_explained, is_followed_by, named
from tensortrail.rules.devices._device_aware import is_in_module
from tensortrail.rules.devices._own_layers import goes_into_own_layers
from tensortrail.rules.devices._twins import is_moved_there_later
from tensortrail.rules.shared.functions import functions, parameters
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.mends import keyword_given
from tensortrail.rules.shared.moves import MODULE_TO_DEVICE, TO_DTYPE
from tensortrail.rules.shared.named_for_cpu import is_named_for_the_cpu
from tensortrail.rules.shared.objects import called, is_self
from tensortrail.rules.view import FunctionNode

_KEEPS = frozenset({"as_tensor", "asarray"})
"""Factories that leave a tensor where it is."""
_KEEPERS = frozenset({"Parameter", "Buffer", "register_buffer", "register_parameter"})
_OF_NUMBERS = frozenset({"zeros", "ones", "empty", "full", "rand", "randn", "linspace"})
"""Factories that make indices and counts seldom."""
_OTHERS_FOR_EACH = 2
"""Calls that are given the device, for each of several that are not."""


class LeftOutOfOneCall(Rule):
    """A function passes its `device` or `dtype` on to all its calls but one.

    ## What it does
    Looks at functions with a parameter `device` or `dtype`. Reports, as a note, the call that
    accepts it and is not given it: a factory of torch, a layer of `torch.nn` with weights, or a
    function or class of the project. Two or more such calls are reported if twice as many pass it.

    Reported by default only if there is more evidence:

    - another call of the same function, layer or factory passes it;
    - a constructor makes other layers or tensors of the module on its `device`, and this one, or a
      part of it that is a module of the project, without;
    - this call is given the `device`, and another one both `device` and `dtype`; or
    - what it makes goes into a layer of the object, as in `self.decoder(tokens)`.

    All others are reported only if the rule is selected (`--select DEV541`), and a `dtype` not at
    all. The same is true of buffers, names that contain `cpu` or `host`, and functions outside of
    modules.

    Not reported: a result that is moved, read out, used as an index or without a dimension; a
    function whose default is its own choice, or which is usually called without the argument; and a
    call under a condition about it.

    ## Why is this bad?
    The caller chose a device or dtype, and the result of this call has the default one, usually the
    CPU. An operation that combines it with the other results raises.

    ## Fix safety
    Unsafe: the default may be meant for this call.

    ## References
    - pytorch documentation, "Tensor attributes", `torch.device`
    """

    code = "DEV541"
    name = "left-out-of-one-call"
    severity = Severity.WARNING
    warns = False
    needs_callers = True
    notes = False
    confidence = Confidence.MEDIUM
    explains = ("DEV526", "DEV528", "DEV534", "DEV552", "DEV668")
    triggers = (("torch", "device=device"), ("torch", "device = device"), ("torch", "dtype=dtype"))
    bad = (
        Bad(
            "import torch\n\n\ndef grid(rows, columns, device):\n"
            "    left = torch.arange(rows, device=device)\n    top = torch.arange(columns)\n"
            "    return torch.meshgrid(left, top)\n",
            lines=(6,),
            fixed="import torch\n\n\ndef grid(rows, columns, device):\n"
            "    left = torch.arange(rows, device=device)\n"
            "    top = torch.arange(columns, device=device)\n"
            "    return torch.meshgrid(left, top)\n",
        ),
        Bad(
            "from torch import nn\n\n\nclass Gated(nn.Module):\n"
            "    def __init__(self, n, device=None):\n        super().__init__()\n"
            "        self.up = nn.Linear(n, 4 * n, device=device)\n"
            "        self.norm = nn.LayerNorm(n)\n",
            lines=(8,),
            fixed="from torch import nn\n\n\nclass Gated(nn.Module):\n"
            "    def __init__(self, n, device=None):\n        super().__init__()\n"
            "        self.up = nn.Linear(n, 4 * n, device=device)\n"
            "        self.norm = nn.LayerNorm(n, device=device)\n",
        ),
        Bad(
            "import torch\n\n\ndef signs(n, device=None):\n"
            "    return torch.ones(n, device=device)\n\n\n"
            "def made(n, device=None):\n    scale = signs(n + 1, device=device)\n"
            "    return scale, signs(n)\n",
            lines=(10,),
            fixed="import torch\n\n\ndef signs(n, device=None):\n"
            "    return torch.ones(n, device=device)\n\n\n"
            "def made(n, device=None):\n    scale = signs(n + 1, device=device)\n"
            "    return scale, signs(n, device=device)\n",
        ),
        Bad(
            "import torch\n\n\ndef cache(shape, device, dtype):\n"
            "    keys = torch.zeros(shape, device=device, dtype=dtype)\n"
            "    values = torch.zeros(shape, device=device)\n    return keys, values\n",
            lines=(6,),
            fixed="import torch\n\n\ndef cache(shape, device, dtype):\n"
            "    keys = torch.zeros(shape, device=device, dtype=dtype)\n"
            "    values = torch.zeros(shape, device=device, dtype=dtype)\n"
            "    return keys, values\n",
        ),
        Bad(
            """\
import torch
from torch import nn

class Spread(nn.Module):
    def __init__(self, n, device=None):
        super().__init__()
        self.order = torch.arange(n, device=device)

class Shards(nn.Module):
    def __init__(self, n, device=None):
        super().__init__()
        self.register_buffer("sizes", torch.ones(n, device=device))
        self.spread = Spread(n)
""",
            lines=(13,),
            fixed="""\
import torch
from torch import nn

class Spread(nn.Module):
    def __init__(self, n, device=None):
        super().__init__()
        self.order = torch.arange(n, device=device)

class Shards(nn.Module):
    def __init__(self, n, device=None):
        super().__init__()
        self.register_buffer("sizes", torch.ones(n, device=device))
        self.spread = Spread(n, device=device)
""",
        ),
        Bad(
            """\
import torch
from torch import nn

class Sampler(nn.Module):
    def __init__(self, encoder, decoder):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def sample(self, rows, length, device=None):
        found = self.encoder(torch.tensor(rows, device=device))
        tokens = torch.full((1, length), 3)
        return self.decoder(tokens[:, :2], found)
""",
            lines=(11,),
            fixed="""\
import torch
from torch import nn

class Sampler(nn.Module):
    def __init__(self, encoder, decoder):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def sample(self, rows, length, device=None):
        found = self.encoder(torch.tensor(rows, device=device))
        tokens = torch.full((1, length), 3, device=device)
        return self.decoder(tokens[:, :2], found)
""",
        ),
    )
    good = (
        Good(
            "import torch\n\n\ndef grid(rows, columns, device):\n"
            "    left = torch.arange(rows, device=device)\n"
            "    top = torch.arange(columns).float().to(device)\n"
            "    return torch.meshgrid(left, top)\n"
        ),
        Good(
            "import torch\n\n\ndef signs(n, device='meta'):\n"
            "    return torch.ones(n, device=device)\n\n\n"
            "def made(n, device=None):\n    scale = torch.rand(n, device=device)\n"
            "    return scale, signs(n)\n"
        ),
        Good(
            "import torch\n\n\ndef signs(n, device=None):\n    if device is None:\n"
            "        return torch.ones(n)\n    return torch.ones(n, device=device)\n"
        ),
        Good(
            "import torch\n\n\ndef picked(rows, n, device):\n"
            "    scale = torch.rand(n, device=device)\n"
            "    return rows[torch.randperm(n)], scale\n"
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for function in functions(module):
            names = {each.arg for each in parameters(function)}
            for name in ("device", "dtype"):
                if name in names:
                    yield from self._function(module, function, name)

    def _function(self, module: Module, function: FunctionNode, name: str) -> Iterator[Finding]:
        given = [
            each
            for each in module.nodes(ast.Call, function)
            if passes_on(each, name)
            and called(each) not in MODULE_TO_DEVICE
            and module.function_of(each) is function
        ]
        pairs = list(_given_both(module, function)) if name == "dtype" else []
        if not given and not pairs:
            return
        left = [each for each in _left_out(module, function, name) if _is_open(each)]
        if len(left) == 1 or _OTHERS_FOR_EACH * len(left) <= len(given or pairs):
            for call in left:
                alike = name == "dtype" or is_in_module(module, call)
                is_sure = (alike and _is_alike(module, call, given, left)) or (
                    name == "device" and _is_part_of_a_module(module, function, call, given)
                )
                is_sure = is_sure or _is_half_of_a_pair(module, call, pairs)
                is_sure = is_sure or (
                    name == "device" and goes_into_own_layers(module, function, call)
                )
                is_sure = is_sure and not (name == "device" and _is_a_buffer(module, call))
                is_sure = is_sure and not is_named_for_the_cpu(module, call)
                is_sure = is_sure and not (name == "dtype" and _is_cast_later(module, call))
                if is_sure or name == "device":
                    yield self._reported(module, call, name, given or pairs, is_sure)

    def _reported(
        self, module: Module, call: ast.Call, name: str, given: Sequence[ast.Call], is_sure: bool
    ) -> Finding:
        near = sorted(given, key=lambda each: abs(each.lineno - call.lineno))[:2]
        lines = " and ".join(f"line {each.lineno}" for each in near)
        others = "another call" if len(given) == 1 else f"{len(given)} other calls"
        edit = keyword_given(module, call, name, name)
        return self.finding(
            module,
            call,
            f"this takes a {name} and is given none; {others} of the function "
            f"{'is' if len(given) == 1 else 'are'} given `{name}`, see {lines}",
            severity=None if is_sure else Severity.NOTE,
            trail=tuple((each, f"given the {name}") for each in near),
            fixes=(module.fix(f"pass the {name} on", Safety.UNSAFE, edit) if edit else None,),
        )


def _is_cast_later(module: Module, call: ast.Call) -> bool:
    """What is computed after it is cast to the dtype: `torch.log(x).to(dtype)`."""
    return any(
        called(each) in ("to", "type") and any(map(_is_dtype, each.args))
        for each in module.later(call, ast.Call)
    )


def _is_dtype(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "dtype"


def _is_open(call: ast.Call) -> bool:
    """No other argument says where it lies, or what it is written into."""
    return not {"out", "pin_memory"} & named(call)


def _left_out(module: Module, function: FunctionNode, name: str) -> Iterator[ast.Call]:
    for call in accepting(module, function, name, layers=True):
        if is_explained(module, call) or called(call) in _KEEPS or passes_on(call, name):
            continue
        if _is_swapped_in(module, call):
            continue
        if any(re.search(rf"\b{name}\b", each.text) for each in module.guards_of(call)):
            continue
        if is_maker(module, call):
            takes = name == "device" or _makes_numbers(module, call)
        else:
            takes = is_weighted_layer(module, call) or _is_usually_given(module, call, name)
        if takes:
            yield call


def _is_swapped_in(module: Module, call: ast.Call) -> bool:
    """`x.data = torch.zeros(1)`: STO210 says what becomes of `x`."""
    above = module.parent(call)
    targets = above.targets if isinstance(above, ast.Assign) else []
    return any(isinstance(each, ast.Attribute) and each.attr == "data" for each in targets)


def _makes_numbers(module: Module, call: ast.Call) -> bool:
    return called(call) in _OF_NUMBERS and not is_followed_by(module, call, TO_DTYPE)


def _is_usually_given(module: Module, call: ast.Call, name: str) -> bool:
    """The callee has no choice of its own as the default, and the calls of the package that pass
    one are not fewer than those that pass none."""
    if name in module.chosen_defaults_of(call) or isinstance(module.parent(call), ast.Expr):
        return False
    calls = [each for each in module.calls_in_project(call) if not each.is_open]
    passing = sum(name in each.given | each.written for each in calls)
    return passing * 2 >= len(calls) - 1


def _is_alike(
    module: Module, call: ast.Call, given: Sequence[ast.Call], left: Sequence[ast.Call]
) -> bool:
    """Another call of the same function is given it, and this is the only one without."""
    if called(call) == "tensor" or is_moved_there_later(module, call, "device"):
        return False  # numbers as often as not, or what becomes of it follows
    callee = module.text(call.func)
    same = [each for each in given if module.text(each.func) == callee]
    return bool(same) and sum(module.text(each.func) == callee for each in left) == 1


def _given_both(module: Module, function: FunctionNode) -> Iterator[ast.Call]:
    """Calls that are given the `device` and the `dtype` of the function, moves too."""
    if {"device", "dtype"} <= {each.arg for each in parameters(function)}:
        for call in module.nodes(ast.Call, function):
            both = passes_on(call, "device") and passes_on(call, "dtype")
            if both and module.function_of(call) is function:
                yield call


def _is_half_of_a_pair(module: Module, call: ast.Call, pairs: Sequence[ast.Call]) -> bool:
    """It is given the device; others of the function are given the device and the dtype. A norm
    is often computed in full precision, and of a comparison the dtype is lost."""
    if not pairs or called(call).endswith("Norm") or isinstance(module.parent(call), ast.Compare):
        return False
    return any(
        each.arg == "device" and isinstance(each.value, ast.Name) and each.value.id == "device"
        for each in call.keywords
    )


def _is_a_buffer(module: Module, call: ast.Call) -> bool:
    """It holds what the constructor works out, which would be lost if it were made on meta with
    the others; and it moves with the module."""
    return any(
        isinstance(above, ast.Call) and called(above) == "register_buffer"
        for above in module.ancestors(call)
    )


def _is_a_part(module: Module, call: ast.Call) -> bool:
    """`self.spread = Spread(n)`, of a module of the project."""
    above = module.parent(call)
    targets = above.targets if isinstance(above, ast.Assign) else []
    own = any(isinstance(each, ast.Attribute) and is_self(each.value) for each in targets)
    facts = module.class_facts(module.qualified(call.func)) if own else None
    return facts is not None and facts.is_module


def _is_part_of_a_module(
    module: Module, function: FunctionNode, call: ast.Call, given: Sequence[ast.Call]
) -> bool:
    """A constructor makes other layers or tensors on its device, and this one is kept too."""
    made = any(is_maker(module, each) or is_weighted_layer(module, each) for each in given)
    kept = is_weighted_layer(module, call) or _is_a_part(module, call)
    kept = kept or any(
        isinstance(each, ast.Call) and called(each) in _KEEPERS for each in module.ancestors(call)
    )
    return function.name == "__init__" and made and kept
