"""A model is called by the variable of the program that holds it, or else by its class."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterable, Iterator, Mapping
from traceback import walk_tb
from typing import Any

from torch.nn import Module

from tensortrail.tracer.identity.sites import OWNERS, USER, user_frames
from tensortrail.tracer.identity.variables import variables

OF_METHODS = ("self", "cls")


class ModelNames:
    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Module], str, bool]] = {}
        """Each model, what it is called, and whether the main file calls it so."""

    def of(self, module: Module) -> str:
        known = self._known.get(id(module))
        if known is not None and known[0]() is module:
            return known[1]
        return type(module).__name__

    def call(self, module: Module, name: str) -> None:
        """What another object calls it, until it is seen in a variable."""
        if self.of(module) == type(module).__name__:
            self._known[id(module)] = (weakref.ref(module), name, False)

    def all(self) -> list[tuple[str, Module]]:
        """The models that are in a variable, by its name."""
        found = ((name, ref()) for ref, name, _ in self._known.values())
        return [(name, model) for name, model in found if model is not None]

    def around(self, module: Module) -> Module | None:
        """The model in a variable that the module is a part of."""
        models = [model for ref, *_ in self._known.values() if (model := ref()) is not None]
        return next((each for each in models if any(m is module for m in each.modules())), None)

    def look(self, errors: Iterable[BaseException] = ()) -> None:
        """Learn the variables of the main file, and of the functions these came through."""
        self._learn(vars(sys.modules["__main__"]), main=True)
        for error in errors:
            for names in _variables(error):
                self._learn(names)

    def look_here(self) -> None:
        """The same of the functions that run now."""
        self.look()
        for frame in reversed(list(user_frames(sys._getframe()))):
            self._learn(variables(frame))

    def _learn(self, names: Mapping[str, Any], main: bool = False) -> None:
        for name, value in list(names.items()):
            own = name.isidentifier() and not name.startswith("_") and name not in OF_METHODS
            if not own or not issubclass(type(value), Module):  # pytest has names like `@py_1`
                continue
            known = self._known.get(id(value))
            if known is None or known[0]() is not value or (main and not known[2]):
                self._known[id(value)] = (weakref.ref(value), name, main)


def _variables(error: BaseException) -> Iterator[Mapping[str, Any]]:
    """Of the user's functions that the exception came through, the outermost first."""
    for frame, _ in walk_tb(error.__traceback__):
        if OWNERS[frame.f_code.co_filename] == USER:
            yield variables(frame)
