"""Generators that the program makes itself, and draws that need one of another device."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.rules.devices.shared.batches.shuffled_loaders import gpu_defaults
from tensortrail.rules.devices.shared.written_for.callers import passed_by_all
from tensortrail.rules.devices.shared.written_for.preparing import prepares
from tensortrail.rules.devices.shared.written_for.told import may_be_a_gpu, told_device
from tensortrail.rules.places import What, Where
from tensortrail.rules.shared.functions import parameters
from tensortrail.rules.shared.moves import is_cpu
from tensortrail.rules.shared.objects import called, is_none, keyword, receiver
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.view import FunctionNode, Module

_FACTORIES = tuple(f"torch.{each}" for each in "rand randn randint randperm normal".split())
_OF_THE_CPU = ("torch.utils.data.DataLoader", "torch.utils.data.random_split",
               "torch.utils.data.RandomSampler")  # fmt: skip
_IN_PLACE = tuple("normal_ uniform_ random_ bernoulli_ exponential_ log_normal_".split())
_OF_A_TENSOR = ("torch.multinomial", "torch.bernoulli")


class Draw(NamedTuple):
    """A draw whose generator is of another device."""

    call: ast.Call
    made: ast.Call
    """Where the generator was made."""
    on: ast.expr | None
    """The device of the generator, None for the CPU."""
    needs: ast.expr | None
    """The device of what is drawn, None for the default one."""


class DrawForCaller(NamedTuple):
    """A draw of the CPU's generator for a tensor that callers pass."""

    call: ast.Call
    made: ast.Call
    subject: str


def draws_for_callers(module: Module) -> Iterator[DrawForCaller]:
    """`torch.multinomial(p, 1, generator=self.generator)` of an argument, where the class or the
    function makes a plain `torch.Generator()`."""
    for call in module.calls(*_OF_A_TENSOR):
        given, function = keyword(call, "generator"), module.function_of(call)
        drawn = call.args[0] if call.args else None
        if given is None or drawn is None or function is None or prepares(module, function):
            continue
        held = module.places(function).seen.get(drawn)
        place = held.only if held is not None and held.what is What.TENSOR else None
        if place is None or place.where is not Where.OF or "." in place.subject:
            continue
        made = [] if _is_asked_for_devices(module, call) else _made(module, given)
        if made and all(_device(module, each) is None for each in made):
            yield DrawForCaller(call, made[0], place.subject)


def _is_asked_for_devices(module: Module, call: ast.Call) -> bool:
    return any(guard.mentions("cpu", "cuda", "device") for guard in module.guards_of(call))


def unfit_draws(module: Module) -> Iterator[Draw]:
    """`torch.randn(n, generator=torch.Generator(), device=device)`, and the other way round."""
    for call in (*module.calls(*_FACTORIES, *_OF_THE_CPU, *_OF_A_TENSOR, *_IN_PLACE),):
        given = keyword(call, "generator")
        made = _made(module, given) if given is not None else []
        if not made or _is_asked_for_devices(module, call):
            continue
        on = {_text(module, _device(module, each)) for each in made}
        needs = _needed(module, call)
        device = _device(module, made[0])
        if len(on) == 1 and _differ(module, device, needs, call):
            yield Draw(call, made[0], device, needs)


def _made(module: Module, generator: ast.expr) -> list[ast.Call]:
    """The calls that made it, on every path; nothing if one of them is not known."""
    named = isinstance(generator, (ast.Name, ast.Attribute))
    origins = module.value_of(generator).origins if named else (generator,)
    if isinstance(generator, ast.Attribute):  # None until a method has made it
        origins = tuple(each for each in origins if not is_none(each))
    made = [_maker(module, behind(module, each)) for each in origins]
    return [each for each in made if each is not None] if None not in made else []


def _maker(module: Module, node: ast.expr | None) -> ast.Call | None:
    """`torch.Generator()` of `torch.Generator().manual_seed(3)`."""
    while isinstance(node, ast.Call) and called(node) == "manual_seed":
        if module.qualified(node.func) == "torch.manual_seed":
            return node  # gives the one of the CPU
        node = receiver(node)
    is_one = isinstance(node, ast.Call) and module.qualified(node.func) == "torch.Generator"
    return node if is_one and isinstance(node, ast.Call) else None


def _device(module: Module, made: ast.Call) -> ast.expr | None:
    if called(made) != "Generator":
        return None
    return _unless_cpu(module, made.args[0] if made.args else keyword(made, "device"))


def _unless_cpu(module: Module, said: ast.expr | None) -> ast.expr | None:
    return None if said is None or is_none(said) or is_cpu(module, said) else said


def _needed(module: Module, call: ast.Call) -> ast.expr | None:
    """The device of what is drawn, as far as the call or its tensor says it."""
    owner = receiver(call)
    if called(call) in _IN_PLACE and owner is not None:
        return told_device(module, owner)
    if module.qualified(call.func) in _OF_A_TENSOR:
        return told_device(module, call.args[0]) if call.args else None
    return _unless_cpu(module, keyword(call, "device"))


def _differ(module: Module, on: ast.expr | None, needs: ast.expr | None, call: ast.Call) -> bool:
    if on is None and needs is None:
        return _draws_by_default(module, call) and bool(gpu_defaults(module))
    if on is None:
        return needs is not None and (isinstance(needs, ast.Call) or may_be_a_gpu(module, needs))
    if (
        needs is not None
        or not _draws_by_default(module, call)
        or not may_be_a_gpu(module, on)
        or gpu_defaults(module)
    ):
        return False
    return module.gpu_made_default() is None


def _draws_by_default(module: Module, call: ast.Call) -> bool:
    """On the default device, as the call says nothing else."""
    known = module.qualified(call.func) in (*_FACTORIES, *_OF_THE_CPU)
    return known and keyword(call, "device") is None


def is_certain(module: Module, draw: Draw) -> bool:
    """The file makes a GPU the default device, or writes the device of the generator out."""
    if draw.on is None:
        return draw.needs is None
    said = behind(module, draw.on)
    if isinstance(said, ast.Call) and called(said) == "device" and said.args:
        said = said.args[0]
    written = isinstance(said, ast.Constant) and str(said.value).startswith("cuda")
    return written and draw.needs is None and module.qualified(draw.call.func) in _OF_THE_CPU


def is_meant(draw: Draw) -> bool:
    """`torch.Generator("cpu")`: who writes that may know of a backend that takes it."""
    return (
        draw.on is None
        and bool(draw.made.args or draw.made.keywords)
        and (called(draw.made) == "Generator")
    )


def _text(module: Module, node: ast.expr | None) -> str:
    return module.text(node) if node is not None else ""


def may_be_given(module: Module, function: FunctionNode, name: str) -> bool:
    """Somebody passes a generator, or nobody of the project calls it: its users may."""
    given = passed_by_all(module, function, name)
    if given:
        return any(each.what is not What.NONE for each in given)
    others = (each.arg for each in parameters(function) if each.arg not in (name, "self"))
    return not any(passed_by_all(module, function, each) for each in others)
