from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tensortrail.findings import Confidence, Finding, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shared.functions import functions
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.view import FunctionNode

_FLAG = re.compile(r"offload|low_?v?ram|low_?mem|save_?mem|swap", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Move:
    """A statement that moves something: `x.to("cpu")`, `x = x.cpu()`."""

    call: ast.Call
    what: str
    away: bool
    """To the CPU; else back."""
    flags: tuple[str, ...]
    """The conditions about offloading under which it happens."""
    others: frozenset[str]


class MovedWithoutGuard(Rule):
    """One move to the CPU asks no flag, and the moves that belong to it do.

    ## What it does
    Compares the statements of one function that move something to the CPU. Reports one that
    happens whatever a flag about offloading or memory says, if beside it something else is moved
    to the CPU under that flag, or if the same object is moved back under it, later or before and
    nowhere else. All other conditions around the two have to be the same, and the function has put
    both on a device before, or neither.

    ## Why is this bad?
    Somebody who has turned the flag off finds one part of the model on the CPU, and the next
    step that uses it meets tensors on two devices.

    ## Fix safety
    The fix is unsafe: it puts the move under the same flag.

    ## References
    - pytorch/TensorRT issue 3728, a module that was offloaded whatever the setting said
    """

    code = "OFF114"
    name = "moved-without-guard"
    severity = Severity.WARNING
    confidence = Confidence.MEDIUM
    triggers = (
        (".cpu()", "offload"), (".cpu()", "low"), (".cpu()", "mem"), (".cpu()", "swap"),
        (".to(", "cpu", "offload"), (".to(", "cpu", "low"), (".to(", "cpu", "mem"),
        (".to(", "cpu", "swap"),
    )  # fmt: skip
    bad = (
        Bad(
            """\
def generate(args, encoder, model, prompt, noise):
    embedding = encoder(prompt)
    if args.offload:
        encoder.to("cpu")
    latents = model(noise, embedding)
    model.to("cpu")
    return latents
""",
            lines=(6,),
            fixed="""\
def generate(args, encoder, model, prompt, noise):
    embedding = encoder(prompt)
    if args.offload:
        encoder.to("cpu")
    latents = model(noise, embedding)
    if args.offload:
        model.to("cpu")
    return latents
""",
        ),
        Bad(
            """\
def cached(args, vae, data):
    place = vae.device
    vae = vae.cpu()
    rows = data.encode()
    if not args.lowram:
        vae.to(place)
    return rows
""",
            lines=(3,),
            fixed="""\
def cached(args, vae, data):
    place = vae.device
    if not args.lowram:
        vae = vae.cpu()
    rows = data.encode()
    if not args.lowram:
        vae.to(place)
    return rows
""",
        ),
        Bad(
            """\
class Trainer:
    def reward(self, batch):
        if self.cfg.offload_critic:
            self.critic.to("cuda")
        values = self.critic(batch)
        self.critic.to("cpu")
        return values
""",
            lines=(6,),
            fixed="""\
class Trainer:
    def reward(self, batch):
        if self.cfg.offload_critic:
            self.critic.to("cuda")
        values = self.critic(batch)
        if self.cfg.offload_critic:
            self.critic.to("cpu")
        return values
""",
        ),
    )
    good = (
        Good(
            """\
def cached(args, vae, encoder, data, device):
    if not args.lowram:
        vae.to("cpu")
    encoder.to(device)
    rows = data.encode(encoder)
    encoder.to("cpu")
    if not args.lowram:
        vae.to(device)
    return rows
"""
        ),
        Good(
            """\
def generate(args, encoder, model, prompt, noise):
    embedding = encoder(prompt)
    if args.offload:
        encoder.to("cpu")
    latents = model(noise, embedding)
    if args.cached:
        model.to("cpu")
    return latents.cpu()
"""
        ),
        Good(
            """\
def generate(args, encoder, model, prompt, noise, device):
    if not args.offload:
        return model(noise, encoder(prompt))
    encoder.to("cpu")
    model.to(device)
    latents = model(noise, encoder(prompt))
    model.to("cpu")
    return latents
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for function in functions(module):
            moves = list(_moves(module, function))
            for move in moves:
                other = _its_like(move, moves) if move.away and not move.flags else None
                if other is not None:
                    yield self._reported(module, move, other)

    def _reported(self, module: Module, move: Move, other: Move) -> Finding:
        condition = " and ".join(other.flags)
        line = other.call.lineno
        back = "moved back" if _start(other) > _start(move) else "brought to its device"
        done = "moved to the CPU" if other.away else back
        who = "it" if other.what == move.what else f"`{other.what}`"
        statement = module.statement_of(move.call)
        return self.finding(
            module,
            move.call,
            f"`{move.what}` is moved to the CPU whatever `{condition}` says, and line {line}, "
            f"where {who} is {done}, asks it",
            trail=((other.call, f"`{other.what}` is {done} under `{condition}`"),),
            fixes=(module.wrap_in_if(statement, condition, Safety.UNSAFE),),
        )


def _its_like(move: Move, moves: Sequence[Move]) -> Move | None:
    """A move that belongs to this one and is under a flag, all else being equal."""
    for other in moves:
        if not other.flags or other.others != move.others:
            continue
        back = (
            other.what == move.what
            and not other.away
            and (_start(other) > _start(move) or not _is_brought(move, moves))
        )
        alike = other.away and other.what != move.what
        if back or (alike and _is_brought(move, moves) == _is_brought(other, moves)):
            return other
    return None


def _is_brought(move: Move, moves: Sequence[Move]) -> bool:
    """The function has put the object on a device itself, always: it ends what it began."""
    return any(
        each.what == move.what and not each.away and not each.flags
        for each in moves
        if _start(each) < _start(move)
    )


def _moves(module: Module, function: FunctionNode) -> Iterator[Move]:
    for call in module.calls("to", "cpu", inside=function):
        func = call.func
        if module.function_of(call) is not function or not isinstance(func, ast.Attribute):
            continue
        away = func.attr == "cpu" or _is_cpu(call)
        if not _stands_alone(module, call, func.value) or not (away or _is_device(module, call)):
            continue
        guards = [each.text for each in module.guards_of(call)]
        flags = tuple(each for each in guards if _FLAG.search(each))
        others = frozenset(guards) - frozenset(flags)
        yield Move(call, module.text(func.value), away, flags, others)


def _stands_alone(module: Module, call: ast.Call, moved: ast.expr) -> bool:
    """The move is the whole statement: it is for what the object is used for later."""
    statement = module.parent(call)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        return module.text(statement.targets[0]) == module.text(moved)
    return isinstance(statement, ast.Expr)


def _start(move: Move) -> tuple[int, int]:
    return move.call.lineno, move.call.col_offset


def _given(call: ast.Call) -> list[ast.expr]:
    """The arguments of `to` that may be the device."""
    return [*call.args, *(each.value for each in call.keywords if each.arg == "device")]


def _is_cpu(call: ast.Call) -> bool:
    return any(isinstance(each, ast.Constant) and each.value == "cpu" for each in _given(call)[:1])


def _is_device(module: Module, call: ast.Call) -> bool:
    given = _given(call)
    return len(given) == 1 and "dtype" not in module.text(given[0])
