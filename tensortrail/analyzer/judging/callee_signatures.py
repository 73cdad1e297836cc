"""What rules ask a file about the parameters of what its calls call."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar, cast

from tensortrail.analyzer.facts.project_file import ProjectFile
from tensortrail.analyzer.values import returned, signatures
from tensortrail.analyzer.values.sent import sent_by
from tensortrail.analyzer.values.signatures import Signature
from tensortrail.rules.words import Kind

A = TypeVar("A")


class AsksForSignatures:
    """The part of a `Module` that answers what the callee of a call takes."""

    def parameters_of(self, call: ast.Call) -> tuple[str, ...]:
        return self._signature(call).parameters

    def chosen_defaults_of(self, call: ast.Call) -> frozenset[str]:
        return self._signature(call).chosen_defaults

    def gpu_defaults_of(self, call: ast.Call) -> frozenset[str]:
        return self._signature(call).gpu_defaults

    def needed_by(self, call: ast.Call) -> frozenset[str]:
        return self._signature(call).needed

    def taken_by_name(self, call: ast.Call) -> frozenset[str]:
        return self._signature(call).by_name

    def about(self, dotted: str, question: Callable[[Any, ast.AST], A]) -> A | None:
        file = cast("ProjectFile", self)
        node = file.definition_named(file.local_name(dotted))
        if node is not None:
            return question(file, node)
        return file.project.about(file, dotted, question) if "." in dotted else None

    def sent_to_processes(self, call: ast.Call) -> tuple[ast.expr, ...]:
        sent = sent_by(call, cast("ProjectFile", self).qualified(call.func))
        if sent is not None:
            return (sent,)
        return self._given_as(call, self._signature(call).sent)

    def states_written(self, call: ast.Call) -> tuple[ast.expr, ...]:
        return self._given_as(call, self._signature(call).written)

    def states_loaded(self, call: ast.Call) -> tuple[ast.expr, ...]:
        return self._given_as(call, self._signature(call).loaded)

    def _given_as(self, call: ast.Call, names: frozenset[str]) -> tuple[ast.expr, ...]:
        """The arguments that the call gives for these parameters."""
        given = dict(zip(self._signature(call).parameters, call.args, strict=False))
        given.update({each.arg: each.value for each in call.keywords if each.arg is not None})
        return tuple(value for name, value in given.items() if name in names)

    @cached_property
    def _signatures(self) -> dict[ast.Call, Signature]:
        return {}

    def _signature(self, call: ast.Call) -> Signature:
        if call not in self._signatures:
            file = cast("ProjectFile", self)
            found = signatures.signature(file, call)
            if not found.parameters and not file.tree.is_unbound(call.func):
                found = _of_method(file, *_asked(file, call))
            self._signatures[call] = found
        return self._signatures[call]


def _of_method(file: ProjectFile, cls: str, name: str) -> Signature:
    """Of a method of a class of the project, own or inherited."""
    found = returned.method_of(file, cls, name) if cls and name else None
    if found is None:
        return signatures.UNKNOWN
    return file.project.asked_at(file, found, signatures.signature_of) or signatures.UNKNOWN


def _asked(file: ProjectFile, call: ast.Call) -> tuple[str, str]:
    """The class whose method is called, if that is known, and the method."""
    value = file.value_of(call.func)
    if value.kind is Kind.MODULE:
        return value.cls, "forward"
    func = call.func
    if value.cls and value.kind is Kind.OTHER:
        return value.cls, "__call__"
    if not isinstance(func, ast.Attribute):
        return "", ""
    return file.value_of(_whose_class(func.value)).cls, func.attr


def _whose_class(node: ast.expr) -> ast.expr:
    """`self` of `self.__class__` and of `type(self)`, which have its methods too."""
    match node:
        case ast.Attribute(value=of, attr="__class__"):
            return of
        case ast.Call(func=ast.Name(id="type"), args=[of]):
            return of
    return node
