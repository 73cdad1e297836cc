"""Runs one function over places, statement by statement."""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cached_property

from tensortrail.analyzer.places.attributes.first_needed import keep_what_was_made
from tensortrail.analyzer.places.calls.moves import MOVES_OR_CASTS
from tensortrail.analyzer.places.conditions import condition_of, is_about_devices, narrow
from tensortrail.analyzer.places.expressions import Expressions
from tensortrail.analyzer.places.functions.parameters import parameters_of
from tensortrail.analyzer.places.functions.used_as_tensors import used_as_tensors, with_a_shape
from tensortrail.analyzer.places.functions.world import World
from tensortrail.analyzer.places.held.environment import Environment
from tensortrail.analyzer.places.held.joins import join, join_environments, without_locals
from tensortrail.analyzer.places.held.operations import is_put_somewhere, written
from tensortrail.analyzer.syntax.tree import SCOPES
from tensortrail.analyzer.values.bound_once import names_bound_once
from tensortrail.rules.places import UNKNOWN_HELD, Held, Place, What, Where, opposite
from tensortrail.rules.view import FunctionNode

_TRY: tuple[type[ast.Try], ...] = (ast.Try, getattr(ast, "TryStar", ast.Try))
_CONDITIONS = (ast.Compare, ast.BoolOp, ast.UnaryOp)
_DEEPEST_LOOP = 2
"""Loops nested deeper run once."""


_BESIDE_ITS_OWN = 1
"""Of `x += value`: the value may be an operation whose operands meet too."""


class Inference(Expressions):
    """One function, run once; functions inside of it too."""

    returns: Held | None = None
    end: Environment | None = None
    _loops = 0

    def __init__(self, world: World, cls: ast.ClassDef | None) -> None:
        super().__init__(world, cls)
        self._tests: dict[str, ast.expr] = {}
        self._left: list[Environment] = []
        """What holds where the loop that is run is left or begun again."""
        self._function: FunctionNode | None = None

    def run(self, function: FunctionNode, outer: Environment | None = None) -> None:
        self._function = function
        env = outer.copy() if outer is not None else Environment()
        for name, held in parameters_of(function, self.cls, self.world).items():
            env.values[name] = held
        self.end = self._block(function.body, env)

    def bind(self, target: ast.expr, held: Held, env: Environment) -> None:
        known = self._known_by(target.id, held) if isinstance(target, ast.Name) else held
        super().bind(target, known, env)

    def _known_by(self, name: str, held: Held) -> Held:
        """What is read of `pos = data.pos` is a tensor if the function uses `pos` as one; a tensor
        of which nothing else is known lies where the variable does that holds it."""
        is_part = bool(held.path and held.places)
        is_new = not (held.path or held.places) and held.moved is None
        is_computed = bool(held.places and not held.path) and held.moved is None
        if not (is_part or is_new or is_computed) or self._function is None:
            return held
        if is_computed and name not in self.world.tree.once(names_bound_once, self._function):
            return held  # another value of the name may be the tensor
        if held.what is What.UNKNOWN and name in self._used_as_tensors:
            held = replace(held, what=What.TENSOR)
        if is_computed:
            return held
        is_local = is_new and held.what is What.TENSOR
        return held.at(Place(Where.LOCAL, name)) if is_local else held

    @cached_property
    def _used_as_tensors(self) -> set[str]:
        return used_as_tensors(self._function, self.world) if self._function else set()

    @cached_property
    def shaped(self) -> Collection[str]:
        return with_a_shape(self._function, self.world) if self._function else frozenset()

    def _remember(self, name: str, value: ast.expr) -> None:
        self._tests.pop(name, None)
        if isinstance(value, _CONDITIONS):
            self._tests[name] = value

    def run_top(self, body: Sequence[ast.stmt]) -> None:
        self.end = self._block(body, Environment())

    def _block(self, statements: Sequence[ast.stmt], env: Environment | None) -> Environment | None:
        for statement in statements:
            if env is None:
                return None
            env = self._statement(statement, env)
        return env

    def _statement(self, node: ast.stmt, env: Environment) -> Environment | None:
        if isinstance(node, ast.Assign):
            held = self.value(node.value, env)
            for target in node.targets:
                if not self.bind_members(target, node.value, env):
                    self.bind(target, held, env)
                if isinstance(target, ast.Name):
                    self._remember(target.id, node.value)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self.bind(node.target, self.value(node.value, env), env)
        elif isinstance(node, ast.AugAssign):
            self._augmented(node, env)
        elif isinstance(node, ast.If):
            return self._if(node, env)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            return self._loop(node, env)
        elif isinstance(node, _TRY):
            return self._try(node, env)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            return self._with(node, env)
        elif isinstance(node, ast.Match):
            return self._match(node, env)
        elif isinstance(node, ast.Return):
            if node.value is not None:
                self._returned(self.value(node.value, env))
            return None
        elif isinstance(node, (ast.Continue, ast.Break)):
            self._left.append(env)
            return None
        elif isinstance(node, ast.Raise):
            return None
        elif isinstance(node, SCOPES):
            self._nested(node, env)
        elif isinstance(node, ast.Expr):
            self.value(node.value, env)
            self._moved_in_place(node.value, env)
        elif not isinstance(node, ast.ClassDef):
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    self.value(child, env)
        return env

    def _returned(self, held: Held) -> None:
        held = without_locals(held)
        self.returns = held if self.returns is None else join(self.returns, held)

    def _moved_in_place(self, call: ast.expr, env: Environment) -> None:
        """`net.cuda()` moves `net` itself if that is called somewhere: it is a module then."""
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return
        owner, after = call.func.value, self.seen.get(call, UNKNOWN_HELD)
        is_moved = call.func.attr in MOVES_OR_CASTS and is_put_somewhere(after)
        if (
            is_moved
            and isinstance(owner, (ast.Name, ast.Attribute))
            and self.world.is_called(owner)
        ):
            env.values[ast.unparse(owner)] = after

    def _nested(self, node: FunctionNode, env: Environment) -> None:
        inner = Inference(self.world, self.cls)
        inner.seen, inner.meetings = self.seen, self.meetings
        inner.run(node, env)
        env.values[node.name] = UNKNOWN_HELD

    def _augmented(self, node: ast.AugAssign, env: Environment) -> None:
        before, added = self.value(node.target, env), self.value(node.value, env)
        if before.what is What.BOX:
            return
        kept = before.what is What.TENSOR  # in place: the tensor stays where it is
        target = written(before) if kept else before
        operands, name = [target, added], type(node.op).__name__
        after = self.operate(node.value, name, operands, env, argument=_BESIDE_ITS_OWN)
        if isinstance(node.target, ast.Name):
            env.values[node.target.id] = before if kept else after

    # --- ways ----------------------------------------------------------------------------
    def _if(self, node: ast.If, env: Environment) -> Environment | None:
        self.value(node.test, env)
        test = self._named(node.test)
        condition = condition_of(test)
        yes, no = env.copy(), env.copy()
        narrow(test, True, yes, self.world)
        narrow(test, False, no, self.world)
        yes.conditions += (condition,)
        no.conditions += (opposite(condition),)
        about_devices = is_about_devices(test)
        self.meetings.quiet += about_devices
        after_yes, after_no = self._block(node.body, yes), self._block(node.orelse, no)
        self.meetings.quiet -= about_devices
        if about_devices and after_yes is not None and after_no is not None:
            return _after_device_test(env, after_yes, after_no)
        joined = join_environments(after_yes, after_no, condition)
        if joined is not None and after_yes is not None and after_no is not None:
            joined.conditions = env.conditions
            if self.cls is not None:
                keep_what_was_made(self.world.tree, self.cls, node, after_yes, joined)
        return joined

    def _named(self, test: ast.expr) -> ast.expr:
        """The condition that a name was given just for being asked."""
        return self._tests.get(test.id, test) if isinstance(test, ast.Name) else test

    def _loop(
        self, node: ast.For | ast.AsyncFor | ast.While, env: Environment
    ) -> Environment | None:
        self._loops += 1
        outside, self._left = self._left, []
        for _ in range(2 if self._loops <= _DEEPEST_LOOP else 1):
            inside = env.copy()
            if isinstance(node, ast.While):
                self.value(node.test, inside)
                narrow(node.test, True, inside, self.world)
            else:
                self.bind_elements(node.target, node.iter, inside)
            after = self._block(node.body, inside)
            for left in self._left:
                after = join_environments(after, left)
            self._left.clear()
            joined = join_environments(env, after)
            assert joined is not None
            joined.conditions = env.conditions
            env = joined
        self._loops -= 1
        self._left = outside
        return self._block(node.orelse, env)

    def _try(self, node: ast.stmt, env: Environment) -> Environment | None:
        assert isinstance(node, _TRY)
        before = env.copy()
        after = self._block(node.body, env)
        done = self._block(node.orelse, after) if after is not None else None
        for handler in node.handlers:
            entry = join_environments(before.copy(), after.copy() if after else None)
            done = join_environments(done, self._block(handler.body, entry or before.copy()))
        if not node.finalbody:
            return done
        final = self._block(node.finalbody, done if done is not None else before)
        return final if done is not None else None

    def _with(self, node: ast.With | ast.AsyncWith, env: Environment) -> Environment | None:
        before = env.ambient
        for item in node.items:
            held = self.value(item.context_expr, env)
            if held.what is What.DEVICE:
                env.ambient = held.places
            elif _may_change_the_default(item.context_expr):
                env.ambient = frozenset()
            if item.optional_vars is not None:
                self.bind(item.optional_vars, UNKNOWN_HELD, env)
        after = self._block(node.body, env)
        if after is not None:
            after.ambient = before
        return after

    def _match(self, node: ast.Match, env: Environment) -> Environment | None:
        self.value(node.subject, env)
        result: Environment | None = env.copy()
        for case in node.cases:
            inside = env.copy()
            for below in ast.walk(case.pattern):
                name = getattr(below, "name", None)
                if isinstance(name, str):
                    inside.values[name] = UNKNOWN_HELD
            after = self._block(case.body, inside)
            joined = join_environments(result, after)
            result = joined
        if result is not None:
            result.conditions = env.conditions
        return result


_CONTEXTS_THAT_KEEP = (
    "no_grad", "enable_grad", "inference_mode", "autocast", "record_function", "open",
    "set_grad_enabled", "catch_warnings", "profile", "nullcontext", "stream", "tqdm",
    "progress_bar", "sdpa_kernel", "range",
)  # fmt: skip


def _may_change_the_default(context: ast.expr) -> bool:
    """A context manager that is not known to leave the default device alone."""
    called = context.func if isinstance(context, ast.Call) else context
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return not name.endswith(_CONTEXTS_THAT_KEEP)


def _after_device_test(before: Environment, yes: Environment, no: Environment) -> Environment:
    """After `if x.device != y.device: x = x.to(...)` a tensor is where the branch put it."""
    joined = before.copy()
    for path in yes.values.differing(no.values):
        was = before.values.get(path)
        after = [env.values.get(path) for env in (yes, no)]
        changed = [each for each in after if each is not None and each != was]
        if not changed:
            continue
        one = changed[0] if len(changed) == 1 else join(*changed)
        sure = len(changed) == 1 or changed[0] == changed[1]
        joined.values[path] = one if sure else Held(one.what, rank=one.rank, cls=one.cls)
    return joined
