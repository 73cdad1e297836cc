"""Loaders that shuffle in a program whose default device is a GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.rules.devices.shared.written_for.told import may_be_a_gpu
from tensortrail.rules.shared.objects import is_true, keyword
from tensortrail.rules.view import Module

_SAMPLED = ("generator", "sampler", "batch_sampler")
_SHUFFLE = 2
"""The position of `shuffle`."""


class Shuffled(NamedTuple):
    loader: ast.Call
    default: ast.Call
    """Which makes the GPU the default device."""
    device: str
    """As the program writes it."""


def shuffled_loaders(module: Module) -> Iterator[Shuffled]:
    """`DataLoader(rows, shuffle=True)` draws the order on the default device, and its generator is
    one of the CPU."""
    made = gpu_defaults(module)
    if not made:
        return
    for loader in module.calls("torch.utils.data.DataLoader"):
        shuffles = module.argument(loader, _SHUFFLE, "shuffle")
        given = [keyword(loader, name) for name in _SAMPLED]
        if is_true(shuffles) and not any(given) and None not in _names(loader):
            yield Shuffled(loader, *made[0])


def gpu_defaults(module: Module) -> list[tuple[ast.Call, str]]:
    """The calls of the file that make a device the default one, and that device; none if it is
    not a GPU each time."""
    calls = [*module.calls("torch.set_default_device", "torch.set_default_tensor_type")]
    made = [(call, _gpu(module, call)) for call in calls]
    return made if all(device for _, device in made) else []


def _gpu(module: Module, call: ast.Call) -> str:
    """The device that it makes the default one, if that is or may be a GPU."""
    given = module.argument(call, 0, "device") or module.argument(call, 0, "t")
    if given is None:
        return ""
    text, constant = module.text(given), module.value_of(given).constant
    if module.qualified(call.func).endswith("tensor_type"):
        named = constant if isinstance(constant, str) else module.qualified(given)
        return '"cuda"' if named.startswith("torch.cuda.") else ""
    chosen = isinstance(given, ast.Call) and "cuda" in text
    return text if chosen or may_be_a_gpu(module, given) else ""


def _names(call: ast.Call) -> list[str | None]:
    return [each.arg for each in call.keywords]
