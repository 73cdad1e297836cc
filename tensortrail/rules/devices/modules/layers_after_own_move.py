from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.modules.new_layers import is_new_on_default, makes_layers
from tensortrail.rules.devices.shared.written_for.device_aware import sets_up
from tensortrail.rules.shared.functions import functions
from tensortrail.rules.shared.given_devices import is_given_device
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.moves import MODULE_TO_DEVICE
from tensortrail.rules.shared.objects import is_self, receiver
from tensortrail.rules.shared.parts_moved import is_to_a_device
from tensortrail.rules.view import FunctionNode


class LayersAfterOwnMove(Rule):
    """A module moves itself in its constructor, and makes more layers afterwards.

    ## What it does
    Reports `self.to(device)` and `self.cuda()` in the constructor of a module, if the constructor
    later makes layers with parameters, without a device, and nothing moves the module or these
    layers again.

    ## Why is this bad?
    The first call on a GPU raises "Expected all tensors to be on the same device": a move affects
    only the layers that exist at that time. The later ones are on the default device.

    ## Fix safety
    No fix is offered: code between the move and the layers may need what was moved.

    ## References
    - TransformerLensOrg/TransformerLens, "HookedEncoder not being moved to GPU"
    """

    code = "DEV610"
    name = "layers-after-own-move"
    severity = Severity.WARNING
    proven = False
    confidence = Confidence.HIGH
    triggers = tuple(("torch", f"self.{name}(") for name in sorted(MODULE_TO_DEVICE))
    bad = (
        Bad(
            "from torch import nn\n\n\nclass Net(nn.Module):\n"
            "    def __init__(self, n, device):\n        super().__init__()\n"
            "        self.inner = nn.Linear(n, n)\n        self.to(device)\n"
            "        self.head = nn.Linear(n, 2)\n\n"
            "    def forward(self, x):\n        return self.head(self.inner(x))\n",
            lines=(8,),
            instead="from torch import nn\n\n\nclass Net(nn.Module):\n"
            "    def __init__(self, n, device):\n        super().__init__()\n"
            "        self.inner = nn.Linear(n, n)\n        self.head = nn.Linear(n, 2)\n"
            "        self.to(device)\n\n"
            "    def forward(self, x):\n        return self.head(self.inner(x))\n",
        ),
        Bad(
            "from torch import nn\n\n\nclass Net(nn.Module):\n"
            "    def __init__(self, cfg, move=True):\n        super().__init__()\n"
            "        if move:\n            self.to(cfg.device)\n"
            "        self.layers = nn.ModuleList([nn.Linear(cfg.n, cfg.n) for _ in range(3)])\n\n"
            "    def forward(self, x):\n        for layer in self.layers:\n"
            "            x = layer(x)\n        return x\n",
            lines=(8,),
        ),
        Bad(
            "import torch.nn as N\n\n\nclass Head(N.Module):\n"
            "    def __init__(self, n):\n        super().__init__()\n"
            "        self.out = N.Linear(n, 2)\n\n"
            "    def forward(self, x):\n        return self.out(x)\n\n\n"
            "class Net(N.Module):\n"
            "    def __init__(self, n, device):\n        super().__init__()\n"
            "        self.inner = N.Linear(n, n)\n        self.to(device)\n"
            "        self.head = Head(n)\n\n"
            "    def forward(self, x):\n        return self.head(self.inner(x))\n",
            lines=(17,),
        ),
    )
    good = (
        Good(
            "from torch import nn\n\n\nclass Net(nn.Module):\n"
            "    def __init__(self, n, device):\n        super().__init__()\n"
            "        self.inner = nn.Linear(n, n)\n        self.to(device)\n"
            "        self.head = nn.Linear(n, 2, device=device)\n        self.n = n\n\n"
            "    def forward(self, x):\n        return self.head(self.inner(x))\n"
        ),
        Good(
            "from torch import nn\n\n\nclass Net(nn.Module):\n"
            "    def __init__(self, n, device):\n        super().__init__()\n"
            "        self.inner = nn.Linear(n, n)\n        self.to(device)\n"
            "        self.head = nn.Linear(n, 2)\n        self.place(device)\n\n"
            "    def place(self, device):\n        self.head.to(device)\n\n"
            "    def forward(self, x):\n        return self.head(self.inner(x))\n"
        ),
        Good(
            "from torch import nn\n\n\nclass Net(nn.Module):\n"
            "    def __init__(self, n, device):\n        super().__init__()\n"
            "        self.inner = nn.Linear(n, n)\n        self.to(device)\n"
            "        self.head = nn.Linear(n, 2)\n        self.cuda()\n\n"
            "    def forward(self, x):\n        return self.head(self.inner(x))\n"
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for function in functions(module):
            cls = module.parent(function)
            facts = module.class_facts(cls) if isinstance(cls, ast.ClassDef) else None
            if not sets_up(function) or facts is None or not facts.is_module:
                continue
            for move in module.calls(*MODULE_TO_DEVICE, inside=function):
                made = list(_made_after(module, function, move))
                if made:
                    yield self._reported(module, move, made)

    def _reported(self, module: Module, move: ast.Call, made: list[ast.Assign]) -> Finding:
        first = module.text(made[0].targets[0])
        more = f" and {len(made) - 1} more" if made[1:] else ""
        return self.finding(
            module,
            move,
            f"`{module.text(move)}` runs before line {made[0].lineno} makes `{first}`{more}, which "
            "stays on the default device",
            trail=((made[0], "made afterwards, without a device"),),
        )


def _made_after(module: Module, function: FunctionNode, move: ast.Call) -> Iterator[ast.Assign]:
    """Layers of the module that are made after the whole of it was moved, and not moved."""
    owner = receiver(move)
    if owner is None or not is_self(owner) or module.function_of(move) is not function:
        return
    if not is_to_a_device(module, move):
        return
    for assign in module.later(move, ast.Assign):
        target, made = assign.targets[0], assign.value
        own = isinstance(target, ast.Attribute) and is_self(target.value)
        new = own and isinstance(made, ast.Call) and _is_layer(module, made)
        if new and not _is_moved_later(module, assign):
            yield assign


def _is_layer(module: Module, made: ast.Call) -> bool:
    """With parameters, made without a device: a layer of torch, or a module of the project."""
    if is_new_on_default(module, made):
        return True
    if is_given_device(module, made):
        return False
    facts = module.class_facts(module.qualified(made.func))
    own = facts is not None and facts.is_module and module.is_of_project(made)
    return own and bool(module.about(module.qualified(made.func), makes_layers))


def _is_moved_later(module: Module, made: ast.Assign) -> bool:
    """Something of the module is moved after it, here or by a method that is called here."""
    for call in module.later(made, ast.Call):
        owner = receiver(call)
        if owner is None or not module.text(owner).startswith("self"):
            continue
        name = getattr(call.func, "attr", "")
        if name in MODULE_TO_DEVICE or _moves(module, module.class_of(made), name):
            return True
    return False


def _moves(module: Module, cls: ast.ClassDef | None, name: str) -> bool:
    methods = cls.body if cls is not None else ()
    return any(
        isinstance(each, ast.FunctionDef)
        and each.name == name
        and any(True for _ in module.calls(*MODULE_TO_DEVICE, inside=each))
        for each in methods
    )
