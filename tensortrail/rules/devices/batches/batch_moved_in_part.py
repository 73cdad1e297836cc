from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.batches.batch_meetings import (
    first_meeting,
    meetings,
    moved_too,
    passed_beside,
)
from tensortrail.rules.devices.shared.batches.batches import Batch, batches
from tensortrail.rules.devices.shared.batches.batches_by_key import Member, members_left, told
from tensortrail.rules.devices.shared.batches.collected import meeting_of_lists
from tensortrail.rules.devices.shared.batches.on_device import OnDevice
from tensortrail.rules.shared.in_tests import in_tests


class BatchMovedInPart(Rule):
    """One part of a batch is moved to a device, and another part is not.

    ## What it does
    Looks at names that one loop or assignment sets together, as in `for x, y in loader` or
    `x, y = batch`, if some are moved to a device and one is not. Reports an operation, a loss or a
    module that combines this one with a result of a moved one. Also reports

    - two lists that the loop fills and `torch.cat` joins afterwards, one of moved parts;
    - a member that is taken from a batch before `{k: v.to(device) for k, v in batch.items()}`, or
      from the old batch after it.

    As a note: `for x, y in zip(a, b)`, and a module's first argument that may not be a tensor.

    Not reported: a part that is assigned again in the loop; a result that was brought to the CPU;
    arguments of a data-parallel model; and files that call `prepare`.

    ## Why is this bad?
    The first batch on a GPU raises "Expected all tensors to be on the same device".

    ## Fix safety
    Unsafe: it moves the part in the same way. It may be meant to bring the result back to the CPU
    instead.

    ## References
    - pytorch documentation, "Training a Classifier": inputs and targets are both sent to the GPU
    """

    code = "DEV540"
    name = "batch-moved-in-part"
    since = "0.2.0"
    severity = Severity.WARNING
    warns = False
    confidence = Confidence.MEDIUM
    explains = ("DEV524", "DEV529")
    triggers = tuple((move, word) for move in (".to(", ".cuda(") for word in ("for ", "def "))
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
        Bad(
            """\
import torch.nn.functional as F

def train(model, loader, device):
    model.to(device)
    for batch in loader:
        labels = batch.pop("labels")
        batch = {name: each.to(device) for name, each in batch.items()}
        F.cross_entropy(model(**batch), labels).backward()
""",
            lines=(8,),
            fixed="""\
import torch.nn.functional as F

def train(model, loader, device):
    model.to(device)
    for batch in loader:
        labels = batch.pop("labels")
        batch = {name: each.to(device) for name, each in batch.items()}
        F.cross_entropy(model(**batch), labels.to(device)).backward()
""",
        ),
        Bad(
            """\
def accuracy(net, loader):
    net.cuda()
    right = 0
    for batch in loader:
        moved = {name: batch[name].cuda() for name in ("ids", "mask")}
        right += (net(moved["ids"], moved["mask"]).argmax(-1) == batch["labels"]).sum()
    return right
""",
            lines=(6,),
            fixed="""\
def accuracy(net, loader):
    net.cuda()
    right = 0
    for batch in loader:
        moved = {name: batch[name].cuda() for name in ("ids", "mask")}
        right += (net(moved["ids"], moved["mask"]).argmax(-1) == batch["labels"].cuda()).sum()
    return right
""",
        ),
        Bad(
            """\
import torch

@torch.no_grad()
def accuracy(net, loader, device):
    net.to(device).eval()
    found, wanted = [], []
    for x, y in loader:
        found.append(net(x.to(device)).argmax(1))
        wanted.append(y)
    wanted = torch.cat(wanted)
    return (torch.cat(found) == wanted).float().mean()
""",
            lines=(11,),
            instead="""\
import torch

@torch.no_grad()
def accuracy(net, loader, device):
    net.to(device).eval()
    found, wanted = [], []
    for x, y in loader:
        found.append(net(x.to(device)).argmax(1).cpu())
        wanted.append(y)
    wanted = torch.cat(wanted)
    return (torch.cat(found) == wanted).float().mean()
""",
        ),
        Bad(
            """\
def train(model, loader, device):
    model.train()
    for images, targets in loader:
        targets = [{k: v.to(device) for k, v in each.items()} for each in targets]
        sum(model(images, targets).values()).backward()
""",
            lines=(5,),
        ),
        Bad(
            """\
def evaluate(model, criterion, loader, device):
    for x, y, marks in loader:
        x = x.float()
        y = y.float().to(device)
        marks = marks.float().to(device)
        criterion(model(x, marks, y), y).item()
""",
            lines=(6,),
        ),
        Bad(
            "import torch.nn.functional as F\n\nclass Trainer:\n"
            "    def __init__(self, net, device):\n        self.net = net.to(device)\n\n"
            "    def step(self, batch, device):\n        x, y = batch\n"
            "        return F.cross_entropy(self.net(x.to(device)), y)\n",
            lines=(9,),
        ),
    )
    good = (
        Good(
            "from torch.nn import DataParallel\n\ndef train(net, rows, device):\n"
            "    model = DataParallel(net)\n    for x, y in rows:\n"
            "        model(x.to(device), y.view(-1)[1:]).backward()\n"
        ),
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
    model.to(device)
    for batch in loader:
        inputs = {name: each.to(device) for name, each in batch.items() if name != "labels"}
        F.cross_entropy(model(**inputs), batch["labels"].to(device)).backward()
"""
        ),
        Good(
            """\
import torch.nn.functional as F

def evaluate(model, loader, device):
    model.to(device)
    for batch in loader:
        inputs = {name: each.to(device) for name, each in batch.items()}
        print(batch["name"], F.cross_entropy(model(**inputs).cpu(), batch["labels"]))
"""
        ),
        Good(
            """\
import torch.nn.functional as F

def evaluate(model, loader, device):
    model.to(device)
    for batch in loader:
        batch["labels"] = batch["labels"].to(device)
        inputs = {name: each.to(device) for name, each in batch.items()}
        yield F.cross_entropy(model(**inputs), batch["labels"])
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
            "def evaluate(model, dataset, device):\n    model.eval()\n    right = 0\n"
            "    for x, label in dataset:\n        best = model(x[None].to(device)).argmax(1)\n"
            "        right += int(best == label)\n    return right\n"
        ),
        Good(
            "import torch.nn.functional as F\n\ndef train(model, loader, device, mixed):\n"
            "    model.train()\n    for x, y in loader:\n        x = x.to(device)\n"
            "        y = mixed(y, device)\n        F.cross_entropy(model(x), y).backward()\n"
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
        Good(
            "def weighed(model, loader):\n    for x, y in loader:\n        place = x.device\n"
            "        print((y.to(place).view(-1) * x.view(-1)).sum())\n"
            "        y = y.to(device=x.device, dtype=x.dtype)\n"
            "        print((model(x) - y).abs().sum(), (x * y).sum())\n"
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module) or any(module.calls("prepare")):
            return
        for batch in batches(module):
            there = OnDevice(module, batch.scope)
            for name in batch.left:
                sure = first_meeting(module, batch, there, name)
                sure = sure or meeting_of_lists(module, batch, there, name)
                meeting = sure or passed_beside(module, batch, there, name)
                if meeting is not None:
                    yield self._reported(module, batch, name, meeting, sure is not None)
        for member in members_left(module):
            there = OnDevice(module, member.scope)
            found = next(meetings(module, member.uses, there, True), None)
            if found is not None:
                yield self._of_mapping(module, member, *found)

    def _of_mapping(
        self, module: Module, member: Member, use: ast.expr, meeting: ast.expr
    ) -> Finding:
        message, fix = told(module, member, use)
        trail = ((member.move, "the members of the batch are moved"),)
        return self.finding(module, meeting, message, trail=trail, fixes=(fix,))

    def _reported(
        self, module: Module, batch: Batch, name: str, meeting: ast.expr, sure: bool
    ) -> Finding:
        moved, call = min(batch.moves.items(), key=lambda each: each[1].lineno)
        return self.finding(
            module,
            meeting,
            f"`{name}` is not moved, but is combined here with a result of `{moved}`, which line "
            f"{call.lineno} moves to a device",
            trail=((call, f"`{moved}` is moved, and `{name}` of the same batch is not"),),
            severity=None if sure and not batch.is_zipped else Severity.NOTE,
            fixes=(moved_too(module, name, moved, call),),
        )
