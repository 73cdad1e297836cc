"""The narrow view of code a rule sees. The analyzer implements it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from tensortrail.findings import Edit, Fix, Safety, Site
from tensortrail.rules.places import FunctionPlaces, Held
from tensortrail.rules.project_facts import (
    Changed,
    ClassFacts,
    FunctionFacts,
    OffloadSetting,
)
from tensortrail.rules.project_view import ProjectView
from tensortrail.rules.unchanging import unchanging
from tensortrail.rules.words import Branch, Guard, Kind, Placement, Value

N = TypeVar("N", bound=ast.AST)
A = TypeVar("A")
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@unchanging(frozen=True, slots=True)
class Caller:
    """A call in another file, and what it passes for the parameter that was asked about."""

    module: Module
    function: FunctionNode
    """The outermost function around the call."""
    call: ast.Call
    held: Held


class Module(ProjectView, Protocol):
    """One Python file, with meaning. Nodes are those of `ast`."""

    path: str
    name: str
    """Dotted module name, from the package it lies in ("torchao.dtypes.nf4tensor")."""

    # --- finding nodes -------------------------------------------------------------------
    def nodes(self, kind: type[N], inside: ast.AST | None = None) -> Sequence[N]:
        """Every node of that type in source order, in the file or strictly below `inside`."""

    def uses(self, name: str, inside: ast.AST | None = None) -> Sequence[ast.Name]:
        """Every use of that name, as `nodes` gives them."""

    def members(self, name: str, inside: ast.AST | None = None) -> Sequence[ast.Attribute]:
        """Every `x.name`, as `nodes` gives them."""

    def calls(self, *names: str, inside: ast.AST | None = None) -> Iterator[ast.Call]:
        """Calls of these functions. A dotted name ("torch.save") must be the resolved name;
        a bare one ("deallocate_module", "data_ptr") the last part of it, methods included."""

    # --- structure -----------------------------------------------------------------------
    def text(self, node: ast.AST) -> str:
        """The source of the node as it stands in the file."""

    def parent(self, node: ast.AST) -> ast.AST | None: ...
    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """From the parent up to the ast.Module."""

    def function_of(self, node: ast.AST) -> FunctionNode | None:
        """The innermost function around the node (for a def: the one around it)."""

    @property
    def top(self) -> FunctionNode:
        """What runs when the file itself does, as if it were the body of a function; `places` and
        `nodes` take it. `function_of` never gives it."""

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        """The innermost class around the node, through functions."""

    def statement_of(self, node: ast.AST) -> ast.stmt: ...
    def contexts_of(self, node: ast.AST) -> Sequence[ast.expr]:
        """Context expressions of the `with` statements around the node, innermost first."""

    def comments_on(self, node: ast.AST) -> str:
        """The comments on the node's first line and on the lines of comment just above it."""

    def later(self, node: ast.AST, kind: type[N]) -> Iterator[N]:
        """Nodes of that type that may run after `node` in the same function, in order:
        what follows in its block and the blocks around, and the bodies of loops around it."""

    def earlier(self, node: ast.AST, kind: type[N]) -> Iterator[N]:
        """Nodes of that type that may run before `node` in the same function, nearest first."""

    def once(self, question: Callable[[Module, N], A], about: N) -> A:
        """`question(module, about)`, which several places ask: answered once for the file."""

    # --- names ---------------------------------------------------------------------------
    def qualified(self, node: ast.AST) -> str:
        """The dotted name of a Name or Attribute chain (or of a call's function), imports
        resolved: `nn.Linear` -> "torch.nn.Linear". "" when it is no such chain."""

    # --- meaning -------------------------------------------------------------------------
    def value_of(self, node: ast.expr) -> Value: ...
    def kind_of(self, node: ast.expr) -> Kind: ...
    def placement_at(self, node: ast.expr) -> Placement: ...
    def guards_of(self, node: ast.AST) -> Sequence[Guard]:
        """Conditions that dominate the node inside its function, innermost first."""

    def branches(self, inside: ast.AST | None = None) -> Iterator[Branch]:
        """Every block that runs under a condition, and what holds in it: the branches of an `if`
        however it is turned, the cases of a `match`, what follows an `if` that leaves."""

    # --- where tensors lie ---------------------------------------------------------------
    def places(self, function: FunctionNode) -> FunctionPlaces:
        """What is inferred of a function: where its tensors lie, and which meet."""

    def passed(self, function: FunctionNode, parameter: str) -> Sequence[tuple[FunctionNode, Held]]:
        """What callers in this file pass for a parameter of a function of it, and who does."""

    def passed_elsewhere(self, function: FunctionNode, parameter: str) -> Sequence[Caller]:
        """The same of callers in the other files of the project, as far as calls are resolved; of
        a name that many files call the first few."""

    def given_elsewhere(
        self, function: FunctionNode, parameter: str
    ) -> Sequence[tuple[Module, ast.expr]]:
        """The arguments themselves, each with its file, also of a constructor: there the calls make
        an object of its class."""

    # --- facts ---------------------------------------------------------------------------
    def class_facts(self, cls: ast.ClassDef | str) -> ClassFacts | None:
        """By definition node or qualified name; other files of the project are read if needed."""

    def about(self, dotted: str, question: Callable[[Module, ast.AST], A]) -> A | None:
        """`question(file, node)` about the class or function of the project that has this name,
        asked of the file it stands in; None if there is none. The question is a function at the
        top of a file, and what it gives has no nodes in it: answers are kept."""

    def function_facts(self, call: ast.Call) -> FunctionFacts | None:
        """What the called function does to its arguments, when it is known."""

    def parameters_of(self, call: ast.Call) -> tuple[str, ...]:
        """Names of the parameters of the called function or constructor, in order and without
        `self`; empty if it is not known or takes `*args`."""

    def chosen_defaults_of(self, call: ast.Call) -> frozenset[str]:
        """Parameters of the called function or constructor whose default is a value: neither
        missing nor None."""

    def needed_by(self, call: ast.Call) -> frozenset[str]:
        """Parameters of the called function or constructor that have no default."""

    def taken_by_name(self, call: ast.Call) -> frozenset[str]:
        """Parameters of the called function or constructor that no position passes."""

    def gpu_defaults_of(self, call: ast.Call) -> frozenset[str]:
        """Parameters of the called function or constructor whose default is a GPU, as written, or
        "auto"."""

    def sent_to_processes(self, call: ast.Call) -> Sequence[ast.expr]:
        """The arguments that are pickled for other processes: by `all_gather_object` and the like,
        or by a function of the project that passes them on to it."""

    def states_written(self, call: ast.Call) -> Sequence[ast.expr]:
        """The arguments whose state dict a function of the project writes into a file, with the
        keys that it has."""

    def states_loaded(self, call: ast.Call) -> Sequence[ast.expr]:
        """The arguments that a function of the project gives a state dict, as it is."""

    def changed_and_returned(self, call: ast.Call) -> Sequence[tuple[ast.expr, Changed]]:
        """The arguments whose tensor a function of the project changes in place and returns."""

    def argument(self, call: ast.Call, position: int, name: str) -> ast.expr | None:
        """The argument passed at that position or by that keyword."""

    def offload_settings(self, node: ast.AST) -> Sequence[OffloadSetting]:
        """Settings about offloading that the function or class around the node can consult."""

    # --- places and edits ----------------------------------------------------------------
    def site(self, node: ast.AST) -> Site: ...
    def replace(self, node: ast.AST, text: str) -> Edit: ...
    def insert_before(self, node: ast.AST, text: str) -> Edit: ...
    def insert_after(self, node: ast.AST, text: str) -> Edit: ...
    def fix(self, description: str, safety: Safety, *edits: Edit) -> Fix | None:
        """A fix of these edits; None if the file would no longer parse with them."""

    def wrap_in_if(self, statement: ast.stmt, condition: str, safety: Safety) -> Fix | None:
        """Put the statement under `if condition:`."""

    def wrap_in_try_finally(self, first: ast.stmt, last: ast.stmt, safety: Safety) -> Fix | None:
        """`first` goes under `try:`, the statements after it up to `last` under `finally:`."""
