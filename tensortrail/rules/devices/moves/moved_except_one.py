from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.moves.moved_alike import left_of_its_kind
from tensortrail.rules.devices.shared.moves.moved_beside import LeftAlone, left_beside, moved_to
from tensortrail.rules.devices.shared.moves.moved_elsewhere import left_unlike_elsewhere
from tensortrail.rules.devices.shared.moves.moved_in_other_loops import left_in_one_loop
from tensortrail.rules.devices.shared.named.named_gpus import is_bound_around
from tensortrail.rules.devices.shared.written_for.beforehand import is_beforehand
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.sentences import one_line

_ENOUGH = 3
"""Others that are moved, for one that should be."""


class MovedExceptOne(Rule):
    """Several similar values are moved to a device, and one is not.

    ## What it does
    Reports one that stays, next to others that are moved to the same device, among

    - the members of a batch, the arguments of a call, the entries of a mapping, or names that are
      assigned together;
    - the results of functions of torch in one function;
    - what other functions of the file move before they use it: `batch["image"]`, the result of a
      project function, or what a loop passes to a model.

    A warning if three or more others are moved, and all are results of one method of
    variables (`x.reshape(-1).to(device)`) or layers of torch; and for `a, b = a.to(device), b`. All
    others are notes, reported only if the rule is selected (`--select DEV529`).

    ## Why is this bad?
    On a GPU, an operation that combines the values raises: the one that was not moved is on the
    CPU.

    ## Fix safety
    No fix is offered: the value may not be a tensor.

    ## References
    - pytorch documentation of `torch.Tensor.to`
    """

    code = "DEV529"
    name = "moved-except-one"
    severity = Severity.WARNING
    proven = False
    confidence = Confidence.MEDIUM
    notes = False
    triggers = (".to(",)
    bad = (
        Bad(
            "def batches(batch, device):\n    ids = batch['ids'].to(device)\n"
            "    mask = batch['mask'].to(device)\n    labels = batch['labels']\n"
            "    return ids, mask, labels\n",
            lines=(4,),
            instead="""\
def batches(batch, device):
    ids = batch['ids'].to(device)
    mask = batch['mask'].to(device)
    labels = batch['labels'].to(device)
    return ids, mask, labels
""",
        ),
        Bad(
            "import torch\n\n\ndef given(a, b, device):\n"
            "    return {'a': torch.from_numpy(a).to(device), 'b': torch.from_numpy(b)}\n",
            lines=(5,),
        ),
        Bad(
            "def run(model, batch, device):\n    ids, labels = batch\n    ids = ids.to(device)\n"
            "    return model(ids, labels)\n",
            lines=(2,),
        ),
        Bad(
            "def compared(a, b, device):\n    a, b = a.to(device), b\n    return a.like(b)\n",
            lines=(2,),
        ),
        Bad(
            "import torch\n\n\ndef given(rows, columns, device):\n    if rows is None:\n"
            "        return torch.from_numpy(columns)\n"
            "    return torch.from_numpy(rows).to(device)\n",
            lines=(6,),
        ),
        Bad(
            "import torch\n\n\ndef loss(model, batch, device):\n"
            "    image = batch['image'].to(device)\n    return model(image)\n\n\n"
            "def score(model, batch):\n    image = model.cropped(batch['image'])\n"
            "    return image.mean()\n",
            lines=(10,),
            instead="import torch\n\n\ndef loss(model, batch, device):\n"
            "    image = batch['image'].to(device)\n    return model(image)\n\n\n"
            "def score(model, batch):\n    image = model.cropped(batch['image'].to(model.device))\n"
            "    return image.mean()\n",
        ),
        Bad(
            "import torch\n\n\nclass Parts:\n    def to(self, device):\n"
            "        u = self.u.to(device)\n        v = self.v\n"
            "        return Parts(u, v)\n",
            lines=(7,),
            instead="import torch\n\n\nclass Parts:\n    def to(self, device):\n"
            "        u = self.u.to(device)\n        v = self.v.to(device)\n"
            "        return Parts(u, v)\n",
        ),
        Bad(
            "def train(model, loader, device):\n    model.train()\n    for batch in loader:\n"
            "        batch.to(device)\n        model(batch).backward()\n\n\n"
            "def evaluate(model, loader, device):\n    model.eval()\n    for batch in loader:\n"
            "        print(model(batch).item())\n",
            lines=(11,),
        ),
    )
    good = (
        Good(
            "def run(model, batch, device):\n    ids, names = batch\n    ids = ids.to(device)\n"
            "    return model(ids), names\n"
        ),
        Good(
            "def batches(batch, device):\n    ids = batch['ids'].to(device)\n"
            "    names = list(batch)\n    return ids, names\n"
        ),
        Good(
            "def train(model, loader, device):\n    model.train()\n    for batch in loader:\n"
            "        batch.to(device)\n        model(batch).backward()\n\n\n"
            "def evaluate(model, loader, moved):\n    model.eval()\n    for batch in loader:\n"
            "        batch = moved(batch)\n        print(model(batch).item())\n"
        ),
        Good(
            """\
class Chat:
    def encoded(self, text):
        ids = self.split(text, return_tensors="pt").input_ids.to(self.device)
        return self.embed(ids)

    def wrapped(self, image, before, middle, after, last):
        first = self.split(before, return_tensors="pt").to(image.device)
        second = self.split(middle, return_tensors="pt").to(image.device)
        third = self.split(after, return_tensors="pt").to(image.device)
        fourth = self.split(last, return_tensors="pt").to(image.device)
        return self.embed(first.input_ids, second.input_ids, third.input_ids, fourth.input_ids)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        reported: set[ast.AST] = set()
        moves = [each for each in module.calls("to") if moved_to(module, each)]
        for each in (
            *left_beside(module, moves),
            *left_of_its_kind(module, moves),
            *left_unlike_elsewhere(module, moves),
            *left_in_one_loop(module, moves),
        ):
            if each.node not in reported:
                reported.add(each.node)
                yield self._reported(module, each)

    def _reported(self, module: Module, left: LeftAlone) -> Finding:
        shown = left.moved[:2]
        lines = " and ".join(f"line {each.lineno}" for each in shown)
        others = (
            "a similar value is"
            if len(left.moved) == 1
            else f"{len(left.moved)} similar values are"
        )
        return self.finding(
            module,
            left.node,
            f"`{one_line(module, left.node)}` is not moved, but {others} moved to `{left.device}`, "
            f"see {lines}",
            severity=None if _is_sure(module, left) else Severity.NOTE,
            trail=tuple((each, "moved") for each in shown),
        )


def _is_sure(module: Module, left: LeftAlone) -> bool:
    if _is_bound_to_itself(module, left.node) and not is_beforehand(module, left.node):
        return True
    if len(left.moved) < _ENOUGH or is_beforehand(module, left.node):
        return False
    if any(moved_to(module, each) for each in module.nodes(ast.Call, left.node)):
        return False  # what it is made of was moved
    return isinstance(left.node, ast.Call) and (
        _is_a_layer(module, left.node) or _is_of_a_tensor(module, left.node)
    )


def _is_bound_to_itself(module: Module, node: ast.AST) -> bool:
    """`b` of `a, b = a.to(device), b`: nobody writes that but to move both."""
    values = module.parent(node)
    statement = module.parent(values) if isinstance(values, ast.Tuple) else None
    names = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if not isinstance(values, ast.Tuple) or not isinstance(names, ast.Tuple):
        return False
    pairs = list(zip(names.elts, values.elts, strict=False))
    itself = [value for name, value in pairs if module.text(name) == module.text(value)]
    moved = [
        value
        for name, value in pairs
        if moved_to(module, value) and module.text(value).startswith(f"{module.text(name)}.to(")
    ]
    return itself == [node] and len(moved) == len(pairs) - 1


def _is_a_layer(module: Module, call: ast.Call) -> bool:
    owner, _, last = module.qualified(call.func).rpartition(".")
    return owner == "torch.nn" and last[:1].isupper()


def _is_of_a_tensor(module: Module, call: ast.Call) -> bool:
    """`x.reshape(-1)` of a variable: no function of a library, no `Net.loaded(path)`, which gives
    what its class says, and no method that may give something else."""
    if not isinstance(call.func, ast.Attribute) or module.qualified(call.func).startswith("torch"):
        return False
    if not module.value_of(call).is_tensor:
        return False
    root: ast.expr = call.func
    while isinstance(root, (ast.Attribute, ast.Subscript, ast.Call)):
        root = root.func if isinstance(root, ast.Call) else root.value
    return not isinstance(root, ast.Name) or is_bound_around(module, root)
