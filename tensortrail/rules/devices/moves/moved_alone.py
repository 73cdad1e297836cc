from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.meetings.legal import is_legal
from tensortrail.rules.devices.shared.written_for.makers import outermost
from tensortrail.rules.places import FunctionPlaces, Held, Meeting, What, Where
from tensortrail.rules.shared.dtypes import is_cast
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.moves import TO_DEVICE
from tensortrail.rules.shared.objects import receiver


class MovedAlone(Rule):
    """One tensor of an object is moved, and then combined with another one that is not.

    ## What it does
    Reports, as a note, an operation on two tensors of one object, such as a weight and its bias or
    scale, if the function moved one of them to a device and not the other.

    Not reported: an object that is moved as a whole, two tensors in branches that exclude each
    other, and a number or a tensor without a dimension as the other one.

    ## Why is this bad?
    The operation raises if the move changes the device, as it does for layers that are offloaded or
    spread over devices: both tensors were on the device of the object. If the move never changes
    anything, it is not needed.

    ## Fix safety
    Unsafe: it moves the other tensor as well. It may be right to move neither.

    ## References
    - pytorch documentation of `torch.Tensor.to`
    """

    code = "DEV522"
    name = "moved-alone"
    since = "0.2.0"
    severity = Severity.WARNING
    warns = False
    needs_callers = True
    triggers = (("torch", ".to("), ("torch", ".cuda("))
    bad = (
        Bad(
            "import torch.nn.functional as F\n\n\ndef run(layer, x):\n"
            "    weight = layer.weight.to(x.device)\n"
            "    return F.linear(x, weight, layer.bias)\n",
            lines=(6,),
        ),
        Bad(
            "import torch\nfrom torch import nn\n\n\nclass Scaled(nn.Module):\n"
            "    def __init__(self, n):\n        super().__init__()\n"
            "        self.weight = nn.Parameter(torch.ones(n, n))\n"
            "        self.register_buffer('scale', torch.ones(n))\n\n"
            "    def forward(self, x):\n        moved = self.weight.to(x.device)\n"
            "        return x @ (moved * self.scale)\n",
            lines=(13,),
            fixed="import torch\nfrom torch import nn\n\n\nclass Scaled(nn.Module):\n"
            "    def __init__(self, n):\n        super().__init__()\n"
            "        self.weight = nn.Parameter(torch.ones(n, n))\n"
            "        self.register_buffer('scale', torch.ones(n))\n\n"
            "    def forward(self, x):\n        moved = self.weight.to(x.device)\n"
            "        return x @ (moved * self.scale.to(moved.device))\n",
        ),
    )
    good = (
        Good(
            "import torch.nn.functional as F\n\n\ndef run(layer, x):\n"
            "    layer = layer.to(x.device)\n"
            "    return F.linear(x, layer.weight, layer.bias)\n"
        ),
        Good(
            "import torch.nn.functional as F\n\n\ndef run(layer, x):\n"
            "    weight = layer.weight.to(x.dtype)\n"
            "    return F.linear(x, weight, layer.bias)\n"
        ),
        Good(
            "import torch\nfrom torch import nn\n\n\nclass Kept(nn.Module):\n"
            "    def __init__(self, n):\n        super().__init__()\n"
            "        self.table = torch.ones(n, n)\n"
            "        self.weight = nn.Parameter(torch.ones(n, n))\n\n"
            "    def forward(self, x):\n        table = self.table.to(x.device)\n"
            "        return x @ (table * self.weight)\n"
        ),
        Good(
            "import torch.nn.functional as F\n\n\ndef run(layer, x):\n"
            "    weight, bias = layer.weight.to(x.device), layer.bias.to(x.device)\n"
            "    return F.linear(x, weight, bias) + F.linear(x, layer.weight, layer.bias)\n"
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        reported: set[tuple[ast.AST, str]] = set()
        for function in outermost(module, _moves_of_members(module)):
            places = module.places(function)
            for meeting in places.meetings:
                for moved, left in meeting.pairs:
                    if not _parted(meeting, moved, left):
                        continue
                    key = (meeting.node, left.path)
                    if key not in reported:
                        reported.add(key)
                        yield self._reported(module, places, meeting, moved, left)

    def _reported(
        self, module: Module, places: FunctionPlaces, meeting: Meeting, moved: Held, left: Held
    ) -> Finding:
        operand = _operand(module, meeting, left.path)
        return self.finding(
            module,
            operand or meeting.node,
            f"`{moved.path}` was moved and `{left.path}` was not: they are on one device only if "
            "the move changed nothing",
            severity=Severity.NOTE if left.only and left.only.where is Where.SELF else None,
            trail=(
                (moved.moved, f"`{moved.path}` is moved"),
                (meeting.node, f"`{left.path}` meets it, and was not moved"),
            ),
            fixes=(_fix(module, places, meeting, moved, operand),),
        )


def _moves_of_members(module: Module) -> Iterator[ast.Call]:
    """`a.b.to(...)`; a member that is given a name first is moved as a plain name."""
    for call in module.calls(*TO_DEVICE):
        moved = receiver(call)
        if moved is None or isinstance(moved, ast.Call) or _is_only_given(module, moved):
            continue
        if not is_cast(module, call):
            yield call


def _is_only_given(module: Module, moved: ast.expr) -> bool:
    """An argument, or a name of the file, which the function binds to no member."""
    function = module.function_of(moved) or module.top
    return isinstance(moved, ast.Name) and moved.id not in module.once(_bound_in, function)


def _bound_in(module: Module, function: ast.AST) -> frozenset[str]:
    names = module.nodes(ast.Name, function)
    return frozenset(each.id for each in names if isinstance(each.ctx, ast.Store))


def _parted(meeting: Meeting, moved: Held, left: Held) -> bool:
    """Two tensors of one object, one of them moved somewhere else by this function."""
    if moved.moved is None or left.moved is not None or is_legal(meeting, left):
        return False
    if left.what is not What.TENSOR and meeting.by_element:
        return False
    owner, other = moved.path.rpartition(".")[0], left.path.rpartition(".")[0]
    if not owner or owner != other or moved.path == left.path:
        return False
    there, before, here = moved.only, moved.was, left.only
    if there is None or here is None or there.given or here.given or len(before) != 1:
        return False
    if there.where not in (Where.OF, Where.DEVICE, Where.LITERAL) or there.subject == "cpu":
        return False
    was = next(iter(before))
    return was.where is here.where and here.where in (Where.OF, Where.SELF)


def _operand(module: Module, meeting: Meeting, path: str) -> ast.expr | None:
    """Where the unmoved tensor is read, if it is read in the operation itself."""
    for node in module.nodes(ast.Attribute, meeting.node):
        if ast.unparse(node) == path and isinstance(node.ctx, ast.Load):
            return node
    return None


def _fix(
    module: Module,
    places: FunctionPlaces,
    meeting: Meeting,
    moved: Held,
    operand: ast.expr | None,
) -> Fix | None:
    names = [
        node.id
        for node in module.nodes(ast.Name, meeting.node)
        if (held := places.seen.get(node)) is not None and held.moved is moved.moved
    ]
    if operand is None or not names or not meeting.by_element:
        return None  # a bias may be None
    edit = module.insert_after(operand, f".to({names[0]}.device)")
    return module.fix("move it too", Safety.UNSAFE, edit)
