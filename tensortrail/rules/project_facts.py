"""What a project knows: classes, functions, their calls, statements, the files it writes."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import field
from enum import Enum

from tensortrail.rules.unchanging import unchanging


@unchanging(frozen=True, slots=True)
class ClassFacts:
    """What the project knows of a class, own and inherited."""

    name: str
    bases: tuple[str, ...] = ()
    """Qualified names of all ancestors that could be named, nearest first."""
    is_module: bool = False
    is_wrapper: bool = False
    """A tensor subclass made by `_make_wrapper_subclass`: no real storage of its own."""
    handles: frozenset[str] = frozenset()
    """Ops its dispatch answers by itself, as "aten.new_empty" (overload dropped)."""
    rewraps_rest: bool = False
    """Its dispatch has a generic fall-through that gives back its own type."""
    raises_rest: bool = False
    """Its dispatch refuses every op it does not answer."""
    takes: frozenset[str] = frozenset()
    """Names its `__new__` and `__init__` accept, own and inherited."""
    methods: frozenset[str] = frozenset()
    fields: frozenset[str] = frozenset()
    """Names assigned on self or annotated in the class body."""
    registered: frozenset[str] = frozenset()
    """Names of parameters, buffers and submodules registered by the class, as far as it says."""
    registers_others: bool = False
    """It also registers some under names that are not written out."""
    complete: bool = False
    """Every ancestor was read or is a known library class; else absence proves nothing."""
    file: str = ""
    line: int = 0


@unchanging(frozen=True, slots=True)
class ProjectCall:
    """A call of a function somewhere in the project."""

    path: str
    line: int
    given: frozenset[str | int] = frozenset()
    """Names and positions of the arguments whose values are not written out."""
    written: frozenset[str | int] = frozenset()
    """Those that are constants."""
    off: frozenset[str | int] = frozenset()
    """Those that are `False` or `None`."""
    is_open: bool = False
    """It passes `*` or `**`, which may hold anything."""
    is_switched_off: bool = False
    """It stands under a constant of its file that is False."""


@unchanging(frozen=True, slots=True)
class Namesake:
    """A function or method somewhere in the project, found by its name alone."""

    path: str
    line: int
    parameters: tuple[str, ...]
    """In order, without `self`."""
    needed: frozenset[str]
    """Parameters without a default, unless a decorator may pass them."""
    is_open: bool
    """It takes `*` or `**`."""


@unchanging(frozen=True, slots=True)
class GuardedStatement:
    """A statement somewhere in the project, and what is asked before it."""

    path: str
    line: int
    flags: frozenset[str]
    """Names about offloading in the conditions around it."""


class Content(str, Enum):
    """What is in a file that was written with `torch.save`."""

    NO_TENSOR = "no tensor"
    CPU = "tensors of the CPU"
    COMPUTED = "tensors that lie where the program computes"
    UNKNOWN = "not known"


@unchanging(frozen=True, slots=True)
class SavedFile:
    """A file that the project writes."""

    path: str
    line: int
    end: str
    """How its name ends, as far as that is written out."""
    cls: str
    """The class whose method writes it."""
    shown: str
    """Its name as an expression."""
    content: Content
    keys: frozenset[str] | None
    """Of a mapping that is written out; None where they are not known."""


@unchanging(frozen=True, slots=True)
class FunctionFacts:
    """What a function does to its arguments. Parameters by name."""

    name: str
    params: tuple[str, ...] = ()
    moves: Mapping[str, str] = field(default_factory=dict)
    """Parameter -> device it is moved to on some path ("cpu", "meta", "cuda", "offloaded")."""
    frees: frozenset[str] = frozenset()
    """Parameters whose storage it releases."""
    returns: frozenset[str] = frozenset()
    """Parameters it may return as they are."""
    file: str = ""
    line: int = 0


@unchanging(frozen=True, slots=True)
class Changed:
    """A parameter whose tensor a function changes in place and returns, as it is or as a view."""

    place: int
    """In the tuple that is returned; -1 if it is all that is."""
    path: str
    line: int
    """Where it is changed first."""


@unchanging(frozen=True, slots=True)
class OffloadSetting:
    """A setting about offloading that code at some place can consult."""

    name: str
    expression: str
    """How it is read there: `self.settings.offload_module_to_cpu`."""
    node: ast.AST | None = field(default=None, compare=False)
    """Where it is accepted or read."""
    used_as_guard: bool = False
    """The expression already guards a statement in the same class or file."""
