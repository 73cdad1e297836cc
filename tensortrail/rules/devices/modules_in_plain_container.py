from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.patterns import pattern
from tensortrail.rules import Bad, Good, Kind, Module, Near, Rule
from tensortrail.rules.devices.modules.container_reads import bound_above, is_reached
from tensortrail.rules.devices.modules.stateless import WITHOUT_WEIGHTS, is_stateless
from tensortrail.rules.devices.written_for.beforehand import is_beforehand
from tensortrail.rules.shared.given_weights import takes_its_weights
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.moves import MOVES
from tensortrail.rules.shared.objects import called, is_none, keyword, receiver
from tensortrail.rules.shared.origins import behind

_ADDS = ("append", "extend", "insert")
_BOUND = pattern(rb"[^\n#]*?\bself\.\w+[ \t]*(?::[^=\n]*)?=[ \t\\\r\n(]*(?:[\[{(]|\S+,)")
"""A container, or several values."""
_OF_METRICS = "torchmetrics."
"""A package whose classes are modules that keep what they count in tensors."""
_REGISTERS = pattern(r"ModuleList|ModuleDict|Sequential|add_module|register_|setattr")


class ModulesInPlainContainer(Rule):
    """A module keeps other modules in a list, tuple or dict, which torch does not search.

    ## What it does
    Reports `self.layers = [nn.Linear(n, n) for _ in range(3)]`, a tuple or dict of this kind, and
    `self.layers.append(nn.Linear(n, n))`, if the modules have parameters or buffers and another
    method uses the container. Metrics of torchmetrics are such modules too.

    Reported as a note: a class that moves the modules or their inputs itself; modules that move
    what they hold to their input, or take all weights from outside; and code that exports or
    converts.

    Not reported: modules that were made elsewhere and then put into a list. That is a usual way to
    hide them on purpose.

    ## Why is this bad?
    The modules stay on the CPU when the model is moved, the optimizer does not train them, and
    `state_dict()` does not save them: a module finds others only in its attributes.

    ## Fix safety
    Unsafe: `nn.ModuleList` is put around the list. Checkpoints written before lack these weights,
    and a `ModuleList` does not have all methods of a list.

    ## References
    - pytorch documentation, `torch.nn.ModuleList`
    """

    code = "DEV544"
    name = "modules-in-plain-container"
    severity = Severity.ERROR
    errors_as = Severity.WARNING
    needs_callers = True
    triggers = (Near("self.", _BOUND, ("torch", "class ")),)

    bad = (
        Bad(
            """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.layers = [nn.Linear(n, n) for _ in range(3)]
        self.heads = {"a": nn.Linear(n, 1)}

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.heads["a"](x)
""",
            lines=(7, 8),
            fixed="""\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(n, n) for _ in range(3)])
        self.heads = nn.ModuleDict({"a": nn.Linear(n, 1)})

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.heads["a"](x)
""",
        ),
        Bad(
            """\
from torch import nn

class Block(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.proj = nn.Linear(n, n)

class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.blocks = []
        for _ in range(4):
            self.blocks.append(Block(n))

    def forward(self, x):
        return self.blocks[0](x)
""",
            lines=(13,),
        ),
        Bad(
            """\
from torch import nn


class Scored(nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.losses = []
        for each in weights:
            self.losses.append(nn.CrossEntropyLoss(weight=each))

    def forward(self, x, y):
        return self.losses[0](x, y)
""",
            lines=(9,),
        ),
    )
    good = (
        Good(
            """\
from torch import nn

class Net(nn.Module):
    def __init__(self, n, teacher):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(n, n)])
        self.teacher = [teacher]
        self.acts = [nn.ReLU(), nn.GELU()]
        self.parts = [nn.Linear(n, n)]
        self.net = nn.Sequential(*self.parts)
        self.heads = []
        for index in range(2):
            head = nn.Linear(n, 1)
            self.add_module(f"head{index}", head)
            self.heads.append(head)

    def forward(self, x):
        x = self.net(self.layers[0](x)) - self.teacher[0](x)
        return self.acts[0](self.heads[0](x))
"""
        ),
        Good(
            """\
from torch import nn

class Zoo:
    def __init__(self, n):
        self.nets = [nn.Linear(n, n)]

    def run(self, x):
        return self.nets[0](x)
"""
        ),
        Good(
            """\
from torch import nn

class Smoothed(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.left = (size - 1) // 2
        self.mean = nn.AvgPool1d(int(size), stride=1)

    def forward(self, x):
        return self.mean(nn.functional.pad(x, (self.left, self.left)))

class Trends(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.smoothed = [Smoothed(each) for each in sizes]

    def forward(self, x):
        return sum(each(x) for each in self.smoothed)
"""
        ),
        Good(
            "from torch import nn\n\nclass Heads(nn.Module):\n    def __init__(self, sizes):\n"
            "        super().__init__()\n        self.heads = []\n"
            "        self.heads = nn.ModuleList()\n        for size in sizes:\n"
            "            self.heads.append(nn.Linear(size, 1))\n\n"
            "    def forward(self, x):\n        return self.heads[0](x)\n"
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for cls in module.nodes(ast.ClassDef):
            facts = module.class_facts(cls)
            if facts is None or not facts.is_module:
                continue
            for name, holder, made in _kept(module, cls):
                if is_reached(module, cls, name, holder, made) and not _is_registered(
                    module, cls, name, holder
                ):
                    yield self._reported(module, name, holder, made)

    def _reported(self, module: Module, name: str, holder: ast.expr, made: ast.Call) -> Finding:
        harmless = _knows_where_they_lie(module, holder, name) or is_beforehand(module, holder)
        harmless = (
            harmless
            or _follows_its_input(module, made)
            or takes_its_weights(module, module.text(made.func))
        )
        lost = (
            "and its state is"
            if _is_a_metric(module, made)
            else "no optimizer trains it, and it is"
        )
        return self.finding(
            module,
            holder,
            f"`self.{name}` is a plain container: `.to()` does not move the "
            f"`{module.text(made.func)}` in it, {lost} not saved",
            trail=[(made, "the module is made here")],
            severity=Severity.NOTE if harmless else None,
            fixes=[_wrapped(module, holder, made)],
        )


def _knows_where_they_lie(module: Module, holder: ast.expr, name: str) -> bool:
    """`self.blocks[0].to(x.device)` in the class, or `self.blocks[0](x.to(self.device))`: it knows
    that they are left behind."""
    shown = f"self.{name}"
    for move in module.calls(*MOVES, inside=module.class_of(holder)):
        around = module.parent(move)
        given_to = around.func if isinstance(around, ast.Call) and move in around.args else None
        if _is_member(module, receiver(move), shown) or _is_member(module, given_to, shown):
            return True
    return False


def _is_member(module: Module, node: ast.expr | None, container: str) -> bool:
    return isinstance(node, ast.Subscript) and module.text(node.value) == container


def _follows_its_input(module: Module, made: ast.Call) -> bool:
    """The class of the modules is of this file, and moves what it holds to where its input is."""
    name = module.text(made.func).rpartition(".")[2]
    return any(
        cls.name == name and module.function_of(call) is not None and _is_own_move(module, call)
        for cls in module.nodes(ast.ClassDef)
        for call in module.calls("to", inside=cls)
    )


def _is_own_move(module: Module, call: ast.Call) -> bool:
    """`self.kernel.to(x.device)`"""
    owner = receiver(call)
    said = call.args[0] if call.args else None
    own = owner is not None and module.text(owner).startswith("self.")
    return (
        own
        and isinstance(said, ast.Attribute)
        and said.attr == "device"
        and (module.text(said) != "self.device")
    )


def _kept(module: Module, cls: ast.ClassDef) -> Iterator[tuple[str, ast.expr, ast.Call]]:
    """Plain containers of the class: the attribute, what it is bound to or the call that adds to
    it, and the first module made in there."""
    lists: set[str] = set()
    for target, value in _assigned(module, cls):
        members = _members(value)
        made = next((e for e in members if _has_weights(module, _copied(module, e))), None)
        if isinstance(made, ast.Call):
            yield target.attr, value, made
        elif _is_empty_list(value):
            lists.add(target.attr)
    for call in module.calls("append", inside=cls):
        holder, given = receiver(call), call.args[0] if call.args else None
        own = isinstance(holder, ast.Attribute) and module.text(holder.value) == "self"
        if not own or not isinstance(holder, ast.Attribute) or holder.attr not in lists:
            continue
        if not all(_is_empty_list(each) for each in bound_above(module, holder)[-1:]):
            continue
        made = behind(module, given) if given is not None else None
        if isinstance(made, ast.Call) and _has_weights(module, _copied(module, made)):
            yield holder.attr, call, made


def _copied(module: Module, node: ast.expr) -> ast.expr:
    """`metrics` of `metrics.clone(prefix="test/")`, as it was made."""
    owner = receiver(node) if isinstance(node, ast.Call) and called(node) == "clone" else None
    made = behind(module, owner) if owner is not None else node
    return made if isinstance(made, ast.Call) else node


def _is_a_metric(module: Module, node: ast.expr) -> bool:
    made = _copied(module, node)
    return isinstance(made, ast.Call) and module.qualified(made.func).startswith(_OF_METRICS)


def _is_empty_list(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return called(value) == "list" and not value.args and isinstance(value.func, ast.Name)
    return isinstance(value, ast.List) and not value.elts


def _assigned(module: Module, cls: ast.ClassDef) -> Iterator[tuple[ast.Attribute, ast.expr]]:
    """Attributes of `self`, each with what it is bound to."""
    plain = [(each.targets[0], each.value) for each in module.nodes(ast.Assign, cls)]
    typed = [(each.target, each.value) for each in module.nodes(ast.AnnAssign, cls)]
    for target, value in (*plain, *typed):
        own = isinstance(target, ast.Attribute) and module.text(target.value) == "self"
        if own and isinstance(target, ast.Attribute) and value is not None:
            yield target, value


def _members(value: ast.expr) -> list[ast.expr]:
    if isinstance(value, (ast.List, ast.Tuple)):
        return value.elts
    if isinstance(value, ast.Dict):
        return value.values
    if isinstance(value, ast.ListComp):
        return [value.elt]
    return [value.value] if isinstance(value, ast.DictComp) else []


def _has_weights(module: Module, node: ast.expr) -> bool:
    """A call that makes a module with parameters or buffers."""
    if not isinstance(node, ast.Call):
        return False
    owner, _, last = module.qualified(node.func).rpartition(".")
    if _is_a_metric(module, node):
        return last[:1].isupper()
    if owner.startswith("torch.nn") and "functional" not in owner:
        is_empty = last == "Sequential" and not node.args
        holds = _is_weighted(node) or not WITHOUT_WEIGHTS.search(last)
        return last[:1].isupper() and not is_empty and holds
    value = module.value_of(node)
    facts = module.class_facts(value.cls) if value.kind is Kind.MODULE and value.cls else None
    named = value.cls.rpartition(".")[2]
    if facts is None or not facts.fields or WITHOUT_WEIGHTS.search(named):
        return False
    return module.about(value.cls, is_stateless) is not True


def _is_weighted(made: ast.Call) -> bool:
    """A loss that is given weights keeps them in a buffer."""
    given = (keyword(made, name) for name in ("weight", "pos_weight"))
    return any(each is not None and not is_none(each) for each in given)


def _is_registered(module: Module, cls: ast.ClassDef, name: str, holder: ast.expr) -> bool:
    """The class makes them known in another way, or moves them itself."""
    added = {module.text(each) for each in (holder.args if isinstance(holder, ast.Call) else [])}
    for call in module.nodes(ast.Call, cls):
        if _REGISTERS.search(module.text(call.func)):
            around = [call, *module.ancestors(call)]
            loops = [each.iter for each in around if isinstance(each, ast.For)]
            if any(f"self.{name}" in module.text(each) for each in (call, *loops)):
                return True
            if not added.isdisjoint(map(module.text, call.args)):
                return True
    if any(
        _is_kept_twice(module, call, holder, added) for call in module.calls(*_ADDS, inside=cls)
    ):
        return True
    own = {each.name for each in cls.body if isinstance(each, ast.FunctionDef)}
    return not own.isdisjoint({"to", "_apply", "parameters", "cuda"})


def _is_kept_twice(module: Module, call: ast.Call, holder: ast.expr, added: set[str]) -> bool:
    """The same module goes into another list, which may become one of modules."""
    here, there = receiver(holder) if isinstance(holder, ast.Call) else None, receiver(call)
    if here is None or there is None or module.text(here) == module.text(there):
        return False
    same = module.function_of(call) is module.function_of(holder)
    return same and not added.isdisjoint(map(module.text, call.args))


def _wrapped(module: Module, holder: ast.expr, made: ast.Call) -> Fix | None:
    shown, _, last = module.text(made.func).rpartition(".")
    if module.qualified(made.func) != f"torch.nn.{last}" or not shown:
        return None
    if last == "Parameter":
        return None
    container = "ModuleDict" if isinstance(holder, (ast.Dict, ast.DictComp)) else "ModuleList"
    if isinstance(holder, ast.Call):
        return None
    edit = module.replace(holder, f"{shown}.{container}({module.text(holder)})")
    return module.fix(f"keep them in a `{container}`", Safety.UNSAFE, edit)
