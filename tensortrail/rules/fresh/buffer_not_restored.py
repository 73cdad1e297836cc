from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.fresh._unsaved_buffers import (
    INTERNAL_DICTS,
    changes_in,
    computes_again,
    is_of_saved_ones,
    never_computed,
    over_buffers,
    sent_to_meta,
    set_as_saved,
)
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called, is_true, keyword, name_of, receiver
from tensortrail.rules.shared.on_meta import is_written_after


class BufferNotRestored(Rule):
    """A buffer with `persistent=False` loses its values, or gets into state dicts.

    ## What it does
    Reports:

    - an internal table of a module, such as `module._non_persistent_buffers_set`, that is bound to
      a name and changed in place, which changes the module;
    - as a note, a function that copies buffers from `named_buffers()` into another module and
      registers all of them as persistent; or all whose names begin with the same word, if the file
      registers one of these as not persistent elsewhere;
    - as a note, `setattr(part, name, nn.Buffer(x))` in the place of a buffer, whichever it is: a
      `Buffer` made without `persistent` is saved, also if the one before was not;
    - a model with values that is sent to meta and back with `to_empty`, if only a state dict is
      loaded afterwards; and a class of this file that has such a buffer, itself or in a part, and
      is made on meta and filled in the same way.

    ## Why is this bad?
    Rotary frequencies, masks and position ids hold uninitialised memory after `to_empty`, because a
    state dict has no buffers with `persistent=False`. No error is raised. Registered as persistent,
    they appear in checkpoints that other code refuses to load.

    ## Fix safety
    No fix is offered.

    ## References
    - huggingface/accelerate #4116: `|=` changed the set of the module
    - huggingface/optimum-quanto: `requantize` lost buffers that no state dict has
    """

    code = "NEW308"
    name = "buffer-not-restored"
    since = "0.2.0"
    severity = Severity.ERROR
    warns = False
    triggers = (*INTERNAL_DICTS[:3], ("named_buffers", "register_buffer"), ("to_empty", "meta"),
                ("to_empty", "persistent"), ("Buffer(", "setattr("))  # fmt: skip

    bad = (
        Bad(
            """\
def unsaved(module):
    names = module._non_persistent_buffers_set
    for child in module.children():
        names |= child._non_persistent_buffers_set
    return names
""",
            lines=(4,),
            instead="""\
def unsaved(module):
    names = set(module._non_persistent_buffers_set)
    for child in module.children():
        names |= child._non_persistent_buffers_set
    return names
""",
        ),
        Bad(
            """\
def materialise(source, target, device):
    for name, buffer in source.named_buffers():
        target.register_buffer(name, buffer.to(device), persistent=True)
""",
            lines=(3,),
        ),
        Bad(
            """\
import torch

def reload(model, weights, quantize):
    model.to(torch.device("meta"))
    quantize(model)
    model.to_empty(device="cpu")
    model.load_state_dict(weights, strict=False)
""",
            lines=(6,),
        ),
        Bad(
            """\
import torch
from torch import nn

class Rotary(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.layer = nn.Linear(size, size)
        self.register_buffer("rates", 1.0 / torch.arange(1, size), persistent=False)

def load(path):
    with torch.device("meta"):
        net = Rotary(8)
    net.to_empty(device="cuda")
    net.load_state_dict(torch.load(path, map_location="cuda"))
    return net
""",
            lines=(13,),
        ),
        Bad(
            """\
import torch
from torch import nn

class Rotary(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.register_buffer("rates", 1.0 / torch.arange(1, size), persistent=False)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rotary, self.layer = Rotary(8), nn.Linear(8, 8)

with torch.device("meta"):
    net = Net()
net.to_empty(device="cuda")
net.load_state_dict(torch.load("net.pt", map_location="cuda"))
""",
            lines=(16,),
        ),
        Bad(
            """\
import torch

def made(values):
    return torch.nn.Buffer(values)

def onload(places):
    for part, name, value, is_buffer in places:
        value = value.to("cuda", non_blocking=True)
        if is_buffer:
            value = made(value)
        else:
            value = torch.nn.Parameter(value)
        setattr(part, name, value)
""",
            lines=(13,),
            instead="""\
import torch

def onload(places):
    for part, name, value, is_buffer in places:
        value = value.to("cuda", non_blocking=True)
        if is_buffer:
            part._buffers[name] = value
        else:
            setattr(part, name, torch.nn.Parameter(value))
""",
        ),
    )
    good = (
        Good(
            """\
import torch

def onload(places):
    for part, name, value in places:
        is_kept = name not in part._non_persistent_buffers_set
        setattr(part, name, torch.nn.Buffer(value.cuda(), persistent=is_kept))
        setattr(part, "scale", torch.nn.Buffer(value))
        setattr(part, name, torch.nn.Parameter(value))
"""
        ),
        Good(
            """\
import torch
from torch import nn

class Rotary(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.layer = nn.Linear(size, size)
        self.register_buffer("rates", 1.0 / torch.arange(1, size), persistent=True)

def load(path):
    with torch.device("meta"):
        net = Rotary(8)
    net.to_empty(device="cuda")
    net.load_state_dict(torch.load(path, map_location="cuda"))
    return net
"""
        ),
        Good(
            """\
def materialise(source, target, device):
    for name, buffer in source.named_buffers(recurse=False):
        kept = name not in source._non_persistent_buffers_set
        target.register_buffer(name, buffer.to(device), persistent=kept)
"""
        ),
        Good(
            """\
import torch

def build(make, weights):
    with torch.device("meta"):
        model = make()
    model.to_empty(device="cpu")
    model.load_state_dict(weights)
"""
        ),
        Good(
            """\
def replace(module, name, value):
    module._parameters[name] = value
    module._buffers.pop(name, None)
"""
        ),
        Good(
            """\
import torch

def reload(model, weights):
    model.to("meta")
    model.to_empty(device="cpu")
    model.load_state_dict(weights)
    model.reset_buffers()
"""
        ),
        Good(
            """\
from torch import nn

class Rotated(nn.Module):
    def __init__(self, other):
        super().__init__()
        for name, value in other.named_buffers():
            if name.startswith("scale_"):
                self.register_buffer(name, value.data)
"""
        ),
        Good(
            """\
import torch
from torch import nn

class Rotary(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.layer = nn.Linear(size, size)
        self.register_buffer("rates", 1.0 / torch.arange(1, size), persistent=False)

def load(path):
    with torch.device("meta"):
        net = Rotary(8)
    net.to_empty(device="cuda")
    net.load_state_dict(torch.load(path, map_location="cuda"))
    net.rates.copy_(1.0 / torch.arange(1, 8))
    return net
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        yield from self._changed(module)
        yield from self._made_persistent(module)
        yield from self._set_as_saved(module)
        yield from self._emptied(module)

    def _changed(self, module: Module) -> Iterator[Finding]:
        if not any(each.attr == INTERNAL_DICTS[0] for each in module.nodes(ast.Attribute)):
            return
        for node, name in changes_in(module):
            origins = module.value_of(name).origins
            internal = [
                each
                for each in origins
                if isinstance(each, ast.Attribute) and each.attr == INTERNAL_DICTS[0]
            ]
            if internal:
                yield self.finding(
                    module,
                    node,
                    f"`{name.id}` is `{module.text(internal[0])}` itself: changing it changes what "
                    "the module saves and loads. Copy it first",
                    trail=[(internal[0], "bound here without a copy")],
                )

    def _made_persistent(self, module: Module) -> Iterator[Finding]:
        for call in module.calls("register_buffer"):
            persistent = keyword(call, "persistent")
            loop = over_buffers(module, call)
            if loop is None or len(call.args) > 2:
                continue
            if persistent is not None and not is_true(persistent):
                continue
            if is_of_saved_ones(module, call):
                continue
            function = module.function_of(call)
            if function is not None and "persistent_buffers" not in module.text(function):
                yield self.finding(
                    module,
                    call,
                    "the call registers every buffer as persistent, even those with "
                    "`persistent=False`: they appear in state dicts from here on",
                    severity=Severity.WARNING,
                    trail=[(loop, "the buffers come from here")],
                )

    def _set_as_saved(self, module: Module) -> Iterator[Finding]:
        for call, buffer in set_as_saved(module):
            yield self.finding(
                module,
                call,
                "a `Buffer` made without `persistent` is saved: one that had `persistent=False` "
                "appears in state dicts after this",
                severity=Severity.WARNING,
                trail=[(buffer, "the buffer is made here")],
            )

    def _emptied(self, module: Module) -> Iterator[Finding]:
        for call in module.calls("to_empty"):
            owner = receiver(call)
            if owner is None:
                continue
            lost = never_computed(module, call)
            sent = sent_to_meta(module, call, name_of(module, owner))
            after = [called(each) for each in module.later(call, ast.Call)]
            if "load_state_dict" not in after or computes_again(after):
                continue
            if lost is not None and not is_written_after(module, call, lost):
                yield self._uncomputed(module, call, lost)
            if sent is None:
                continue
            yield self.finding(
                module,
                call,
                f"`{module.text(owner)}` had values in line {sent.lineno}; the state dict that is "
                "loaded after this has no buffers with `persistent=False`: they stay uninitialised",
                severity=Severity.WARNING,
                confidence=Confidence.MEDIUM,
                trail=[(sent, "the values are given up here")],
            )

    def _uncomputed(self, module: Module, emptied: ast.Call, buffer: ast.Call) -> Finding:
        return self.finding(
            module,
            emptied,
            f"`{module.text(emptied.func)}` leaves `{module.text(buffer.args[0])}` uninitialised "
            f"too: line {buffer.lineno} computed it while the model was on meta, and no state dict "
            "has it",
            trail=[(buffer, "a buffer that is not saved"), (emptied, "its values are gone here")],
        )
