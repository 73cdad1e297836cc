"""Arguments for functions and modules of anybody, guessed by what is written of them.

A guess says nothing by itself: whoever makes a call with it looks whether the call ends well.
"""

from __future__ import annotations

import inspect
import random
import re
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

_DEVICE = re.compile(r"(^|_)(device|dev)($|_)")
_NUMBER_OF = re.compile(
    r"(^|_)(n|num|dim|dims|size|ch|channels?|planes|features?|heads?|len|length|layers?|depth|width"
    r"|height|classes|steps?|rank|hidden|max|min|k|window|kernel|in|out|level|order|patch|seq)($|_)"
)
_SHARE = re.compile(r"eps|rate|drop|alpha|beta|gamma|sigma|scale|lr|std|prob|temp|weight_decay|tol")
_INDEX = re.compile(r"(^|_)(ids?|idx|indices|index|labels?|targets?|lengths?|lens?|timesteps?"
                    r"|batch|tokens?|src|dst|classes|segment)($|_)")  # fmt: skip
_TEXTS = ("mean", "relu", "none", "same", "linear", "sum")
_FEW_LAYERS = re.compile(r"layers?$|depth|blocks?$")
_NUMBERS = (
    (_FEW_LAYERS, (1,)),
    (re.compile(r"im(a?)g(e?)_?size|resolution|width|height"), (32, 16)),
    (re.compile(r"patch|head"), (8, 4)),
    (re.compile(r"channel|in_ch"), (3, 3, 4, 8)),
    (re.compile(r"kernel|stride|dilation|groups"), (1, 3)),
)
_DEPTH = 3


class Cannot(Exception):
    """Nothing can be guessed for an argument that is needed."""


class AnySetting:
    """Settings of which every one is a number: `args.d_model`."""

    def __init__(self, number: int, device: str) -> None:
        self.__dict__.update(number=number, device=torch.device(device))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if _SHARE.search(name):
            return 0.5
        return 1 if _FEW_LAYERS.search(name) else self.number


@dataclass
class Guess:
    """One try: its numbers and shapes go together, and follow from the chance it is given."""

    chance: random.Random
    device: str
    size: int = 8
    shape: tuple[int, ...] = ()
    depth: int = 0

    def __post_init__(self) -> None:
        self.size = self.chance.choice((8, 8, 4, 16, 3, 2, 32))
        self.shape = self.chance.choice(self._shapes())

    def _shapes(self) -> list[tuple[int, ...]]:
        d = self.size
        return [
            *((2, d), (2, 5, d), (2, d, 16, 16), (1, 3, 32, 32), (d,), (2, d, d), (2, d, 20)),
            *((d, d), (2, 3, 16, 16), (5, 3), (2, 400), (2, 4, 5, d), (1, d, 4, 8, 8)),
        ]

    def call(self, function: Callable[..., Any], bound: bool = False) -> Any:
        positional, keywords = self.arguments(function, bound)
        return function(*positional, **keywords)

    def arguments(
        self, function: Callable[..., Any], bound: bool = False
    ) -> tuple[list[Any], dict[str, Any]]:
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError) as error:
            raise Cannot(str(error)) from error
        hints = _hints(function)
        positional: list[Any] = []
        keywords: dict[str, Any] = {}
        for each in parameters[1:] if bound else parameters:
            if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
                continue
            hint = hints.get(each.name, each.annotation)
            if each.default is not each.empty and not self._is_given(each.name, hint, each.default):
                continue
            value = self.value(each.name, hint)
            if each.kind is each.POSITIONAL_ONLY:
                positional.append(value)
            else:
                keywords[each.name] = value
        return positional, keywords

    def _is_given(self, name: str, hint: Any, default: Any) -> bool:
        if _DEVICE.search(name):
            return default is None or isinstance(default, (str, torch.device))
        if default is None:
            return self.chance.random() < (0.3 if "Tensor" in _text(hint) else 0.05)
        return isinstance(default, (bool, torch.dtype)) and self.chance.random() < 0.2

    def value(self, name: str, hint: Any) -> Any:
        text = _text(hint)
        if _DEVICE.search(name) or text in ("device", "torch.device"):
            return torch.device(self.device)
        if hint is not inspect.Parameter.empty and text not in ("Any", "None"):
            return self._of_hint(name, hint, text)
        if name in ("shape", "size", "dtype"):
            return torch.float32 if name == "dtype" else self.shape
        if name in ("args", "cfg", "config", "configs", "opt", "opts", "hparams", "params"):
            return AnySetting(self.size, self.device)
        if _SHARE.search(name):
            return 0.5
        if _NUMBER_OF.search(name) or (len(name) == 1 and name.isupper()):
            return self._number(name)
        if self.chance.random() < 0.15:
            return self._number(name)
        return self.tensor(name)

    def _of_hint(self, name: str, hint: Any, text: str) -> Any:
        if "Tensor" in text and not re.match(r"(list|List|Sequence|tuple|Tuple|dict|Dict)", text):
            return self.tensor(name)
        if re.match(r"(list|List|Sequence|tuple|Tuple|Iterable)", text):
            made = self.tensor if "Tensor" in text else self._number
            return type_of_many(text)(made(name) for _ in range(2))
        simple: list[tuple[str, Any]] = [
            (r"\bint\b", self._number(name)), (r"\bfloat\b", 0.5), (r"\bbool\b", False),
            (r"dtype", torch.float32), (r"Generator", torch.Generator(self.device)),
        ]  # fmt: skip
        for word, value in simple:
            if re.search(word, text):
                return value
        if typing.get_origin(hint) is typing.Literal:
            return self.chance.choice(typing.get_args(hint))
        if "Optional" in text or "None" in text:
            return None
        if re.search(r"\bstr\b", text):
            return self.chance.choice(_TEXTS)
        if isinstance(hint, type):
            return self._made(hint)
        return torch.nn.Linear(self.size, self.size) if "Module" in text else torch.nn.Identity()

    def _made(self, cls: type) -> Any:
        if cls is torch.nn.Module:
            return torch.nn.Linear(self.size, self.size).to(self.device)
        if hasattr(cls, "model_type") and hasattr(cls, "to_dict"):
            from tiny_models import shrunk

            return shrunk(cls())
        if self.depth >= _DEPTH:
            raise Cannot(cls.__name__)
        self.depth += 1
        try:
            return self.call(cls)
        finally:
            self.depth -= 1

    def _number(self, name: str) -> int:
        for word, numbers in _NUMBERS:
            if word.search(name) and self.chance.random() < 0.8:
                return self.chance.choice(numbers)
        return self.size if self.chance.random() < 0.8 else self.chance.choice((1, 2, 3, 4))

    def tensor(self, name: str) -> torch.Tensor:
        shape = self.shape if self.chance.random() < 0.75 else self.chance.choice(self._shapes())
        if "mask" in name:
            made = torch.ones(shape, dtype=torch.bool)
        elif _INDEX.search(name) and self.chance.random() < 0.8:
            short = shape[: self.chance.choice((1, 2))]
            made = torch.arange(torch.Size(short).numel()).reshape(short) % 2
        else:
            made = torch.rand(shape)
        return made.to(self.device)


def type_of_many(text: str) -> type:
    return tuple if text.lower().startswith("tuple") else list


def _text(hint: Any) -> str:
    if isinstance(hint, str):
        return hint
    return hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    of = function.__init__ if isinstance(function, type) else function  # type: ignore[misc]
    try:
        return typing.get_type_hints(of)
    except Exception:  # what stands there is somebody else's
        return {}
