"""What the functions do that a file calls, as far as their code tells."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import TypeVar, cast

from tensortrail.analyzer.facts import hints, known, questions
from tensortrail.analyzer.facts.project_file import ProjectFile, Question
from tensortrail.analyzer.judging.running_functions import RunsFunctions
from tensortrail.analyzer.syntax.tree import SCOPES
from tensortrail.analyzer.values import changed, functions, returned, signatures
from tensortrail.rules.project_facts import Changed, FunctionFacts
from tensortrail.rules.view import FunctionNode
from tensortrail.rules.words import UNKNOWN_VALUE, Value

A = TypeVar("A")


class AsksForCallees(RunsFunctions):
    """The part of a `Module` that answers what a function does, wherever it is defined."""

    path: str

    def __init__(self) -> None:
        super().__init__()
        self._function_facts: dict[ast.AST, FunctionFacts | None] = {}
        self._results: dict[ast.AST, Value | None] = {}
        self._local_callees: dict[ast.Call, FunctionNode | None] = {}

    @property
    def _file(self) -> ProjectFile:
        return cast("ProjectFile", self)

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
        place = self.project.defined(self._file, dotted, SCOPES)
        return (
            self.project.asked_at(self._file, place, questions.facts_of_function) if place else None
        )

    def _about_callee(
        self, call: ast.Call, question: Question[A], worth: re.Pattern[str] | None = None
    ) -> A | None:
        """The same, where the answer to a question about the function is enough."""
        dotted = self.qualified(call.func)
        node = self._local_callee(call, dotted)
        if node is not None:
            return self.once(question, node)
        return (
            self.project.about(self._file, dotted, question) if _is_worth(dotted, worth) else None
        )

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
        found = returned.method_of(self._file, cls, method)
        if found is None or (found.path != self.path and self.project.depth > 1):
            return UNKNOWN_VALUE  # only what is judged makes other files run their functions
        told = self.project.asked_at(self._file, found, questions.result_of_function)
        return told or UNKNOWN_VALUE

    def result_of_function(self, node: FunctionNode) -> Value:
        if node not in self._results:
            told = returned.at_a_glance(self._file, node)
            flow = self._flow(node) if told is None else None
            if flow is not None and not flow.done:
                return UNKNOWN_VALUE  # it asks about itself
            self._results[node] = returned.given_back(flow) if flow is not None else told
        return self._results[node] or UNKNOWN_VALUE

    def tensor_parameters(self, call: ast.Call) -> frozenset[int | str | None]:
        """Positions and names of the parameters that the called function annotates as tensors."""
        worth = known.RETURN_WORTH_READING
        return self._about_callee(call, signatures.tensor_parameters, worth) or frozenset()

    def changed_and_returned(self, call: ast.Call) -> list[tuple[ast.expr, Changed]]:
        """The arguments that the called function changes in place and returns."""
        names = self._about_callee(call, changed.changed_and_returned, changed.WORTH_READING)
        if not names:
            return []
        given = dict(zip(self.parameters_of_callee(call), call.args, strict=False))
        given.update({each.arg: each.value for each in call.keywords if each.arg is not None})
        return [(value, names[name]) for name, value in given.items() if name in names]


@lru_cache(maxsize=20_000)
def _is_worth(dotted: str, worth: re.Pattern[str] | None) -> bool:
    """Whether the name may be one of another file, and says enough to look for it there."""
    first, _, last = dotted.rpartition(".")
    if not first or first.partition(".")[0] in ("self", "cls"):
        return False
    return worth is None or bool(worth.search(last))
