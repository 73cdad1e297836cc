from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called, is_variable_or_own, receiver
from tensortrail.rules.shared.sentences import one_line

_WEIGHTS = ("parameters", "named_parameters", "state_dict", "buffers")


class CopyIsTheOriginal(Rule):
    """Two names hold one model, and the weights of one are copied into the other.

    ## What it does
    Reports `target = online` and `self.target = self.online`, each the only assignment of its
    name, if `target.load_state_dict(online.state_dict())` is called in the same function or class,
    or a loop goes through the parameters of both.

    Also reports `net.load_state_dict(net.state_dict())` after `net = Net(net.width)`: the name is
    bound to a new model that was made for the old one, whose weights are lost.

    ## Why is this bad?
    A target network, a teacher or an average is meant to lag behind the model that is trained.
    Here every step of the optimizer changes both, the copy changes nothing, and no error is raised.

    ## Fix safety
    Unsafe: `copy.deepcopy` needs the memory of the model once more, and is only offered where the
    file imports `copy`.

    ## References
    - documentation of `torch.optim.swa_utils`: `AveragedModel` makes a deepcopy
    """

    code = "STO230"
    name = "copy-is-the-original"
    severity = Severity.ERROR
    proven = False
    triggers = (("load_state_dict(", "state_dict("), ("zip(", "parameters("))

    bad = (
        Bad(
            """\
import copy

import torch

class Agent:
    def __init__(self, net):
        self.online = net.cuda()
        self.target = self.online
        self.optimizer = torch.optim.Adam(self.online.parameters())

    def sync(self):
        self.target.load_state_dict(self.online.state_dict())
""",
            lines=(8,),
            fixed="""\
import copy

import torch

class Agent:
    def __init__(self, net):
        self.online = net.cuda()
        self.target = copy.deepcopy(self.online)
        self.optimizer = torch.optim.Adam(self.online.parameters())

    def sync(self):
        self.target.load_state_dict(self.online.state_dict())
""",
        ),
        Bad(
            """\
import torch

def train(net, batches, optimizer):
    teacher = net
    for batch in batches:
        net(batch).sum().backward()
        optimizer.step()
        with torch.no_grad():
            for old, new in zip(teacher.parameters(), net.parameters()):
                old.lerp_(new, 0.01)
""",
            lines=(4,),
        ),
        Bad(
            """\
from torch import nn

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.layer = nn.Linear(width, 1)

def renewed(net):
    net = Net(net.width)
    net.load_state_dict(net.state_dict())
    return net
""",
            lines=(11,),
            instead="""\
from torch import nn

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.layer = nn.Linear(width, 1)

def renewed(net):
    new = Net(net.width)
    new.load_state_dict(net.state_dict())
    return new
""",
        ),
    )
    good = (
        Good(
            """\
from torch import nn

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.layer = nn.Linear(width, 1)

def wrapped(net, other):
    net = nn.DataParallel(net)
    net.load_state_dict(net.state_dict())
    new = Net(net.module.width)
    new.load_state_dict(net.state_dict())
    other = Net(net.module.width)
    other.load_state_dict(other.state_dict())
    return new
"""
        ),
        Good(
            """\
import copy

import torch

class Agent:
    def __init__(self, net):
        self.online = net.cuda()
        self.target = copy.deepcopy(self.online)

    def sync(self):
        self.target.load_state_dict(self.online.state_dict())

def replaced(blocks, make):
    block = blocks[0]
    blocks[0] = make()
    blocks[0].load_state_dict(block.state_dict())

def resume(net, path, compiled):
    model = net
    if compiled:
        model = torch.compile(net)
    net.load_state_dict(model.state_dict())
    best = net
    best.load_state_dict(torch.load(path))
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for copied, target, source in _copies(module):
            renewed = _renewed(module, copied, target, source)
            if renewed is not None:
                yield self.finding(
                    module,
                    copied,
                    f"`{module.text(target)}` is the new model of line {renewed.lineno}, and gets "
                    "its own weights here: those of the model before are lost",
                    trail=[(renewed, "the name is bound to a new model")],
                )
            alias = _alias(module, copied, target, source)
            if alias is not None:
                yield self.finding(
                    module,
                    alias,
                    f"`{one_line(module, alias)}` makes a second name, not a second model: line "
                    f"{getattr(copied, 'lineno', 0)} copies its weights into itself",
                    trail=[(copied, "copied into itself")],
                    fixes=[_deepcopy(module, alias)],
                )


def _renewed(
    module: Module, copied: ast.AST, target: ast.expr, source: ast.expr
) -> ast.Assign | None:
    """`net = Net(net.width)`, the last that the name was bound to: only attributes of the old one
    are read, so the new one is not around it."""
    name = module.text(target)
    if name != module.text(source) or not is_variable_or_own(target):
        return None
    assigned = module.earlier(copied, ast.Assign)
    last = next((each for each in assigned if module.text(each.targets[0]) == name), None)
    made = last.value if last is not None else None
    cls = module.class_facts(module.qualified(made.func)) if isinstance(made, ast.Call) else None
    if made is None or cls is None or not cls.is_module:
        return None
    asked = [e for e in module.nodes(ast.Attribute, made) if module.text(e.value) == name]
    named = [e for e in module.nodes(type(target), made) if module.text(e) == name]
    is_called = any(each.func in asked for each in module.nodes(ast.Call, made))
    return last if asked and len(asked) == len(named) and not is_called else None


def _deepcopy(module: Module, alias: ast.Assign) -> Fix | None:
    names = [e for node in module.nodes(ast.Import) for e in node.names]
    if not any(each.name == "copy" and each.asname is None for each in names):
        return None
    edit = module.replace(alias.value, f"copy.deepcopy({module.text(alias.value)})")
    return module.fix("make a copy", Safety.UNSAFE, edit)


def _copies(module: Module) -> Iterator[tuple[ast.AST, ast.expr, ast.expr]]:
    """`a.load_state_dict(b.state_dict())`, and loops over the parameters of `a` and `b`."""
    for call in module.calls("load_state_dict"):
        target, given = receiver(call), call.args[0] if call.args else None
        source = _owner_of_weights(given)
        if target is not None and source is not None:
            yield call, target, source
    for loop in module.nodes(ast.For):
        over = loop.iter
        if isinstance(over, ast.Call) and called(over) == "zip" and len(over.args) == 2:
            target, source = (_owner_of_weights(each) for each in over.args)
            if target is not None and source is not None:
                yield loop, target, source


def _owner_of_weights(node: ast.expr | None) -> ast.expr | None:
    return receiver(node) if isinstance(node, ast.Call) and called(node) in _WEIGHTS else None


def _alias(
    module: Module, copied: ast.AST, target: ast.expr, source: ast.expr
) -> ast.Assign | None:
    """The one assignment of either name, which is the other."""
    if not (is_variable_or_own(target) and is_variable_or_own(source)):
        return None
    for one, other in ((target, source), (source, target)):
        made = _assignments(module, copied, one)
        text, alias = module.text(other), made[0] if len(made) == 1 else None
        others = _assignments(module, copied, other)
        if not isinstance(alias, ast.Assign) or len(others) > 1:
            continue
        if any(each in module.later(alias, type(each)) for each in others):
            continue  # bound anew in between
        if module.text(alias.value) == text != module.text(one):
            return alias
    return None


def _assignments(
    module: Module, near: ast.AST, name: ast.expr
) -> Sequence[ast.Assign | ast.AnnAssign]:
    if isinstance(name, ast.Name):
        around: ast.AST | None = module.function_of(near)
    else:
        around = module.class_of(near)
    text = module.text(name)
    plain = [e for e in module.nodes(ast.Assign, around) if module.text(e.targets[0]) == text]
    with_type = (e for e in module.nodes(ast.AnnAssign, around) if e.value is not None)
    return [*plain, *(each for each in with_type if module.text(each.target) == text)]
