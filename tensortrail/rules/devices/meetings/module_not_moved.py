from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.meetings.certain_places import is_module
from tensortrail.rules.devices.shared.meetings.described import described, unless
from tensortrail.rules.devices.shared.meetings.lying import out_of_place
from tensortrail.rules.devices.shared.meetings.put_or_made import LAYERS, placed
from tensortrail.rules.devices.shared.modules.moved_then_used import is_written_gpu
from tensortrail.rules.devices.shared.modules.passed_before_call import is_moved_by_another
from tensortrail.rules.devices.shared.modules.replaced_after_move import (
    Replaced,
    moved_too,
    replaced_after_move,
)
from tensortrail.rules.devices.shared.written_for.device_aware import sets_up
from tensortrail.rules.devices.shared.written_for.makers import outermost
from tensortrail.rules.places import Meeting, Place, Where
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.sentences import one_line


class ModuleNotMoved(Rule):
    """A module is called with tensors on a device, and was never moved there.

    ## What it does
    Notes a new or loaded module that nothing moves, if it is called with a tensor that was moved,
    or that is on the device of an argument. Also notes a new layer that is put into a model after
    the model was moved (`net.fc = nn.Linear(...)`), if nothing moves the layer before the call: an
    error if the move is written as one to a GPU (`.cuda()`).

    ## Why is this bad?
    On a GPU the call raises "Expected all tensors to be on the same device": a new module is on the
    default device, the CPU. If everything is on the CPU, it works.

    ## Fix safety
    No fix is offered: the module or its input may be in the wrong place.

    ## References
    - pytorch documentation of `torch.nn.Module.to`
    """

    code = "DEV542"
    name = "module-not-moved"
    since = "0.2.0"
    severity = Severity.WARNING
    warns = False
    confidence = Confidence.HIGH
    triggers = (
        ("torch", ".to("),
        ("torch", ".cuda("),
        ("torch", "device"),
        *(("nn.", f"{name}(") for name in LAYERS),
        ("torchaudio", "Resample("),
        ("torchaudio", "Spectrogram("),
    )
    bad = (
        Bad(
            """\
import torch
from torch import nn


def features(images, device: torch.device):
    images = images.to(device)
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU())
    return net(images)
""",
            lines=(7,),
            instead="""\
import torch
from torch import nn


def features(images, device: torch.device):
    images = images.to(device)
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()).to(device)
    return net(images)
""",
        ),
        Bad(
            """\
from torch import nn


def distances(loader):
    head = nn.Linear(16, 2)
    for rows, labels in loader:
        yield head(rows.cuda()), labels
""",
            lines=(5,),
        ),
        Bad(
            """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 8)

    def forward(self, x):
        return self.a(x)


def main():
    net = Net()
    x = torch.randn(2, 8, device="cuda")
    return net(x)
""",
            lines=(15,),
        ),
        Bad(
            """\
from torch import nn
from torchvision import models


def tuned(images, device):
    net = models.resnet18()
    net = net.to(device)
    net.fc = nn.Linear(512, 10)
    net.eval()
    return net(images.to(device))
""",
            lines=(8,),
            fixed="""\
from torch import nn
from torchvision import models


def tuned(images, device):
    net = models.resnet18()
    net = net.to(device)
    net.fc = nn.Linear(512, 10).to(device)
    net.eval()
    return net(images.to(device))
""",
        ),
        Bad(
            """\
from torch import nn


class Adapter(nn.Module):
    def __init__(self, base, r):
        super().__init__()
        self.base = base
        self.down = nn.Linear(base.in_features, r)
        self.up = nn.Linear(r, base.out_features)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


def adapted(model, x):
    model.cuda()
    for name, child in model.named_children():
        if isinstance(child, nn.Linear):
            setattr(model, name, Adapter(child, 8))
    return model(x.cuda())
""",
            lines=(19,),
            fixed="""\
from torch import nn


class Adapter(nn.Module):
    def __init__(self, base, r):
        super().__init__()
        self.base = base
        self.down = nn.Linear(base.in_features, r)
        self.up = nn.Linear(r, base.out_features)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


def adapted(model, x):
    model.cuda()
    for name, child in model.named_children():
        if isinstance(child, nn.Linear):
            setattr(model, name, Adapter(child, 8).cuda())
    return model(x.cuda())
""",
        ),
        Bad(
            """\
from torch import nn


class Adapter(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base
        self.scale = nn.Linear(base.in_features, 1)

    def forward(self, x):
        return self.base(x) * self.scale(x)


def add_adapters(part):
    for name, child in part.named_children():
        setattr(part, name, Adapter(child))


def adapted(model, x):
    model.cuda()
    add_adapters(model)
    return model(x.cuda())
""",
            lines=(16,),
        ),
    )
    good = (
        Good(
            """\
from torch import nn


def new_head(net, n):
    net.fc = nn.Linear(512, n)
    return net


def tuned(build, images, device):
    net = build()
    net = new_head(net, 10)
    net.to(device)
    return net(images.to(device))


def again(build, images, device):
    net = build().to(device)
    new_head(net, 10)
    net.to(device)
    return net(images.to(device))
"""
        ),
        Good(
            """\
from torch import nn
from torchvision import models


def moved_again(images, device):
    net = models.resnet18().to(device)
    net.fc = nn.Linear(512, 10)
    net = net.to(device)
    return net(images.to(device))


def tuned(images, device, prepare):
    net = models.resnet18().to(device)
    net.fc = nn.Sequential(nn.Dropout(0.5), nn.Linear(512, 10, device=device))
    net.act = nn.ReLU()
    other = models.resnet18().to(device)
    other.fc = nn.Linear(512, 10)
    other = prepare(other)
    return net(images.to(device)), other(images.to(device))
"""
        ),
        Good(
            """\
from torch import nn


def features(images, device):
    net = nn.Linear(16, 2)
    net.to(device)
    return net(images.to(device))


def on_the_cpu(images):
    net = nn.Linear(16, 2)
    return net(images.to("cpu"))


def by_another(images, prepared, device):
    net = prepared(nn.Linear(16, 2))
    return net(images.to(device))
"""
        ),
        Good(
            """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 8)

    def forward(self, x):
        return self.a(x.to(self.a.weight.device))


def main():
    net = Net()
    x = torch.randn(2, 8, device="cuda")
    return net(x)
"""
        ),
        Good(
            """\
import torch


def works(device):
    embedding = torch.randn(3, 4, 10, device=device)
    norm = torch.nn.LayerNorm(10, device=device)
    return norm(embedding)
"""
        ),
        Good(
            """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, where):
        super().__init__()
        self.a = nn.Linear(8, 8)
        self.to(where)

    def forward(self, x):
        return self.a(x)


def main(where):
    net = Net(where)
    x = torch.randn(2, 8).to(where)
    return net(x)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for each in replaced_after_move(module):
            yield self._replaced(module, each)
        reported: set[ast.AST] = set()
        for function in outermost(module, placed(module)):
            if sets_up(function):
                continue
            for meeting in module.places(function).meetings:
                if meeting.operation != "module":
                    continue
                inner = module.function_of(meeting.node) or function
                found = out_of_place(module, inner, meeting, Where.DEFAULT)
                made = found[0].by if found is not None else None
                if found is None or made is None or made in reported:
                    continue
                if is_moved_by_another(module, made, meeting):
                    continue
                if meeting.left.only is found[0] and is_module(module, function, found[0]):
                    reported.add(made)
                    yield self._reported(module, meeting, made, found[1])

    def _replaced(self, module: Module, found: Replaced) -> Finding:
        certain = found.put is None and is_written_gpu(module, found.moved)
        return self.finding(
            module,
            found.made,
            f"this `{one_line(module, found.made.func)}` is put into `{found.model}` after line "
            f"{found.moved.lineno} moved it: its parameters are on the default device when line "
            f"{found.used.lineno} calls `{found.model}`",
            severity=Severity.ERROR if certain and module.gpu_made_default() is None else None,
            trail=(
                (found.moved, "the model is moved"),
                (found.made, "made on the default device"),
                (found.put, "put into the model here"),
                (found.used, "called"),
            ),
            fixes=[] if found.put is not None else [moved_too(module, found)],
        )

    def _reported(self, module: Module, meeting: Meeting, made: ast.AST, there: Place) -> Finding:
        what = module.text(getattr(made, "func", made))
        line = getattr(meeting.node, "lineno", 0)
        elsewhere = module.gpu_made_default()
        return self.finding(
            module,
            made,
            f"the parameters of this `{what}` are on the default device: nothing moves it before "
            f"line {line} calls it with a tensor {described(there)}{unless(elsewhere)}",
            severity=None if elsewhere is None else Severity.NOTE,
            trail=(
                (made, "made on the default device"),
                (meeting.node, f"called with a tensor {described(there)}"),
            ),
        )
