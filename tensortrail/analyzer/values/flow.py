"""Runs a function abstractly, statement by statement, and remembers what every expression was."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from tensortrail.analyzer.facts import hints
from tensortrail.analyzer.syntax.blocks import suppresses
from tensortrail.analyzer.syntax.cases import condition_of, is_open
from tensortrail.analyzer.values.evaluating import Binding, World
from tensortrail.analyzer.values.expressions import Evaluator
from tensortrail.analyzer.values.narrowing import narrow
from tensortrail.analyzer.values.parameters import bind_parameters
from tensortrail.analyzer.values.state import State, join, join_values
from tensortrail.rules.shared.moves import MODULE_MOVES
from tensortrail.rules.view import FunctionNode
from tensortrail.rules.words import UNKNOWN_VALUE, Kind, Value

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_TRY: tuple[type[ast.Try], ...] = (ast.Try, getattr(ast, "TryStar", ast.Try))
_LOOPS_RUN_TWICE = 2
"""Loops nested deeper run once: the first round from a state already joined is near enough."""


class Flow(Evaluator):
    """One outermost function (or the top of a file), run once."""

    def __init__(
        self,
        world: World,
        enclosing_class: str = "",
        believed: frozenset[Binding] = frozenset(),
    ) -> None:
        super().__init__(world)
        self.believed = believed
        self.scope: ast.AST | None = None
        self._class = enclosing_class
        self._loops = 0
        self._breaks: list[State] = []
        self._is_top = False
        self.done = False
        self.end: State | None = None
        self.returns: list[tuple[ast.expr, Value]] = []
        self.yields: list[Value] = []

    def run_function(self, function: FunctionNode, outer: State | None = None) -> None:
        state = outer.copy() if outer is not None else State()
        for decorator in function.decorator_list:
            self.value(decorator, state)
        bind_parameters(self, function, self._class, state)
        self.end = self._block(function.body, state)
        self.done = True

    def run_top(self, body: Sequence[ast.stmt]) -> None:
        """Until it is done, `end` is what holds before the statement that is being run: functions
        that it calls ask for it."""
        self._is_top = True
        state: State | None = State()
        for statement in body:
            if state is None:
                break
            self.end = state
            state = self._statement(statement, state)
        self.end = state
        self.done = True

    def yielded(self, value: Value) -> None:
        self.yields.append(value)

    # --- statements ----------------------------------------------------------------------
    def _block(self, statements: Sequence[ast.stmt], state: State | None) -> State | None:
        for statement in statements:
            if state is None:
                return None
            state = self._statement(statement, state)
        return state

    def _statement(self, node: ast.stmt, state: State) -> State | None:
        if isinstance(node, ast.Expr):
            self._discarded(node.value, state)
            return state
        if isinstance(node, ast.Assign):
            value = self.value(node.value, state)
            for target in node.targets:
                self.assign(target, value, node.value, state)
            return state
        if isinstance(node, ast.AnnAssign):
            self._annotated(node, state)
            return state
        if isinstance(node, ast.AugAssign):
            before = self.value(node.target, state)
            added = self.value(node.value, state)
            tensor = before if before.is_tensor else added
            joined = tensor if tensor.is_tensor else join_values(before, added)
            self.assign(node.target, joined, node.value, state)
            return state
        if isinstance(node, ast.If):
            return self._if(node, state)
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            return self._loop(node, state)
        if isinstance(node, _TRY):
            return self._try(node, state)
        if isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                value = self.value(item.context_expr, state)
                if item.optional_vars is not None:
                    self.assign(item.optional_vars, value, item.context_expr, state)
            early = state.copy() if suppresses(node) else None
            return join(early, self._block(node.body, state))
        if isinstance(node, (ast.Return, ast.Raise)):
            self._leave(node, state)
            return None
        if isinstance(node, (ast.Break, ast.Continue)):
            self._breaks.append(state)
            return None
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self._nested(node, state)
            return state
        if isinstance(node, ast.ClassDef):
            self._class_body(node, state)
            state.bind(node.name, Value(frozenset({Kind.OTHER}), path=node.name))
            return state
        if isinstance(node, ast.Match):
            return self._match(node, state)
        return self._simple(node, state)

    def _discarded(self, node: ast.expr, state: State) -> None:
        """A call whose result is dropped: if it moves its subject, the subject is a module."""
        value = self.value(node, state)
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in MODULE_MOVES
        ):
            base = self.seen.get(node.func.value, UNKNOWN_VALUE)
            if not base.kinds and base.path and value.placement:
                self.move(base.path, replace(value.placement, by=node), state)

    def _annotated(self, node: ast.AnnAssign, state: State) -> None:
        name = getattr(node.target, "id", getattr(node.target, "attr", ""))
        said = hints.read(
            node.annotation, self.world.qualified, self.world.kind_of_class_named, name
        )
        value = self.value(node.value, state) if node.value is not None else UNKNOWN_VALUE
        if said.kinds and not value.kinds:
            value = replace(value, kinds=said.kinds, sure=True)
        if said.cls and not value.cls:
            value = replace(value, cls=said.cls)
        if said.contents is not None:
            value = replace(value, contents=said.contents)
        if node.value is not None:
            self.assign(node.target, value, node.value, state)

    def _if(self, node: ast.If, state: State) -> State | None:
        """Each `elif` is an `if` in the `else` of the one before; here they come in a row."""
        ends: list[State | None] = []
        while True:
            self.value(node.test, state)
            yes, no = state.copy(), state
            narrow(self, node.test, True, yes)
            narrow(self, node.test, False, no)
            ends.append(self._block(node.body, yes))
            if len(node.orelse) != 1 or not isinstance(node.orelse[0], ast.If):
                break
            node, state = node.orelse[0], no
        result = self._block(node.orelse, no)
        for end in reversed(ends):
            result = join(end, result)
        return result

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, state: State) -> State | None:
        outside = self._breaks
        self._loops += 1
        rounds = 2 if self._loops <= _LOOPS_RUN_TWICE else 1
        head: State | None = state
        left: list[State] = []
        for _ in range(rounds):
            self._breaks = []
            inside = (head or state).copy()
            if isinstance(node, ast.While):
                self.value(node.test, inside)
                narrow(self, node.test, True, inside)
            else:
                self.bind_element(node.target, node.iter, inside)
            after = self._block(node.body, inside)
            left = self._breaks
            head = join(head, after)
            for each in left:
                head = join(head, each)
        self._loops -= 1
        self._breaks = outside
        result = self._block(node.orelse, (head or state).copy()) if node.orelse else head
        for each in left:
            result = join(result, each)
        return result

    def _try(self, node: ast.stmt, state: State) -> State | None:
        assert isinstance(node, _TRY)
        before = state.copy()
        after = self._block(node.body, state)
        broken = join(before, after) or before
        done = self._block(node.orelse, after) if after is not None else None
        for handler in node.handlers:
            entry = broken.copy()
            if handler.name:
                entry.bind(handler.name, Value(frozenset({Kind.OTHER}), path=handler.name))
            done = join(done, self._block(handler.body, entry))
        if not node.finalbody:
            return done
        final = self._block(node.finalbody, (join(done, broken) or broken).copy())
        return final if done is not None else None

    def _match(self, node: ast.Match, state: State) -> State | None:
        self.value(node.subject, state)
        takes_all = any(is_open(case) and case.guard is None for case in node.cases)
        result: State | None = None
        rest = state.copy()
        for case in node.cases:
            inside = rest.copy()
            asked = condition_of(node, case)
            if asked is not None:
                narrow(self, asked[0], asked[1], inside)
                if case.guard is None:
                    narrow(self, asked[0], not asked[1], rest)
            for below in ast.walk(case.pattern):
                name = getattr(below, "name", None)
                if isinstance(name, str):
                    inside.bind(name, UNKNOWN_VALUE)
                if isinstance(below, ast.MatchValue):
                    self.value(below.value, inside)
            if case.guard is not None:
                self.value(case.guard, inside)
            result = join(result, self._block(case.body, inside))
        return result if takes_all else join(result, rest)

    def _leave(self, node: ast.Return | ast.Raise, state: State) -> None:
        if isinstance(node, ast.Raise):
            for raised in (node.exc, node.cause):
                if raised is not None:
                    self.value(raised, state)
        elif node.value is not None:
            self.returns.append((node.value, self.value(node.value, state)))

    def _nested(self, node: FunctionNode, state: State) -> None:
        if not self._is_top:
            inner = Flow(self.world, believed=self.believed)
            inner.seen, inner.used = self.seen, self.used
            inner.run_function(node, state)
        state.bind(node.name, Value(frozenset({Kind.OTHER}), path=node.name))

    def _class_body(self, node: ast.ClassDef, state: State) -> None:
        """What stands in a class beside its methods runs where the class is made."""
        plain = [each for each in node.body if not isinstance(each, ast.ClassDef)]
        if self._is_top:
            plain = [each for each in plain if not isinstance(each, _FUNCTIONS)]
        self._block(plain, state.copy())

    def _simple(self, node: ast.stmt, state: State) -> State:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child, state)
        if isinstance(node, ast.Delete):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    state.bind(target.id, UNKNOWN_VALUE)
        elif isinstance(node, ast.Assert):
            narrow(self, node.test, True, state)
        return state
