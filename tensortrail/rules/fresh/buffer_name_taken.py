from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Edit, Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called, is_before, is_self, last_name, receiver

_REGISTERS = ("register_buffer", "register_parameter")


class BufferNameTaken(Rule):
    """A buffer is registered under a name that the module already uses for something else.

    ## What it does
    Reports `self.register_buffer("mask", ...)` if the lines before it, in the same block, assign
    `self.mask`, or if the constructor always does and another method registers the buffer. The
    same goes for `register_parameter`.

    Not reported: what was assigned is a parameter or a module and the new one is registered as
    the same kind, or the attribute is deleted in between.

    ## Why is this bad?
    The module cannot be built, or the method fails: `KeyError: "attribute 'mask' already exists"`.
    The assignment is often a leftover of the plain tensor that the buffer is to replace.

    ## Fix safety
    Unsafe: the line that assigns the attribute is made to assign a variable.

    ## References
    - pytorch/pytorch#3232, pytorch/pytorch#2670
    - OpenNMT/OpenNMT-py#240
    """

    code = "NEW321"
    name = "buffer-name-taken"
    severity = Severity.ERROR
    errors_as = Severity.NOTE
    triggers = _REGISTERS

    bad = (
        Bad(
            """\
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.mask = torch.ones(size, size).triu(1)
        self.register_buffer("mask", self.mask)
""",
            lines=(8,),
            fixed="""\
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self, size):
        super().__init__()
        mask = torch.ones(size, size).triu(1)
        self.register_buffer("mask", mask)
""",
        ),
        Bad(
            """\
import torch
from torch import nn

class Scaled(nn.Module):
    def __init__(self, scale=None):
        super().__init__()
        self.scale = None
        if scale is not None:
            self.register_buffer("scale", torch.tensor(scale))
""",
            lines=(9,),
            instead="""\
import torch
from torch import nn

class Scaled(nn.Module):
    def __init__(self, scale=None):
        super().__init__()
        value = None if scale is None else torch.tensor(scale)
        self.register_buffer("scale", value)
""",
        ),
        Bad(
            """\
from torch import nn

class Normalised(nn.Module):
    def __init__(self, mean=None):
        super().__init__()
        self.mean = mean

    def fit(self, rows):
        self.register_buffer("mean", rows.mean(0))
""",
            lines=(9,),
            instead="""\
from torch import nn

class Normalised(nn.Module):
    def __init__(self, mean=None):
        super().__init__()
        self.register_buffer("mean", mean)

    def fit(self, rows):
        self.mean = rows.mean(0)
""",
        ),
    )
    good = (
        Good(
            """\
import torch
from torch import nn

class Scaled(nn.Module):
    def __init__(self, made: nn.Parameter):
        super().__init__()
        self.scale = made
        self.register_parameter("scale", self.scale)
"""
        ),
        Good(
            """\
from torch import nn

class Normalised(nn.Module):
    def __init__(self, mean=None):
        super().__init__()
        self.mean = mean

    def fit(self, rows):
        del self.mean
        self.register_buffer("mean", rows.mean(0))
"""
        ),
        Good(
            """\
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size
        self.register_buffer("mask", torch.ones(size, size))
        self.mask = self.mask.triu(1)
"""
        ),
        Good(
            """\
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.mask = torch.ones(size, size).triu(1)
        mask = self.mask
        del self.mask
        self.register_buffer("mask", mask)
"""
        ),
        Good(
            """\
import torch
from torch import nn

class Either(nn.Module):
    def __init__(self, size, learned):
        super().__init__()
        if learned:
            self.bias = nn.Parameter(torch.zeros(size))
        else:
            self.register_buffer("bias", torch.zeros(size))
"""
        ),
        Good(
            """\
from torch import nn

class Skipping(nn.Module):
    def __init__(self, size, skips):
        super().__init__()
        if skips:
            self.skip = nn.Linear(size, size)
        else:
            self.register_parameter("skip", None)
        self.bias = self.register_parameter("bias", None)
"""
        ),
        Good(
            """\
import torch
from torch import nn

class Twice(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.register_buffer("bias", torch.zeros(size))
        self.bias = torch.ones(size)
        self.register_buffer("bias", self.bias)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for call in module.calls(*_REGISTERS):
            owner, name = receiver(call), module.argument(call, 0, "name")
            if owner is None or not is_self(owner) or name is None:
                continue
            attribute = module.value_of(name).constant
            if not isinstance(attribute, str):
                continue
            taken = _taken(module, call, attribute) or _since_it_was_built(module, call, attribute)
            if taken is not None:
                yield self.finding(
                    module,
                    call,
                    f"line {taken.lineno} gives this module an attribute `{attribute}`: "
                    f"`{last_name(call.func)}` refuses the name, with a KeyError",
                    trail=[(taken, "the name is taken here")],
                    fixes=[_variable(module, call, taken, attribute)],
                )


def _taken(module: Module, call: ast.Call, attribute: str) -> ast.Assign | None:
    """The assignment before it that runs whenever the registration does."""
    function, text = module.function_of(call), f"self.{attribute}"
    value = module.argument(call, 1, "param")
    if called(call) == "register_parameter" and value is not None and module.text(value) == text:
        return None  # a parameter is registered under that name already
    others = module.once(_registrations, function or module.top).get(attribute, ())
    if any(each is not call and is_before(each, call) for each in others):
        return None
    found: ast.stmt | None = None
    for each in module.members(attribute, function):
        statement = module.statement_of(each)
        if module.text(each) != text or not is_before(each, call):
            continue
        if isinstance(each.ctx, ast.Del):
            return None
        is_own = isinstance(statement, ast.Assign) and each in statement.targets
        if is_own and _runs_too(module, statement, call):
            found = statement
    if not isinstance(found, ast.Assign):
        return None
    return None if module.kind_of(found.value).value in ("Parameter", "Module") else found


def _since_it_was_built(module: Module, call: ast.Call, attribute: str) -> ast.Assign | None:
    """What the constructor always assigns, of a class whose bases are known to do nothing with it,
    if only this call ever makes a buffer of it."""
    cls, function = module.class_of(call), module.function_of(call)
    if cls is None or function is None or function.name == "__init__" or module.guards_of(call):
        return None
    if [module.qualified(each) for each in cls.bases] != ["torch.nn.Module"]:
        return None
    if len(module.once(_registrations, cls).get(attribute, ())) > 1:
        return None
    own = [each for each in module.members(attribute, cls) if is_self(each.value)]
    if any(isinstance(each.ctx, ast.Del) for each in own):
        return None
    for each in own:
        statement, maker = module.statement_of(each), module.function_of(each)
        always = maker is not None and maker.name == "__init__" and statement in maker.body
        if always and isinstance(statement, ast.Assign) and each in statement.targets:
            return statement
    return None


def _runs_too(module: Module, statement: ast.stmt, call: ast.Call) -> bool:
    """The statement stands in a block that also has the call, or what it stands in."""
    around, path = module.parent(statement), [call, *module.ancestors(call)]
    if around not in path or statement in path:
        return False
    inner = path[path.index(around) - 1]
    blocks = [getattr(around, name, []) for name in ("body", "orelse", "finalbody")]
    return any(statement in block and inner in block for block in blocks)


def _registrations(module: Module, function: ast.AST) -> dict[str, list[ast.Call]]:
    """What registers an attribute in the function, or takes it away, by its name."""
    found: dict[str, list[ast.Call]] = {}
    for call in module.calls(*_REGISTERS, "delattr", "pop", inside=function):
        if called(call) == "pop" and "__dict__" not in module.text(call.func):
            continue  # `self.__dict__.pop("scales")`
        for each in call.args[:2]:
            name = module.value_of(each).constant
            if isinstance(name, str):
                found.setdefault(name, []).append(call)
    return found


def _variable(module: Module, call: ast.Call, taken: ast.Assign, attribute: str) -> Fix | None:
    """`mask = ...; self.register_buffer("mask", mask)`, if nothing else stands for it."""
    if len(taken.targets) > 1 or not attribute.isidentifier():
        return None
    text, function = f"self.{attribute}", module.function_of(call)
    reads = [each for each in module.members(attribute, function) if module.text(each) == text]
    between = [each for each in reads if taken.lineno <= each.lineno <= (call.end_lineno or 0)]
    inside = [each for each in between if call.lineno <= each.lineno]
    if len(between) != len(inside) + 1 or not inside or module.uses(attribute, function):
        return None
    edits: list[Edit] = [module.replace(each, attribute) for each in between]
    return module.fix("keep it in a variable until then", Safety.UNSAFE, *edits)
