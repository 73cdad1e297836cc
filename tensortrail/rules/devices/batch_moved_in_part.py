from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices._batches import Batch, OnDevice, batches, keeps_device
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called, given, receiver, root_of

_OF_TENSORS = frozenset(
    "view reshape size dim long float bool half int squeeze unsqueeze flatten view_as type_as "
    "numel argmax sum mean max detach clone contiguous t expand permute transpose item "
    "eq ne index_select gather".split()
)
_PAIRS = frozenset(
    "eq ne sub add mul div gather index_add_ scatter_ scatter_add_ copy_ masked_fill where".split()
)
_COUNTS = frozenset("sum mean float double int long type".split())
"""Methods of a comparison of tensors: of two numbers it is a bool and has none of them."""


class BatchMovedInPart(Rule):
    """One part of a batch is moved to a device, and another part meets it where it was loaded.

    ## What it does
    Looks at names that a loop gets together, as in `for x, y in loader`, of which some are moved to
    a device in the loop and one is not. Reports an operation, a loss of torch or a module that
    takes the part that was not moved together with what was computed from a moved one.

    Parts of sequences of their own (`for x, y in zip(rows, others)`) are a note. Nothing is
    reported if the part is bound again in the loop, if the result was brought to the CPU
    before, if nothing says that the part is a tensor, or if the file prepares its loaders with
    accelerate, which moves all parts itself.

    ## Why is this bad?
    On the CPU nothing is wrong. The first batch on a GPU stops with "Expected all tensors to be on
    the same device".

    ## Fix safety
    The fix is unsafe: it moves the part in the same way. It may be meant to bring the result back
    to the CPU instead.

    ## References
    - pytorch documentation, "Training a Classifier": inputs and targets are both sent to the GPU
    """

    code = "DEV540"
    name = "batch-moved-in-part"
    since = "0.2.0"
    severity = Severity.WARNING
    confidence = Confidence.MEDIUM
    explains = ("DEV529",)
    triggers = ((".to(", "for "), (".cuda(", "for "))
    bad = (
        Bad(
            """\
import torch.nn.functional as F

def train(model, loader, optimizer, device):
    model.train()
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
""",
            lines=(7,),
            fixed="""\
import torch.nn.functional as F

def train(model, loader, optimizer, device):
    model.train()
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
""",
        ),
        Bad(
            """\
import torch

def accuracy(net, loader):
    net.eval()
    right = total = 0
    for number, batch in enumerate(loader):
        x, y = batch
        scores = net(x.cuda())
        best = scores.argmax(dim=1)
        right += (best == y).sum().item()
        total += y.size(0)
    return right / total
""",
            lines=(10,),
        ),
        Bad(
            """\
from torch import nn

def fit(model, loader, device):
    criterion = nn.MSELoss()
    model.train()
    for i, (data, target, name) in enumerate(loader):
        data = data.to(device)
        out = model(data)
        loss = criterion(out, target.float())
        loss.backward()
""",
            lines=(9,),
            fixed="""\
from torch import nn

def fit(model, loader, device):
    criterion = nn.MSELoss()
    model.train()
    for i, (data, target, name) in enumerate(loader):
        data = data.to(device)
        target = target.to(device)
        out = model(data)
        loss = criterion(out, target.float())
        loss.backward()
""",
        ),
        Bad(
            """\
import torch.nn.functional as F

def train(model, loader, device):
    model.train()
    for x, y in loader:
        x, y = x.to(device), y
        F.cross_entropy(model(x), y).backward()
""",
            lines=(7,),
        ),
        Bad(
            """\
def accuracy(model, loader, device):
    model.to(device).eval()
    right = 0
    for x, y in loader:
        best = model(x.to(device)).argmax(1)
        right += (best == y).sum().item()
    return right
""",
            lines=(6,),
        ),
    )
    good = (
        Good(
            """\
def accuracy(model, dataset, device):
    model.eval()
    right = 0
    for x, label in dataset:
        best = model(x.unsqueeze(0).to(device)).argmax(1)
        right += (best == label).sum().item()
    return right
"""
        ),
        Good(
            """\
import torch.nn.functional as F

def train(model, loader, device):
    model.train()
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        F.cross_entropy(model(x), y).backward()
"""
        ),
        Good(
            """\
def evaluate(model, loader, device):
    model.eval()
    right = 0
    for x, y in loader:
        best = model(x.to(device)).argmax(1).cpu()
        right += (best == y.view(-1)).sum().item()
    return right
"""
        ),
        Good(
            """\
def evaluate(model, dataset, device):
    model.eval()
    right = 0
    for x, label in dataset:
        best = model(x[None].to(device)).argmax(1)
        right += int(best == label)
    return right
"""
        ),
        Good(
            """\
import torch.nn.functional as F

def train(model, loader, device, mixed):
    model.train()
    for x, y in loader:
        x = x.to(device)
        y = mixed(y, device)
        F.cross_entropy(model(x), y).backward()
"""
        ),
        Good(
            """\
import torch.nn.functional as F
from accelerate import Accelerator

def train(model, loader):
    accelerator = Accelerator()
    model, loader = accelerator.prepare(model, loader)
    for x, y in loader:
        x = x.to(accelerator.device)
        F.cross_entropy(model(x), y).backward()
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module) or any(module.calls("prepare")):
            return
        for batch in batches(module):
            there = OnDevice(module, batch)
            for name in batch.left:
                meeting = _first_meeting(module, batch, there, name)
                if meeting is not None:
                    yield self._reported(module, batch, name, meeting)

    def _reported(self, module: Module, batch: Batch, name: str, meeting: ast.expr) -> Finding:
        moved, call = min(batch.moves.items(), key=lambda each: each[1].lineno)
        return self.finding(
            module,
            meeting,
            f"`{name}` is not moved, and what it meets here was computed from `{moved}`, which "
            f"line {call.lineno} moves to a device",
            trail=((call, f"`{moved}` is moved, and `{name}` of the same batch is not"),),
            severity=Severity.NOTE if batch.is_zipped else None,
            fixes=(_fix(module, name, moved, call),),
        )


def _first_meeting(module: Module, batch: Batch, there: OnDevice, name: str) -> ast.expr | None:
    uses = [each for each in module.nodes(ast.Name, batch.scope) if each.id == name]
    is_tensor = any(_is_used_as_tensor(module, each) for each in uses) or (
        not _is_one_sample(module, batch) and any(_is_counted(module, each) for each in uses)
    )
    for use in uses:
        whole = _whole(module, use)
        around = module.parent(whole)
        if isinstance(around, ast.keyword):
            around = module.parent(around)
        if isinstance(around, ast.expr) and _meets(module, around, whole, there, is_tensor):
            return around
    return None


def _is_used_as_tensor(module: Module, use: ast.Name) -> bool:
    """`y.view(-1)`, `y.shape`, or `labels.append(y)` of what `torch.cat` takes."""
    up = module.parent(use)
    if isinstance(up, ast.Call) and called(up) == "append":
        kept = receiver(up)
        return any(
            call.args and kept is not None and module.text(call.args[0]) == module.text(kept)
            for call in module.calls("torch.cat", "torch.stack", inside=module.function_of(use))
        )
    if not isinstance(up, ast.Attribute):
        return False
    is_call = isinstance(module.parent(up), ast.Call)
    return up.attr == "shape" or (is_call and up.attr in _OF_TENSORS)


def _is_counted(module: Module, use: ast.Name) -> bool:
    """`(best == y).sum()`: compared element by element."""
    compared = module.parent(use)
    counted = module.parent(compared) if isinstance(compared, ast.Compare) else None
    return isinstance(counted, ast.Attribute) and counted.attr in _COUNTS


def _is_one_sample(module: Module, batch: Batch) -> bool:
    """`x[None]`, `x.unsqueeze(0)`: what the loop gets is no batch, and `y` may be a number."""
    unsqueezed = any(
        isinstance(each, ast.Constant) and each.value == 0
        for call in module.calls("unsqueeze", inside=batch.scope)
        for each in given(call)
    )
    return unsqueezed or any(
        isinstance(each, ast.Constant) and each.value is None
        for part in module.nodes(ast.Subscript, batch.scope)
        for each in ast.walk(part.slice)
    )


def _whole(module: Module, use: ast.expr) -> ast.expr:
    """`y.view(-1)[:n]` of `y`."""
    node: ast.expr = use
    while True:
        up = module.parent(node)
        called_on = isinstance(up, ast.Attribute) and up.attr in _OF_TENSORS - {"item", "size"}
        taken = isinstance(up, ast.Call) and up.func is node
        part = isinstance(up, ast.Subscript) and up.value is node
        if not (called_on or taken or part) or not isinstance(up, ast.expr):
            return node
        node = up


def _meets(
    module: Module, around: ast.expr, odd: ast.expr, there: OnDevice, is_tensor: bool
) -> bool:
    if isinstance(around, ast.BinOp):
        return is_tensor and there.holds(around.right if around.left is odd else around.left)
    if isinstance(around, ast.Compare):
        sides = [around.left, *around.comparators]
        by_value = not isinstance(around.ops[0], (ast.Is, ast.IsNot, ast.In, ast.NotIn))
        return is_tensor and by_value and any(there.holds(each) for each in sides if each != odd)
    if not isinstance(around, ast.Call) or odd not in given(around):
        return False
    others = any(
        there.holds(each) and not _comes_to(module, each, odd)
        for each in given(around)
        if each is not odd
    )
    owner = receiver(around)
    if owner is not None and there.holds(owner):
        return is_tensor and called(around) in _PAIRS
    return others and (_is_loss(module, around) or (is_tensor and keeps_device(module, around)))


def _comes_to(module: Module, node: ast.expr, odd: ast.expr) -> bool:
    """`x.to(y.device)` beside `y`."""
    return any(
        each.attr == "device" and module.text(each.value) == module.text(odd)
        for each in module.nodes(ast.Attribute, node)
    )


def _is_loss(module: Module, call: ast.Call) -> bool:
    """It takes nothing but tensors."""
    names = [module.qualified(call.func)]
    if isinstance(call.func, (ast.Name, ast.Attribute)):
        names += [module.qualified(each) for each in module.value_of(call.func).origins]
    last = [each.rpartition(".")[2] for each in names if each.startswith("torch.nn.")]
    return any(each.endswith(("Loss", "_loss", "cross_entropy", "_div")) for each in last)


def _fix(module: Module, name: str, moved: str, call: ast.Call) -> Fix | None:
    """The same move, in the line after the one that binds the moved part again."""
    statement = module.statement_of(call)
    if not isinstance(statement, ast.Assign) or statement.value is not call:
        return None
    target = statement.targets[0]
    if not isinstance(target, ast.Name) or root_of(call) is not call.func.value:  # type: ignore[attr-defined]
        return None
    how = module.text(call)[len(moved) :]
    line = f"\n{' ' * statement.col_offset}{name} = {name}{how}"
    return module.fix("move it too", Safety.UNSAFE, module.insert_after(statement, line))
