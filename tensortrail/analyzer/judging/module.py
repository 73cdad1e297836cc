"""One Python file with meaning: what rules ask is answered here."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any, TypeVar

from tensortrail.analyzer.facts import hints, known, questions
from tensortrail.analyzer.facts.class_lookup import Classes
from tensortrail.analyzer.facts.classes import kind_of_class
from tensortrail.analyzer.facts.offload_switches import OffloadSettings
from tensortrail.analyzer.facts.project import Project
from tensortrail.analyzer.facts.project_file import Question
from tensortrail.analyzer.fixing import edits
from tensortrail.analyzer.fixing.still_parses import Checker
from tensortrail.analyzer.judging.callee_signatures import AsksForSignatures
from tensortrail.analyzer.judging.project_calls import AsksForProjectCalls
from tensortrail.analyzer.judging.project_gpus import AsksForGpus
from tensortrail.analyzer.judging.project_saves import AsksForSaves
from tensortrail.analyzer.places.asked import AsksForPlaces
from tensortrail.analyzer.reading.limits import TooMuch
from tensortrail.analyzer.reading.parsing import kept
from tensortrail.analyzer.reading.source import Source
from tensortrail.analyzer.reading.texts import Texts
from tensortrail.analyzer.syntax.call_index import CallIndex
from tensortrail.analyzer.syntax.guards import Guards
from tensortrail.analyzer.syntax.names import Names, module_name
from tensortrail.analyzer.syntax.structure import Structure
from tensortrail.analyzer.syntax.tree import SCOPES
from tensortrail.analyzer.values import callers, functions, returned, signatures
from tensortrail.analyzer.values.attributes import Attributes, joined
from tensortrail.analyzer.values.bound_once import names_bound_once
from tensortrail.analyzer.values.calls import argument_named
from tensortrail.analyzer.values.evaluating import Binding
from tensortrail.analyzer.values.flow import Flow
from tensortrail.findings import Edit, Fix, Safety
from tensortrail.rules.view import FunctionNode
from tensortrail.rules.words import (
    UNKNOWN_VALUE,
    Branch,
    ClassFacts,
    FunctionFacts,
    Guard,
    Kind,
    OffloadSetting,
    Owner,
    Placement,
    Value,
)

N = TypeVar("N", bound=ast.AST)
A = TypeVar("A")
_A_FIX = 100
"""Questions that cost as much as seeing whether a file still parses with a fix."""
_REFER_BACK = (
    "_flows _classes _attributes _guards _offload_settings _places _calls _answers "
    "_passed_elsewhere"
).split()


class PythonModule(
    Structure, AsksForPlaces, AsksForProjectCalls, AsksForGpus, AsksForSaves, AsksForSignatures
):
    """Implements the `Module` view of the rules, and the `World` of the evaluator."""

    def __init__(self, path: str, data: bytes, project: Project) -> None:
        self.path = path
        self.project = project
        self.tick: Callable[[], None] = project.limit.tick
        """Something was asked: work on one file has a limit."""
        self.needs: set[str] = set()
        """Other files whose facts were consulted."""
        self.absent: set[str] = set()
        """Words that no other file of the project has, on which findings rest."""
        self.rested_on: set[frozenset[str]] = set()
        """Sets of files that are in `needs` already."""
        self.running = self.asked_early = 0
        self.source = Source(path, data)
        self.kept = kept(data, project.words, project.limit)
        """What is judged of the file: all of it, unless it is very large."""
        self.tree = project.trees.of(path, self.kept)
        self.name, self.root = module_name(path, project.packages)
        self.names = self._collect_names()
        self._qualified: dict[ast.AST, str] = {}
        self._flows: dict[ast.AST, Flow] = {}
        self._classes = Classes(self)
        self._function_facts: dict[ast.AST, FunctionFacts | None] = {}
        self._attributes = Attributes(self)
        self._globals: dict[str, Value] = {}
        self._results: dict[ast.AST, Value | None] = {}
        self._callers_asked: set[ast.AST | None] = set()
        self._guards = Guards(self.tree, lambda name: self.value_of(name).origins)
        self._offload_settings = OffloadSettings(self)
        self._answers: dict[tuple[Callable[..., Any], ast.AST], Any] = {}
        self._local_callees: dict[ast.Call, FunctionNode | None] = {}

    def release(self) -> None:
        """Nothing more will be asked: let go of what refers back here, as no collector runs."""
        for name in _REFER_BACK:
            vars(self).pop(name, None)

    # --- calls ---------------------------------------------------------------------------
    def calls(self, *names: str, inside: ast.AST | None = None) -> Iterator[ast.Call]:
        return self._calls.named(names, *self.tree.numbers(ast.Call, inside))

    @cached_property
    def _calls(self) -> CallIndex:
        return CallIndex(self.tree.nodes(ast.Call), self.qualified)

    def once(self, question: Callable[[Any, N], A], about: N) -> A:
        if (question, about) not in self._answers:
            self._answers[question, about] = question(self, about)
        answer: A = self._answers[question, about]
        return answer

    # --- names ---------------------------------------------------------------------------
    def qualified(self, node: ast.AST) -> str:
        known = self._qualified.get(node)
        if known is None:
            self.tick()
            known = self._qualified[node] = self.resolved(node)
        return known

    def definition_named(self, dotted: str) -> ast.AST | None:
        """The class or function of that name inside this file ("Class.method" too)."""
        return self.tree.definitions.get(dotted)

    def _collect_names(self) -> Names:
        is_package = self.path.endswith("__init__.py")
        names = Names(self.name, is_package, self.tree.imports())
        names.define(
            node.name for node in self.tree.root.body if isinstance(node, (ast.ClassDef, *SCOPES))
        )
        names.follow(self.tree.root.body)
        return names

    # --- meaning -------------------------------------------------------------------------
    def value_of(self, node: ast.expr) -> Value:
        self.tick()
        flow = self._flow_of(node)
        found = flow.seen.get(node, UNKNOWN_VALUE)
        if flow.done and (not found.kinds or not found.sure):
            found = self._better_known(flow, found).seen.get(node, UNKNOWN_VALUE)
        return found

    def _better_known(self, flow: Flow, found: Value) -> Flow:
        """The same code, run again with what it was seen to use, or to be given, as tensors."""
        believed = flow.believed or frozenset(flow.used)
        given = found.owner is Owner.CALLER and self.project.depth == 0
        if given and flow.scope not in self._callers_asked:
            self._callers_asked.add(flow.scope)
            believed |= callers.tensors_given(self, flow.scope)
        if believed == flow.believed or flow.scope is None:
            return flow
        again = self._new_flow(flow.scope, believed)
        self._run(again, flow.scope)
        return again

    def kind_of(self, node: ast.expr) -> Kind:
        return self.value_of(node).kind

    def placement_at(self, node: ast.expr) -> Placement:
        return self.value_of(node).placement

    def guards_of(self, node: ast.AST) -> Sequence[Guard]:
        return self._guards.of(node)

    def branches(self, inside: ast.AST | None = None) -> Iterator[Branch]:
        return self._guards.branches(inside)

    def _flow_of(self, node: ast.AST) -> Flow:
        function = self.tree.outermost_function_of(node)
        return self._flow(function if function is not None else self.tree.root)

    def _flow(self, scope: FunctionNode | ast.Module) -> Flow:
        if scope not in self._flows:
            flow = self._new_flow(scope)
            if self.project.is_deep:
                return flow
            self._run(flow, scope)
        return self._flows[scope]

    def _new_flow(self, scope: ast.AST, believed: frozenset[Binding] = frozenset()) -> Flow:
        cls = self.tree.class_of(scope)
        return Flow(self, self._class_name(cls) if cls is not None else "", believed)

    def _run(self, flow: Flow, scope: ast.AST) -> None:
        self._flows[scope] = flow
        flow.scope = scope
        self.project.depth += 1
        self.running += 1
        try:
            if isinstance(scope, ast.Module):
                flow.run_top(scope.body)
            elif isinstance(scope, SCOPES):
                flow.run_function(scope)
        except RecursionError:
            if self.project.depth > 1:
                del self._flows[scope]  # the function that asked may be the deep one
                raise
            where = f"`{self.tree.qualname_of(scope)}`" if scope is not self.tree.root else "it"
            self.project.limit.notes.append(f"the values in {where}, which is nested too deeply")
        except TooMuch:
            del self._flows[scope]
            raise
        finally:
            self.running -= 1
            self.project.depth -= 1

    def _class_name(self, cls: ast.ClassDef) -> str:
        return ".".join(filter(None, (self.name, self.tree.qualname_of(cls))))

    def global_value(self, name: str) -> Value:
        found = self._at_top(name) if name in self.tree.bound else UNKNOWN_VALUE
        if found is UNKNOWN_VALUE and name.isupper():
            dotted = self.names.resolve(name)  # a constant of another file
            return self.project.global_of(self, dotted) if "." in dotted else found
        stores = self.tree.global_stores.get(name) if name in self.tree.bound else None
        if not stores:
            return found
        known = self._globals.get(name)
        if known is None:
            self._globals[name] = found  # a name that is made of itself ends here
            known = self._globals[name] = joined([found, *map(self.value_of, stores)])
        return known

    def _at_top(self, name: str) -> Value:
        """What the name is after all that stands at the top of the file."""
        top = self._flows.get(self.tree.root) or self._flow(self.tree.root)
        if not top.done and name not in self.tree.once(names_bound_once, self.tree.root):
            return UNKNOWN_VALUE
        return (top.end.values.get(name) if top.end is not None else None) or UNKNOWN_VALUE

    # --- facts ---------------------------------------------------------------------------
    def class_facts(self, cls: ast.ClassDef | str) -> ClassFacts | None:
        return self._classes.facts(cls if isinstance(cls, str) else self._class_name(cls))

    def local_name(self, name: str) -> str:
        """A qualified name of this file as it stands in it."""
        return name.removeprefix(f"{self.name}.") if self.name else name

    def function_facts(self, call: ast.Call) -> FunctionFacts | None:
        dotted = self.qualified(call.func)
        named = functions.known_function(dotted, call) if dotted else None
        if named is not None:
            return named
        node = self._local_callee(call, dotted)
        if node is not None:
            return self.facts_of_function(node)
        if not _is_worth(dotted, known.FUNCTION_WORTH_READING):
            return None
        place = self.project.defined(self, dotted, SCOPES)
        return self.project.asked_at(self, place, questions.facts_of_function) if place else None

    def _about_callee(
        self, call: ast.Call, question: Question[A], worth: re.Pattern[str] | None = None
    ) -> A | None:
        """The same, where the answer to a question about the function is enough."""
        dotted = self.qualified(call.func)
        node = self._local_callee(call, dotted)
        if node is not None:
            return self.once(question, node)
        return self.project.about(self, dotted, question) if _is_worth(dotted, worth) else None

    def _local_callee(self, call: ast.Call, dotted: str) -> FunctionNode | None:
        if call not in self._local_callees:
            self._local_callees[call] = self._looked_up(call, dotted)
        return self._local_callees[call]

    def _looked_up(self, call: ast.Call, dotted: str) -> FunctionNode | None:
        first, _, rest = dotted.partition(".")
        local = self.local_name(dotted)
        if first in ("self", "cls") and rest:
            cls = self.tree.class_of(call)
            local = f"{self.tree.qualname_of(cls)}.{rest}" if cls is not None else ""
        node = self.definition_named(local)
        return node if isinstance(node, SCOPES) else None

    def facts_of_function(self, node: FunctionNode) -> FunctionFacts | None:
        if node not in self._function_facts:
            self._function_facts[node] = None  # recursion ends here
            text = self.text(node)
            is_method = isinstance(self.tree.parent(node), ast.ClassDef)
            params = functions.params_of(node, is_method)
            name = self.tree.qualname_of(node)
            if not params:  # nothing can be done to them: there is no need to run it
                self._function_facts[node] = FunctionFacts(name, file=self.path, line=node.lineno)
            elif any(word in text for word in known.MOVING_WORDS) or "return" in text:
                flow = self._flow_of(node)
                if not flow.done:
                    del self._function_facts[node]  # asked while it is being run: ask again later
                    return None
                self._function_facts[node] = functions.facts_of(
                    name, node, flow, self.path, params, "resize_" in text
                )
        return self._function_facts[node]

    def parameters_of_callee(self, call: ast.Call) -> tuple[str, ...]:
        return self._about_callee(call, signatures.of_function) or ()

    def annotated_return(self, call: ast.Call) -> hints.Annotated:
        worth = known.RETURN_WORTH_READING
        return self._about_callee(call, signatures.annotated_return, worth) or hints.NOTHING_SAID

    def result_of(self, call: ast.Call, cls: str, method: str) -> Value:
        """By the name of what is called, or as that method of that class."""
        node = self._local_callee(call, self.qualified(call.func))
        by_class = cls and method and node is None
        if not by_class:
            return self.result_of_function(node) if node is not None else UNKNOWN_VALUE
        found = returned.method_of(self, cls, method)
        if found is None or (found.path != self.path and self.project.depth > 1):
            return UNKNOWN_VALUE  # only what is judged makes other files run their functions
        told = self.project.asked_at(self, found, questions.result_of_function)
        return told or UNKNOWN_VALUE

    def result_of_function(self, node: FunctionNode) -> Value:
        if node not in self._results:
            told = returned.at_a_glance(self, node)
            flow = self._flow(node) if told is None else None
            if flow is not None and not flow.done:
                return UNKNOWN_VALUE  # it asks about itself
            self._results[node] = returned.given_back(flow) if flow is not None else told
        return self._results[node] or UNKNOWN_VALUE

    def tensor_parameters(self, call: ast.Call) -> frozenset[int | str | None]:
        """Positions and names of the parameters that the called function annotates as tensors."""
        worth = known.RETURN_WORTH_READING
        return self._about_callee(call, signatures.tensor_parameters, worth) or frozenset()

    def kind_of_class_named(self, name: str) -> Kind | None:
        last = name.rpartition(".")[2]
        if self.definition_named(last) is None and not known.CLASS_WORTH_READING.search(last):
            return None
        return kind_of_class(self.class_facts(name))

    def attribute_of_class(self, cls: str, name: str) -> Value:
        return self._attributes.of_class(cls, name)

    def assigned(self, cls: ast.ClassDef, name: str) -> Value:
        return self._attributes.assigned(cls, name)

    def offload_settings(self, node: ast.AST) -> Sequence[OffloadSetting]:
        return self._offload_settings.at(node)

    def argument(self, call: ast.Call, position: int, name: str) -> ast.expr | None:
        return argument_named(call, (*("",) * position, name), name)

    # --- edits ---------------------------------------------------------------------------
    def fix(self, description: str, safety: Safety, *made: Edit) -> Fix | None:
        if not self.source.editable or not made:
            return None
        self.project.limit.tick(_A_FIX)
        ending = tuple(edits.with_line_ends(self.source, edit) for edit in made)
        return Fix(description, safety, ending) if self._parses_with(ending) else None

    @cached_property
    def _parses_with(self) -> Callable[[Sequence[Edit]], bool]:
        return Checker(self.source, self.tree.root).holds

    def wrap_in_if(self, statement: ast.stmt, condition: str, safety: Safety) -> Fix | None:
        edit = edits.under_if(self.source, statement, condition)
        return self.fix(f"guard with `if {condition}:`", safety, *([edit] if edit else ()))

    def wrap_in_try_finally(self, first: ast.stmt, last: ast.stmt, safety: Safety) -> Fix | None:
        edit = edits.under_try_finally(self.source, first, last)
        return self.fix("restore in `finally`", safety, *([edit] if edit else ()))


@lru_cache(maxsize=20_000)
def _is_worth(dotted: str, worth: re.Pattern[str] | None) -> bool:
    """Whether the name may be one of another file, and says enough to look for it there."""
    first, _, last = dotted.rpartition(".")
    if not first or first.partition(".")[0] in ("self", "cls"):
        return False
    return worth is None or bool(worth.search(last))


def open_project(words: Collection[bytes] = (b"",), texts: Texts | None = None) -> Project:
    """The files around those that are judged; of none more than its text is read yet."""
    return Project(PythonModule, words, texts)
