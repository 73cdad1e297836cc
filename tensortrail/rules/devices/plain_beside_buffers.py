from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.modules.attribute_reads import (
    is_an_index,
    is_counted,
    is_used_as_it_is,
    meets_the_layers,
)
from tensortrail.rules.devices.modules.moved_by_its_class import is_moved
from tensortrail.rules.devices.modules.other_arm import is_the_other_arm
from tensortrail.rules.devices.modules.registered_beside import beside_registered
from tensortrail.rules.devices.written_for.beforehand import need_not_move
from tensortrail.rules.devices.written_for.device_aware import sets_up
from tensortrail.rules.places import Held, What, Where
from tensortrail.rules.shared.functions import functions
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called, is_self
from tensortrail.rules.shared.placeholders import is_placeholder
from tensortrail.rules.view import FunctionNode

_MADE = frozenset(
    {
        Where.DEFAULT,
        Where.DEVICE,
        Where.HOST,
        Where.LITERAL,
        Where.LOCAL,
        Where.OF,
        Where.STAYS,
        Where.SELF,
    }
)


class PlainBesideBuffers(Rule):
    """A module keeps a tensor in a plain attribute, which `.to()` does not move.

    ## What it does
    Reports, as a note, `self.name = tensor` where an `nn.Module` is set up, if another method uses
    the attribute and nothing in the class moves it or compares its device. The message counts the
    buffers of the class.

    Only reported if the rule is selected (`--select DEV530`):

    - a tensor that was put on a device or came from the caller, in a class without buffers, unless
      an operation takes it together with what a layer of the module gives;
    - a tensor made on a device after the module was built, or only passed to functions of other
      files;
    - modules that are built under `with torch.device(device):`;
    - `layer.table = tensor` in a function that calls `layer.register_buffer` for other tensors.

    Not reported: parameters, an index, a tensor without a dimension, an attribute that another
    method sets, a tensor filled from CPU tensors, and one that is only read as numbers.

    ## Why is this bad?
    On a GPU, an operation that combines the tensor with a weight or an input raises:
    `module.to(device)` moves parameters, buffers and submodules, and nothing else.

    ## Fix safety
    No fix is offered: a buffer may be saved with the module or not (`persistent`), and both change
    what others see.

    ## References
    - pytorch documentation of `torch.nn.Module.register_buffer`
    """

    code = "DEV530"
    name = "plain-beside-buffers"
    severity = Severity.WARNING
    warns = False
    needs_callers = True
    notes = False
    confidence = Confidence.MEDIUM
    triggers = (("torch", "self.", "Module"), (".register_buffer", "def "))
    bad = (
        Bad(
            "import torch\nfrom torch import nn\n\n\nclass Rotary(nn.Module):\n"
            "    def __init__(self, n):\n        super().__init__()\n"
            "        angles = torch.arange(n) / n\n"
            "        self.register_buffer('cos', angles.cos())\n"
            "        self.sin = angles.sin()\n\n"
            "    def forward(self, x):\n        return self.mix(x, self.cos, self.sin)\n",
            lines=(10,),
            instead="""\
import torch
from torch import nn


class Rotary(nn.Module):
    def __init__(self, n):
        super().__init__()
        angles = torch.arange(n) / n
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, x):
        return self.mix(x, self.cos, self.sin)
""",
        ),
        Bad(
            "import torch\nfrom torch import nn\n\n\nclass Counted(nn.Module):\n"
            "    def __init__(self, n, masked):\n        super().__init__()\n"
            "        self.total: torch.Tensor\n        self.total = torch.zeros(n)\n"
            "        if masked:\n            self.mask = torch.ones(n).tril()\n"
            "        else:\n            self.mask = None\n\n"
            "    def forward(self, x):\n        self.total += 1\n"
            "        return self.mix(x, self.mask, self.total)\n",
            lines=(9, 11),
            instead="""\
import torch
from torch import nn


class Counted(nn.Module):
    def __init__(self, n, masked):
        super().__init__()
        self.register_buffer("total", torch.zeros(n))
        self.register_buffer("mask", torch.ones(n).tril() if masked else None)

    def forward(self, x):
        self.total += 1
        return self.mix(x, self.mask, self.total)
""",
        ),
        Bad(
            "import torch\n\n\ndef prepared(layer, n):\n"
            "    layer.register_buffer('order', torch.arange(n))\n"
            "    layer.scale = torch.ones(n)\n",
            lines=(6,),
            instead="import torch\n\n\ndef prepared(layer, n):\n"
            "    layer.register_buffer('order', torch.arange(n))\n"
            "    layer.register_buffer('scale', torch.ones(n))\n",
        ),
    )
    good = (
        Good(
            "import torch\nfrom torch import nn\n\n\nclass Boxes(nn.Module):\n"
            "    def __init__(self, n):\n        super().__init__()\n"
            "        self.boxes = torch.ones(n)\n\n    def forward(self, x):\n"
            "        boxes = self.boxes.repeat(len(x), 1)\n        boxes = boxes.to(x.device)\n"
            "        return self.mix(x, boxes)\n"
        ),
        Good(
            "import torch\nfrom torch import nn\n\n\nclass Chosen(nn.Module):\n"
            "    def __init__(self, n):\n        super().__init__()\n"
            "        self.order = torch.randperm(n)\n        self.table = torch.ones(n, n)\n\n"
            "    def forward(self, x):\n"
            "        return self.table[x.type_as(self.table)], self.join(x[:, self.order])\n"
        ),
        Good(
            "import torch\nfrom torch import nn\n\n\nclass Scores(nn.Module):\n"
            "    def __init__(self, n):\n        super().__init__()\n"
            '        self.register_buffer("angles", torch.linspace(0, 1, n))\n'
            "        self.waves = torch.linspace(1, 2, n)\n\n"
            "    def forward(self, x):\n"
            "        return score(x, self.angles, waves=self.waves)\n\n\n"
            "def score(x, angles, waves):\n    return x * angles * waves.to(x.device)\n"
        ),
        Good(
            "import torch\nfrom torch import nn\n\n\nclass Rotary(nn.Module):\n"
            "    def __init__(self, n):\n        super().__init__()\n"
            "        self.sizes = [n, n]\n        self.weight = nn.Parameter(torch.ones(n))\n"
            "        self.sin = torch.arange(n).sin()\n\n"
            "    def forward(self, x):\n"
            "        return self.mix(x, self.sizes, self.weight, self.sin.to(x.device))\n"
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for cls in module.nodes(ast.ClassDef):
            facts = module.class_facts(cls)
            if facts is not None and (facts.is_module or _registers(module, cls)):
                yield from self._of_class(module, cls, facts.registered)
        for name, store, buffers in beside_registered(module):
            yield self._reported(module, store, name, buffers, Severity.NOTE)

    def _of_class(
        self, module: Module, cls: ast.ClassDef, registered: frozenset[str]
    ) -> Iterator[Finding]:
        buffers = _buffers(module, cls)
        plain = list(_plain(module, cls, registered))
        usual = 0 < len(plain) <= len(buffers)
        for name, kept in plain:
            sure = usual or all(_is_made_here(module, each) for each in kept)
            known = not any(_is_unsure(module, e) or _is_on_a_gpu(module, e) for e in kept)
            if need_not_move(module, cls) or _may_follow(module, cls, name, kept):
                known = False
            severity = None if sure and known else Severity.NOTE
            told = known and (bool(buffers) or meets_the_layers(module, cls, name))
            yield self._reported(module, kept[0], name, buffers, severity, told)

    def _reported(
        self,
        module: Module,
        store: ast.Attribute,
        name: str,
        buffers: Sequence[ast.Call],
        severity: Severity | None,
        told: bool = False,
    ) -> Finding:
        """With other buffers in the class, a tensor that is none is told of."""
        lines = " and ".join(f"line {each.lineno}" for each in buffers[:2])
        are = "1 other is a buffer" if len(buffers) == 1 else f"{len(buffers)} others are buffers"
        others = f"; {are}, see {lines}" if buffers else ""
        return self.finding(
            module,
            module.statement_of(store),
            f"`{module.text(store)}` is a tensor in a plain attribute, which `.to()` does not move"
            f"{others}",
            severity=severity,
            trail=tuple((each, "registered as a buffer") for each in buffers[:2]),
            told=told,
        )


def _registers(module: Module, cls: ast.ClassDef) -> bool:
    """It registers buffers with itself, whatever its bases are."""
    return any(
        isinstance(each.func, ast.Attribute) and is_self(each.func.value)
        for each in _buffers(module, cls)
    )


def _is_unsure(module: Module, store: ast.Attribute) -> bool:
    """It may have no dimension, or come from what is not known."""
    held = _held(module, store)
    return held is None or held.may_be_scalar or any(e.where is Where.LOCAL for e in held.places)


def _is_on_a_gpu(module: Module, store: ast.Attribute) -> bool:
    """It was put on one where it was made, and does not stay on the CPU."""
    held = _held(module, store)
    literal = held is not None and any(each.where is Where.LITERAL for each in held.places)
    return literal and held is not None and all(each.subject != "cpu" for each in held.places)


def _may_follow(
    module: Module, cls: ast.ClassDef, name: str, kept: Sequence[ast.Attribute]
) -> bool:
    """It is made where the parameters already are, after the module was built; or it is only
    handed to functions of other files, which may move it or index with it."""
    if all(_is_made_beside(module, each) for each in kept):
        return True
    makers = {module.function_of(each) for each in kept}
    return all(
        _is_handed_away(module, node) or is_an_index(module, node) or is_counted(module, node)
        for node in module.members(name, cls)
        if isinstance(node.ctx, ast.Load) and module.function_of(node) not in makers
    )


def _is_made_beside(module: Module, store: ast.Attribute) -> bool:
    function, held = module.function_of(store), _held(module, store)
    later = function is not None and function.name != "__init__"
    beside = held is not None and all(
        each.where in (Where.DEVICE, Where.SELF) for each in held.places
    )
    return later and beside


def _is_handed_away(module: Module, node: ast.Attribute) -> bool:
    above = module.parent(node)
    if isinstance(above, ast.Assign):  # `output["ids"] = self.ids`
        return all(isinstance(each, ast.Subscript) for each in above.targets)
    call = module.parent(above) if isinstance(above, ast.keyword) else above
    if not isinstance(call, ast.Call) or call.func is node:
        return False
    own = {each.name for each in functions(module)} | {"self"}
    name = module.qualified(call.func)
    return not name.startswith("torch.") and own.isdisjoint({*name.split("."), called(call)})


def _plain(
    module: Module, cls: ast.ClassDef, registered: frozenset[str]
) -> Iterator[tuple[str, list[ast.Attribute]]]:
    """Plain attributes that hold tensors which other methods use as they are."""
    for name, stores in _stores(module, cls).items():
        bound = [each for each in stores if _binds(module, each)]
        if name in registered:
            bound = [each for each in bound if is_the_other_arm(module, cls, name, each)]
        if not all(_may_be_kept(module, each) for each in bound):
            continue
        if not is_used_as_it_is(module, cls, name, bound):
            continue
        if is_moved(module, cls, name) or _is_called(module, cls, name):
            continue
        kept = [each for each in bound if _is_kept_tensor(module, cls, each)]
        makers = {module.function_of(each) for each in kept}
        if kept and all(each in kept or _is_left_out(module, each, makers) for each in bound):
            yield name, kept


def _may_be_kept(module: Module, store: ast.Attribute) -> bool:
    """Seen without a look around: no number, text or layer."""
    value = getattr(module.statement_of(store), "value", None)
    if isinstance(value, ast.Constant):
        return value.value is None
    if isinstance(value, ast.Call):
        name = called(value)
        return not name[:1].isupper() or name.endswith("Tensor")
    return not isinstance(value, (ast.JoinedStr, ast.Compare, ast.Lambda, ast.Dict))


def _is_called(module: Module, cls: ast.ClassDef, name: str) -> bool:
    """`self.net(x)`: a module, which `.to()` moves, or a function."""
    return any(
        isinstance(call := module.parent(node), ast.Call)
        and call.func is node
        and is_self(node.value)
        for node in module.members(name, cls)
    )


def _binds(module: Module, store: ast.Attribute) -> bool:
    """Not `self.name += x`, which gives no other tensor, and not its type alone."""
    statement = module.statement_of(store)
    if isinstance(statement, ast.AnnAssign):
        return statement.value is not None
    return not isinstance(statement, ast.AugAssign)


def _is_left_out(module: Module, store: ast.Attribute, makers: set[FunctionNode | None]) -> bool:
    """None in another branch of its making."""
    value = getattr(module.statement_of(store), "value", None)
    is_none = isinstance(value, ast.Constant) and value.value is None
    return is_none and module.function_of(store) in makers


def _buffers(module: Module, cls: ast.ClassDef) -> Sequence[ast.Call]:
    return list(module.calls("register_buffer", inside=cls))


def _stores(module: Module, cls: ast.ClassDef) -> dict[str, list[ast.Attribute]]:
    found: dict[str, list[ast.Attribute]] = {}
    for node in module.nodes(ast.Attribute, cls):
        own = isinstance(node.value, ast.Name) and node.value.id == "self"
        if own and isinstance(node.ctx, ast.Store) and module.class_of(node) is cls:
            found.setdefault(node.attr, []).append(node)
    return found


def _is_kept_tensor(module: Module, cls: ast.ClassDef, store: ast.Attribute) -> bool:
    function = module.function_of(store)
    if function is None or function.name not in module.once(_setting_up, cls):
        return False
    held = _held(module, store)
    if held is None or held.what is not What.TENSOR or held.rank == 0:
        return False
    if _is_of_another_module(module, store):
        return False
    registered = {"parameter", "buffer"} if held.path else {"parameter"}  # itself, or made of it
    if all(is_placeholder(module, each.by) for each in held.places):
        return False
    return all(each.where in _MADE and each.subject not in registered for each in held.places)


def _held(module: Module, store: ast.Attribute) -> Held | None:
    function = module.function_of(store)
    return module.places(function).seen.get(store) if function is not None else None


def _is_made_here(module: Module, store: ast.Attribute) -> bool:
    """On the default device on every path: a move of the module is to change that."""
    held = _held(module, store)
    return (
        held is not None
        and bool(held.places)
        and all(each.where is Where.DEFAULT for each in held.places)
    )


def _is_of_another_module(module: Module, store: ast.Attribute) -> bool:
    """`layer.weight`: who registered it moves it."""
    statement = module.statement_of(store)
    value = statement.value if isinstance(statement, ast.Assign) else None
    return isinstance(value, ast.Attribute) and value.attr in ("weight", "bias", "data")


def _setting_up(module: Module, cls: ast.ClassDef) -> set[str]:
    """Methods that set the module up, and those that they call."""
    methods = {each.name: each for each in cls.body if isinstance(each, ast.FunctionDef)}
    found = {name for name, each in methods.items() if sets_up(each)}
    left = list(found)
    while left:
        for call in module.nodes(ast.Call, methods[left.pop()]):
            func = call.func
            own = isinstance(func, ast.Attribute) and module.text(func.value) == "self"
            name = func.attr if isinstance(func, ast.Attribute) and own else ""
            if name in methods and name not in found:
                found.add(name)
                left.append(name)
    return found
