from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.modules.moves_of_models import bare
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.layers import WITH_PARAMETERS
from tensortrail.rules.shared.moves import MAY_PLACE, TO_DEVICE
from tensortrail.rules.shared.objects import called, receiver
from tensortrail.rules.shared.origins import text_behind
from tensortrail.rules.shared.parts_moved import is_to_a_device
from tensortrail.rules.shared.sentences import one_line

_PLACES = re.compile(
    r"device|cuda|gpu|cpu|map_location|\.to\(|prepare\(|dispatch|meta\b", re.IGNORECASE
)


class ModelMovedOnOnePath(Rule):
    """A model is made in two branches and moved in only one of them.

    ## What it does
    Reports an `if` whose two branches assign models to the same name, if

    - one branch moves its model to a device, and the other branch says nothing about devices;
    - nothing after the `if` moves the model; and
    - the model is used afterwards: called, trained or returned.

    Not reported: a condition about devices.

    ## Why is this bad?
    The first call of the model from the other branch raises on a GPU: the code after the `if` moves
    its inputs to the device.

    ## Fix safety
    No fix is offered: the move belongs after the `if`.

    ## References
    - huggingface/lerobot pull request 126
    """

    code = "DEV601"
    name = "model-moved-on-one-path"
    severity = Severity.WARNING
    warns = False
    needs_callers = True
    triggers = ((".to(", "else"), (".cuda(", "else"))

    bad = (
        Bad(
            """\
def make_policy(config, cls, pretrained=None):
    if pretrained is None:
        policy = cls(config)
        policy.to(config.device)
    else:
        policy = cls.from_pretrained(pretrained)
    return policy
""",
            lines=(6,),
            instead="""\
def make_policy(config, cls, pretrained=None):
    if pretrained is None:
        policy = cls(config)
    else:
        policy = cls.from_pretrained(pretrained)
    policy.to(config.device)
    return policy
""",
        ),
        Bad(
            """\
import torch
from torch import nn

def run(x, path, device):
    if path:
        net = torch.load(path, weights_only=False)
    else:
        net = nn.Linear(8, 2).to(device)
    return net(x.to(device))
""",
            lines=(6,),
        ),
    )
    good = (
        Good(
            """\
import torch
from torch import nn

def moved_after(x, path, device):
    if path:
        net = torch.load(path, weights_only=False)
    else:
        net = nn.Linear(8, 2).to(device)
    net = net.to(device)
    return net(x.to(device))

def loaded_there(x, path, device):
    if path:
        net = torch.load(path, weights_only=False, map_location=device)
    else:
        net = nn.Linear(8, 2).to(device)
    return net(x.to(device))

def chosen_by_device(x, device):
    if device.type == "cuda":
        net = nn.Linear(8, 2).to(device)
    else:
        net = nn.Linear(8, 2)
    return net(x)

def of_tensors(x, y, given, device):
    if given:
        z = y.to(device)
    else:
        z = x.clone()
    return z
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for choice in module.nodes(ast.If):
            found = _made_apart(module, choice)
            if found is not None and not _PLACES.search(text_behind(module, choice.test)):
                yield self._reported(module, found)

    def _reported(self, module: Module, found: _Apart) -> Finding:
        line, name = found.move.lineno, found.name
        return self.finding(
            module,
            found.left,
            f"`{name}` is not moved in this branch, but line {line} moves it in the other one: the "
            "code after them works for only one of the two",
            trail=[
                (found.move, f"`{one_line(module, found.move)}` in the other branch"),
                (found.left, "made, and not moved"),
            ],
        )


class _Apart(NamedTuple):
    name: str
    left: ast.Assign
    """The branch without a move."""
    move: ast.Call


def _made_apart(module: Module, choice: ast.If) -> _Apart | None:
    branches = (choice.body, choice.orelse)
    for moving, other in (branches, branches[::-1]):
        made, left = _models(module, moving), _models(module, other)
        for name in made.keys() & left.keys():
            if _has_no_weights(module, bare(made[name].value)):
                continue  # a loss: it does not matter where it is
            move = _move(module, moving, made[name], name)
            if (
                move is None
                or _is_data(module, left[name].value)
                or _speaks_of_places(module, other, move)
            ):
                continue
            if _is_used(module, choice, name) and not _is_moved_later(module, choice, name):
                return _Apart(name, left[name], move)
    return None


def _is_data(module: Module, made: ast.expr) -> bool:
    """What a call with `return_tensors` gives: `processor(text, return_tensors="pt")`."""
    return isinstance(made, ast.Call) and any(e.arg == "return_tensors" for e in made.keywords)


def _models(module: Module, branch: Sequence[ast.stmt]) -> dict[str, ast.Assign]:
    """Names that the branch gives the result of a call, once."""
    found: dict[str, ast.Assign] = {}
    for each in branch:
        if not isinstance(each, ast.Assign) or not isinstance(each.value, ast.Call):
            continue
        if isinstance(each.targets[0], (ast.Name, ast.Attribute)):
            found[module.text(each.targets[0])] = each
    return found


def _move(
    module: Module, branch: Sequence[ast.stmt], made: ast.Assign, name: str
) -> ast.Call | None:
    """`model.to(device)` as a statement, or a module that is moved as it is made."""
    for each in branch:
        call = each.value if isinstance(each, ast.Expr) else None
        owner = receiver(call) if isinstance(call, ast.Call) else None
        own = owner is not None and module.text(owner) == name
        if own and isinstance(call, ast.Call) and _moves(module, call):
            return call
    value = made.value
    inner = receiver(value) if isinstance(value, ast.Call) and _moves(module, value) else None
    is_model = inner is not None and _makes_a_model(module, inner)
    return value if is_model and isinstance(value, ast.Call) else None


def _moves(module: Module, call: ast.Call) -> bool:
    return called(call) in TO_DEVICE and is_to_a_device(module, call)


def _makes_a_model(module: Module, node: ast.expr) -> bool:
    while isinstance(node, ast.Call) and called(node) in ("eval", "train"):
        inner = receiver(node)
        if inner is None:
            return False
        node = inner
    if not isinstance(node, ast.Call) or _has_no_weights(module, node):
        return False
    facts = module.class_facts(module.qualified(node.func))
    return called(node) == "from_pretrained" or (facts is not None and facts.is_module)


def _has_no_weights(module: Module, made: ast.expr) -> bool:
    """A class of torch without parameters: a loss, an activation."""
    dotted = module.qualified(made.func) if isinstance(made, ast.Call) else ""
    last = dotted.rpartition(".")[2]
    of_torch = dotted.startswith("torch.nn.") and last[:1].isupper() and last != "Sequential"
    return of_torch and not any(each in last for each in WITH_PARAMETERS)


def _speaks_of_places(module: Module, branch: Sequence[ast.stmt], move: ast.Call) -> bool:
    """By a word, or by the device that the other branch moves to."""
    named = {each.id for each in ast.walk(move) if isinstance(each, ast.Name)}
    named -= {each.id for each in ast.walk(move.func) if isinstance(each, ast.Name)}
    words = {each.id for one in branch for each in ast.walk(one) if isinstance(each, ast.Name)}
    by_name = named & words - {"torch"}
    return bool(by_name) or any(_PLACES.search(module.text(each)) for each in branch)


def _is_used(module: Module, choice: ast.If, name: str) -> bool:
    """Called, or returned."""
    runs = any(module.text(each.func) == name for each in module.later(choice, ast.Call))
    returned = (each.value for each in module.later(choice, ast.Return) if each.value is not None)
    return runs or any(
        name in map(module.text, each.elts if isinstance(each, ast.Tuple) else [each])
        for each in returned
    )


def _is_moved_later(module: Module, choice: ast.If, name: str) -> bool:
    for call in module.later(choice, ast.Call):
        owner = receiver(call)
        given = [*call.args, *(each.value for each in call.keywords)]
        own = owner is not None and module.text(owner).startswith(name)
        if called(call) in MAY_PLACE and (own or name in map(module.text, given)):
            return True
    return any(
        name in map(module.text, each.targets) and _PLACES.search(module.text(each.value))
        for each in module.later(choice, ast.Assign)
    )
