from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeAlias

from tensortrail.findings import Confidence, Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shared.functions import functions, parameters
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import is_none, receiver
from tensortrail.rules.view import FunctionNode

_KEYWORDS = frozenset({"device", "dtype", "map_location"})


class DefaultKeptElsewhere(Rule):
    """An argument that may be None is used instead of the value stored in its place.

    ## What it does
    Looks at functions that replace None, as in `self.device = device or "cuda"`. Reports, as a
    note, a later use of the argument itself where a device or dtype is needed: `.to(device)`,
    `torch.zeros(n, device=device)` and the like.

    Not reported: a replacement that is the CPU or None, an argument that is assigned again, and a
    use under a test of the argument.

    ## Why is this bad?
    A caller that leaves the argument out passes None: `module.to(None)` moves nothing, and a
    factory makes its tensor on the default device. The rest of the object is on the device that was
    chosen.

    ## Fix safety
    Unsafe: for callers that leave the argument out, the device changes.

    ## References
    - pytorch/tnt pull request 398
    """

    code = "DEV570"
    name = "default-kept-elsewhere"
    confidence = Confidence.HIGH
    severity = Severity.NOTE
    triggers = (("device", "None"), ("dtype", "None"))

    bad = (
        Bad(
            """\
class Unit:
    def __init__(self, module, device=None):
        self.device: torch.device = device or pick()
        self.module = module.to(device)
""",
            lines=(4,),
            fixed="""\
class Unit:
    def __init__(self, module, device=None):
        self.device: torch.device = device or pick()
        self.module = module.to(self.device)
""",
        ),
        Bad(
            """\
import torch

def start(count, where=None):
    chosen = where if where is not None else torch.device("cuda")
    first = torch.zeros(count, device=chosen)
    return first + torch.ones(count, device=where)
""",
            lines=(6,),
            fixed="""\
import torch

def start(count, where=None):
    chosen = where if where is not None else torch.device("cuda")
    first = torch.zeros(count, device=chosen)
    return first + torch.ones(count, device=chosen)
""",
        ),
        Bad(
            """\
import torch

class Loader:
    def __init__(self, path, *, device=None):
        if device is None:
            self.device = pick()
        else:
            self.device = torch.device(device)
        self.weights = torch.load(path, map_location=device)
""",
            lines=(9,),
            fixed="""\
import torch

class Loader:
    def __init__(self, path, *, device=None):
        if device is None:
            self.device = pick()
        else:
            self.device = torch.device(device)
        self.weights = torch.load(path, map_location=self.device)
""",
        ),
        Bad(
            """\
import torch

class Head(torch.nn.Module):
    def __init__(self, n, device=None):
        super().__init__()
        self.linear = torch.nn.Linear(n, n)
        self.place = device or "cuda" if torch.cuda.is_available() else "cpu"
        self.to(device)
""",
            lines=(8,),
            fixed="""\
import torch

class Head(torch.nn.Module):
    def __init__(self, n, device=None):
        super().__init__()
        self.linear = torch.nn.Linear(n, n)
        self.place = device or "cuda" if torch.cuda.is_available() else "cpu"
        self.to(self.place)
""",
        ),
    )
    good = (
        Good(
            """\
class Unit:
    def __init__(self, module, device=None):
        self.device = device or pick()
        self.module = module.to(self.device)
        self.helper = Helper(device=device)
"""
        ),
        Good(
            """\
class Unit:
    def __init__(self, module, device=None):
        device = device or pick()
        self.device = device
        self.module = module.to(device)
"""
        ),
        Good(
            """\
class Unit:
    def __init__(self, module, device=None):
        self.device = device or module.device
        if device is not None:
            module.to(device)
"""
        ),
        Good(
            """\
import torch

def start(count, device=None):
    known = torch.device(device) if device is not None else device
    return torch.zeros(count, device=device), known
"""
        ),
        Good(
            """\
import torch

def start(count, device=None):
    chosen = device or torch.device("cpu")
    return torch.zeros(count, device=device), chosen
"""
        ),
        Good(
            """\
def attend(rows, kind, dtype=None):
    if kind.is_small():
        wide = pick()
    else:
        wide = kind
    return rows.to(kind), rows.to(wide), dtype
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for function in functions(module):
            for argument in parameters(function):
                yield from self._argument(module, function, argument.arg)

    def _argument(self, module: Module, function: FunctionNode, name: str) -> Iterator[Finding]:
        if not _is_needed(module, function, name) or _is_bound(module, function, name):
            return
        settled = next(_settled(module, function, name), None)
        if settled is None:
            return
        kept = module.text(_target(settled))
        for use in module.later(settled, ast.Name):
            if use.id == name and _needs_one(module, use) and not _is_asked(module, use, name):
                yield self.finding(
                    module,
                    use,
                    f"`{name}` may be None here; line {settled.lineno} stores its replacement in "
                    f"`{kept}`",
                    trail=[(settled, f"`{kept}` is set here"), (use, f"`{name}` is used")],
                    fixes=[_settled_instead(module, use, kept)],
                )


Assignment: TypeAlias = ast.Assign | ast.AnnAssign


def _settled(module: Module, function: FunctionNode, name: str) -> Iterator[Assignment]:
    """Assignments to something else of the argument, or of what stands for it."""
    statements: list[Assignment] = [*module.nodes(ast.Assign, function)]
    for statement in [*statements, *module.nodes(ast.AnnAssign, function)]:
        own = module.function_of(statement) is function and statement.value is not None
        if not own or not isinstance(_target(statement), (ast.Name, ast.Attribute)):
            continue
        if _has_default(module, statement.value, name) or _on_both(module, statement, name):
            yield statement


def _target(statement: Assignment) -> ast.expr:
    return statement.target if isinstance(statement, ast.AnnAssign) else statement.targets[0]


def _has_default(module: Module, value: ast.expr | None, name: str) -> bool:
    """`device or pick()`, `device if device is not None else pick()`."""
    if isinstance(value, ast.BoolOp) and isinstance(value.op, ast.Or):
        return _is(value.values[0], name) and not _says_nothing(module, value.values[-1])
    if isinstance(value, ast.IfExp) and isinstance(value.body, ast.BoolOp):
        return _has_default(module, value.body, name)  # `device or "cuda" if there_is else "cpu"`
    if isinstance(value, ast.IfExp) and _is_asked_for(module, value.body, name):
        other = value.orelse if _is(value.body, name) else value.body
        chosen = not _says_nothing(module, other) and not _mentions(other, name)
        return chosen and (_is(value.body, name) or _is(value.orelse, name))
    return False


def _on_both(module: Module, statement: Assignment, name: str) -> bool:
    """The last of two assignments to the same, in the branches of a test of the argument."""
    branch = module.parent(statement)
    if not isinstance(branch, ast.If) or not branch.orelse:
        return False
    kept = module.text(_target(statement))
    values = [
        each.value
        for block in (branch.body, branch.orelse)
        for each in block
        if isinstance(each, (ast.Assign, ast.AnnAssign))
        and each.value is not None
        and module.text(_target(each)) == kept
    ]
    given = [each for each in values if _is(each, name) or _is_made_a_device(module, each, name)]
    both = len(values) == 2 and len(given) == 1 and statement in branch.orelse
    others = [each for each in values if each not in given]
    return (
        both
        and not any(_mentions(each, name) for each in others)
        and _is_asked_for(module, statement, name)
    )


def _is_needed(module: Module, function: FunctionNode, name: str) -> bool:
    return any(_needs_one(module, each) for each in module.uses(name, function))


def _needs_one(module: Module, use: ast.Name) -> bool:
    """It decides where something of torch's is, or of which type."""
    above = module.parent(use)
    if isinstance(above, ast.keyword):
        call = module.parent(above)
        of_torch = isinstance(call, ast.Call) and module.qualified(call).startswith("torch.")
        return above.arg in _KEYWORDS and (of_torch or _moves(call))
    if not isinstance(above, ast.Call) or use not in above.args[:1]:
        return False
    return _moves(above) and not _has_nothing_to_move(module, above)


def _moves(call: ast.AST | None) -> bool:
    func = call.func if isinstance(call, ast.Call) else None
    return isinstance(func, ast.Attribute) and func.attr == "to"


def _has_nothing_to_move(module: Module, move: ast.Call) -> bool:
    """A module of a class that registers no parameter, buffer or module."""
    owner = receiver(move)
    cls = module.value_of(owner).cls if owner is not None else ""
    facts = module.class_facts(cls) if cls else None
    if facts is None or not facts.is_module or not facts.complete or facts.registered:
        return False
    return module.about(cls, _keeps_modules) is False


def _keeps_modules(module: Module, cls: ast.AST) -> bool:
    """`self.layer = nn.Linear(...)` in the class."""
    made = (each.value for each in module.nodes(ast.Assign, cls))
    return any(module.qualified(each).startswith("torch.nn.") for each in made)


def _is_asked(module: Module, node: ast.AST, name: str) -> bool:
    """Some condition around it is about the argument."""
    return any(_mentions(guard.test, name) for guard in module.guards_of(node))


def _is_asked_for(module: Module, node: ast.AST, name: str) -> bool:
    """Some condition around it is whether the argument was given."""
    return any(
        _is(part, name) or (_is(getattr(part, "left", part), name) and _has_none(part))
        for guard in module.guards_of(node)
        for part in _parts(guard.test)
    )


def _parts(test: ast.expr) -> list[ast.expr]:
    if isinstance(test, ast.BoolOp):
        return [part for each in test.values for part in _parts(each)]
    return _parts(test.operand) if isinstance(test, ast.UnaryOp) else [test]


def _has_none(part: ast.expr) -> bool:
    return isinstance(part, ast.Compare) and any(map(is_none, part.comparators))


def _is_bound(module: Module, function: FunctionNode, name: str) -> bool:
    return any(isinstance(each.ctx, ast.Store) for each in module.uses(name, function))


def _settled_instead(module: Module, use: ast.Name, kept: str) -> Fix | None:
    return module.fix(f"use `{kept}`", Safety.UNSAFE, module.replace(use, kept))


def _says_nothing(module: Module, value: ast.expr) -> bool:
    """None, and the CPU, where things are without a device."""
    said = value
    if isinstance(value, ast.Call) and module.qualified(value) == "torch.device" and value.args:
        said = value.args[0]
    constant = module.value_of(said).constant
    return constant is None or constant == "cpu"


def _is_made_a_device(module: Module, value: ast.expr, name: str) -> bool:
    """`torch.device(device)`."""
    if not isinstance(value, ast.Call) or module.qualified(value) != "torch.device":
        return False
    return bool(value.args) and _is(value.args[0], name)


def _mentions(node: ast.expr, name: str) -> bool:
    return any(_is(each, name) for each in ast.walk(node))


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
