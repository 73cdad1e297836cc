"""What the inference of one function asks of the file and project around it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Protocol

from tensortrail.rules.places import Held


class World(Protocol):
    sets_default_device: bool
    """The file changes the default device somewhere: nothing is known of factories without one."""

    def qualified(self, node: ast.AST) -> str: ...

    def global_held(self, name: str) -> Held:
        """What stands under a name at the top of the file."""

    def attribute(self, cls: ast.ClassDef, name: str) -> Held:
        """What an object of the class keeps under a name, over its bases and their files."""

    def is_module(self, cls: ast.ClassDef) -> bool: ...

    def result(
        self,
        call: ast.Call,
        cls: ast.ClassDef | None,
        given: Sequence[Held],
        named: dict[str, Held],
    ) -> Held | None:
        """What a function or module of the project gives back; None if it is not known."""

    def made(self, call: ast.Call, dotted: str) -> Held | None:
        """What calling a class of the project gives: a module, or something else."""
