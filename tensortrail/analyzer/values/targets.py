"""What the targets of assignments and loops are bound to."""

from __future__ import annotations

import ast

from tensortrail.analyzer.values import containers
from tensortrail.analyzer.values.elements import element_of
from tensortrail.analyzer.values.evaluating import Binding, World
from tensortrail.analyzer.values.library_calls import parts_of
from tensortrail.analyzer.values.narrowing import path_of
from tensortrail.analyzer.values.state import State
from tensortrail.rules.words import UNKNOWN_VALUE, Kind, Placement, Value


class Targets:
    """Binds targets for what evaluates expressions."""

    world: World
    seen: dict[ast.expr, Value]
    moves: list[tuple[str, Placement]]
    used: set[Binding]

    def value(self, node: ast.expr, state: State) -> Value:
        raise NotImplementedError

    def member(self, node: ast.Attribute, base: Value, state: State) -> None:
        raise NotImplementedError

    def by_use(self, value: Value) -> Value:
        raise NotImplementedError

    def is_believed(self, value: Value) -> bool:
        raise NotImplementedError

    def assign(self, target: ast.expr, value: Value, source: ast.expr | None, state: State) -> None:
        """`target = source`, where `source` was found to be `value`."""
        if isinstance(target, (ast.Tuple, ast.List)):
            self._assign_parts(target, value, source, state)
            return
        if isinstance(target, ast.Starred):
            self.assign(target.value, UNKNOWN_VALUE, None, state)
            return
        path = path_of(target)
        if isinstance(target, (ast.Attribute, ast.Subscript)):
            self.value(target.value, state)
            base = self.seen[target.value].path
            if isinstance(target, ast.Attribute):
                path = f"{base}.{target.attr}" if base else ""
            else:
                self.value(target.slice, state)
                kept = containers.contents_of([value])
                containers.add(self.seen[target.value], kept, state)
        if not path:
            return
        origins = (source,) if source is not None else ()
        alias = value.path if value.kind is Kind.MODULE and _is_name(value.path) else path
        bound = self.by_use(value.called(alias, origins=origins))
        state.bind(path, bound)
        self.seen[target] = bound

    def _assign_parts(
        self,
        target: ast.Tuple | ast.List,
        value: Value,
        source: ast.expr | None,
        state: State,
    ) -> None:
        known_parts = parts_of(self, source)
        if len(known_parts) == len(target.elts):
            for each, held in zip(target.elts, known_parts, strict=True):
                self.assign(each, held, source, state)
            return
        parts = source.elts if isinstance(source, (ast.Tuple, ast.List)) else ()
        parts = parts if len(parts) == len(target.elts) else ()
        given = containers.parts_of(value, len(target.elts))
        for number, each in enumerate(target.elts):
            part = parts[number] if parts else None
            held = containers.as_value(given[number]) if given else UNKNOWN_VALUE
            self.assign(each, self.seen.get(part, held) if part else held, part or source, state)

    def bind_element(self, target: ast.expr, source: ast.expr, state: State) -> None:
        """Bind a loop variable to what iterating over `source` gives."""
        self.value(source, state)
        self._bind_shape(target, element_of(self, source, state), source, state)

    def _bind_shape(
        self, target: ast.expr, shape: containers.Element, source: ast.expr, state: State
    ) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            parts = containers.parts_of(shape, len(target.elts))
            for index, each in enumerate(target.elts):
                part = parts[index] if len(parts) == len(target.elts) else UNKNOWN_VALUE
                self._bind_shape(each, part, source, state)
            return
        value = containers.as_value(shape)
        if isinstance(target, ast.Starred):
            target, value = target.value, UNKNOWN_VALUE
        path = path_of(target)
        if path:
            bound = self.by_use(value.called(value.path or path, origins=(source,)))
            state.bind(path, bound)
            self.seen[target] = bound

    def move(self, path: str, placement: Placement, state: State) -> None:
        """The object at `path` is moved in place."""
        if path:
            state.move(path, placement)
            self.moves.append((path, placement))


def _is_name(path: str) -> bool:
    return path.replace(".", "").replace("_", "").isalnum()
