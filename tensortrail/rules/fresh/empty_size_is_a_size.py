from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Fix, Safety, Severity
from tensortrail.patterns import pattern
from tensortrail.rules import Bad, Branch, Good, Module, Rule
from tensortrail.rules.fresh._sizes import empty_test, filling, is_size, non_empty_test
from tensortrail.rules.shared.sentences import one_line

_WHOLE = rb"[\w.\[\]]+\.(size\(\s*\)|shape\b)"


class EmptySizeIsASize(Rule):
    """An empty size is treated as "no size given", though `()` is the size of a scalar.

    ## What it does
    Reports, as a note, `size if len(size) > 0 else tensor.size()`, `size or tensor.shape` and the
    like, where the other choice is the size of a tensor.

    ## Why is this bad?
    `tensor.new_empty(())` returns a tensor of the size of `tensor` instead of one element: a staged
    scalar becomes a copy of the whole weight, and the copy into it fails or broadcasts.

    ## Fix safety
    Unsafe: callers that passed `()` for "the same size" get a scalar.

    ## References
    - review of NVIDIA/TransformerEngine pull request 2721
    """

    code = "NEW302"
    name = "empty-size-is-a-size"
    since = "0.2.0"
    severity = Severity.NOTE
    warns = False
    triggers = ("size", "shape")
    shape = (
        pattern(rb"if [^=]{1,120}?\belse[\s\\(]+" + _WHOLE),
        pattern(rb"or[\s\\(]+" + _WHOLE),
        pattern(rb"=[\s(]*" + _WHOLE + rb"\s*\)?\s*(?:[#;\n]|$)"),
        pattern(rb"return[\s(]+" + _WHOLE + rb"\s*\)?\s*(?:[#;\n]|$)"),
    )

    bad = (
        Bad(
            """\
def new_empty(tensor, size):
    size = size if len(size) > 0 else tensor.size()
    return make(size)
""",
            lines=(2,),
            fixed="""\
def new_empty(tensor, size):
    size = size if size is not None else tensor.size()
    return make(size)
""",
        ),
        Bad(
            """\
def make_like(tensor, shape=None):
    return build(shape or tensor.shape)
""",
            lines=(2,),
            fixed="""\
def make_like(tensor, shape=None):
    return build(shape if shape is not None else tensor.shape)
""",
        ),
        Bad(
            """\
def make_like(tensor, size=None):
    if not size:
        size = tensor.size()
    return build(size)
""",
            lines=(2,),
            fixed="""\
def make_like(tensor, size=None):
    if size is None:
        size = tensor.size()
    return build(size)
""",
        ),
    )
    good = (
        Good("def f(t, size=None):\n    return t.size() if size is None else size\n"),
        Good("def f(t, size):\n    return size if size is not None else t.shape\n"),
        Good("def f(window, size=None):\n    return size or 256\n"),
        Good("def f(pg, world_size=None):\n    return world_size or pg.size()\n"),
        Good("def f(pg, size: int | None = None):\n    return size or pg.size()\n"),
        Good(
            "from backend import hvd\n\ndef f(global_size=None):\n"
            "    return global_size or hvd.size()\n"
        ),
        Good("def f(path, size=0):\n    return size or path.size\n"),
        Good("def f(q, shape):\n    return q.reshape(shape) if len(shape) > 2 else q\n"),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for choice in module.nodes(ast.IfExp):
            size = non_empty_test(choice.test)
            if size is None or module.text(choice.body) != module.text(size):
                continue
            if is_size(module, size, choice.orelse):
                yield self._flagged(module, choice, size, choice.orelse)
        for either in module.nodes(ast.BoolOp):
            if isinstance(either.op, ast.Or) and len(either.values) == 2:
                size, other = either.values
                if is_size(module, size, other):
                    yield self._flagged(module, either, size, other)
        told = set()
        for statement in module.nodes(ast.If):
            for found in self._filled_in(module, statement):
                told.add(statement)
                yield found
        for place in filling(module):
            for branch in module.branches(place):
                if branch.node not in told:
                    yield from self._filled_in_branch(module, branch)

    def _flagged(self, module: Module, node: ast.expr, size: ast.expr, other: ast.expr) -> Finding:
        name, instead = module.text(size), module.text(other)
        return self.finding(
            module,
            node,
            f"`{name}` may be `()`, the size of a scalar, and is then replaced by `{instead}`",
            confidence=Confidence.MEDIUM,
            fixes=[
                self._asked_for_none(module, node, f"{name} if {name} is not None else {instead}")
            ],
        )

    def _filled_in(self, module: Module, statement: ast.If) -> Iterator[Finding]:
        """`if not size: size = t.size()`, and with the branches the other way round."""
        empty = empty_test(statement.test)
        size = empty if empty is not None else non_empty_test(statement.test)
        branch = statement.body if empty is not None else statement.orelse
        if size is None or len(branch) != 1 or not isinstance(branch[0], ast.Assign):
            return
        filled = branch[0]
        if module.text(filled.targets[0]) != module.text(size):
            return
        if is_size(module, size, filled.value):
            name, test = module.text(size), statement.test
            asked = f"{name} is None" if empty is not None else f"{name} is not None"
            yield self.finding(
                module,
                test,
                f"`{name}` may be `()`, the size of a scalar, and is then replaced by "
                f"`{one_line(module, filled.value)}`",
                confidence=Confidence.MEDIUM,
                trail=[(filled, "the size of the other tensor")],
                fixes=[self._asked_for_none(module, test, asked)],
            )

    def _filled_in_branch(self, module: Module, branch: Branch) -> Iterator[Finding]:
        """The same where the condition has a name, or is a `match`."""
        filled = branch.body[0] if len(branch.body) == 1 else None
        if not isinstance(filled, ast.Assign) or len(branch.guards) > 2:
            return
        for guard in branch.guards:
            empty = empty_test(guard.test) if guard.holds else non_empty_test(guard.test)
            if empty is None or module.text(filled.targets[0]) != module.text(empty):
                continue
            if is_size(module, empty, filled.value):
                yield self.finding(
                    module,
                    guard.test,
                    f"`{module.text(empty)}` may be `()`, the size of a scalar, and is then "
                    f"replaced by `{one_line(module, filled.value)}`",
                    confidence=Confidence.MEDIUM,
                )
                return

    def _asked_for_none(self, module: Module, node: ast.expr, text: str) -> Fix | None:
        return module.fix("test for None instead", Safety.UNSAFE, module.replace(node, text))
