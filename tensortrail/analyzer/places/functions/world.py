"""What the inference of one function asks of the file and project around it."""

from __future__ import annotations

import ast
from typing import Protocol

from tensortrail.analyzer.places.functions.callee import Callee
from tensortrail.analyzer.syntax.tree import Tree
from tensortrail.rules.places import Held


class World(Protocol):
    tree: Tree
    sets_default_device: bool
    """The file changes the default device somewhere: nothing is known of factories without one."""

    def qualified(self, node: ast.AST) -> str: ...

    def global_held(self, name: str) -> Held:
        """What stands under a name at the top of the file."""

    def attribute(self, cls: ast.ClassDef, name: str) -> Held:
        """What an object of the class keeps under a name, over its bases and their files."""

    def is_module(self, cls: ast.ClassDef) -> bool: ...

    def is_module_named(self, dotted: str) -> bool:
        """The class is a module, of this project or of a library."""

    def is_no_tensor(self, dotted: str) -> bool:
        """A class of the project whose bases are known, and of which none is torch's tensor."""

    def is_asked_as_module(self, node: ast.expr) -> bool:
        """The file calls methods of it that only modules have."""

    def is_called(self, node: ast.expr) -> bool:
        """The file calls what the name or attribute stands for."""

    def is_kernel(self, node: ast.expr) -> bool:
        """What is launched as `kernel[grid](...)`: a function of Triton or Numba."""

    def callee(self, call: ast.Call) -> Callee | None:
        """The function of the project that a call runs, if it is known."""

    def callee_of(self, cls: str, method: str) -> Callee | None:
        """The method of a class of the project."""

    def attribute_of(self, cls: str, name: str) -> Held:
        """What an object of that class keeps under a name."""

    def made(self, call: ast.Call, dotted: str) -> Held | None:
        """What calling a class of the project gives: a module, or something else."""
