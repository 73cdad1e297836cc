from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shared.sentences import one_line

_SIZE = re.compile(r"(^|_|\.)(size|shape|sizes)$")


class EmptySizeIsASize(Rule):
    """An empty size is taken for "no size given", though `()` is the size of a scalar.

    ## What it does
    Flags `size if len(size) > 0 else tensor.size()`, `size or tensor.shape` and the like, where
    the other choice is the size of a tensor.

    ## Why is this bad?
    `tensor.new_empty(())` asks for one element. It gets a tensor of the size of `tensor`: a
    staged scalar becomes a copy of the whole weight, and the copy into it fails or broadcasts.

    ## Example
    ```python
    size = size if len(size) > 0 else tensor.size()
    ```
    Use instead:
    ```python
    size = tensor.size() if size is None else size
    ```

    ## Fix safety
    Unsafe: where callers passed `()` to say "the same size", they now get a scalar.

    ## References
    - review of NVIDIA/TransformerEngine pull request 2721
    """

    code = "NEW302"
    name = "empty-size-is-a-size"
    severity = Severity.WARNING
    triggers = ("size", "shape")
    shape = (
        re.compile(rb"if len\((\w+\.)?\w*(size|shape|sizes)\)( > 0| != 0)? else"),
        re.compile(rb"size or [\w.\[\]]+\.(size\(|shape)"),
        re.compile(rb"shape or [\w.\[\]]+\.(size\(|shape)"),
        re.compile(rb"if \w*(size|shape|sizes) else"),
        re.compile(rb"if not \w*(size|shape|sizes):"),
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
        Good("def f(path, size=0):\n    return size or path.size\n"),
        Good("def f(q, shape):\n    return q.reshape(shape) if len(shape) > 2 else q\n"),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for choice in module.nodes(ast.IfExp):
            size = _non_empty_test(choice.test)
            if size is None or module.text(choice.body) != module.text(size):
                continue
            if _is_size(module, size) and _size_of_tensor(choice.orelse):
                yield self._flagged(module, choice, size, choice.orelse)
        for either in module.nodes(ast.BoolOp):
            if isinstance(either.op, ast.Or) and len(either.values) == 2:
                size, other = either.values
                if _is_size(module, size) and _size_of_tensor(other):
                    yield self._flagged(module, either, size, other)
        for statement in module.nodes(ast.If):
            yield from self._filled_in(module, statement)

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
        test = statement.test
        if not (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)):
            return
        size = test.operand
        if len(statement.body) != 1 or not isinstance(statement.body[0], ast.Assign):
            return
        filled = statement.body[0]
        if module.text(filled.targets[0]) != module.text(size):
            return
        if _is_size(module, size) and _size_of_tensor(filled.value):
            name = module.text(size)
            yield self.finding(
                module,
                test,
                f"`{name}` may be `()`, the size of a scalar, and is then replaced by "
                f"`{one_line(module, filled.value)}`",
                confidence=Confidence.MEDIUM,
                trail=[(filled, "the size of the other tensor")],
                fixes=[self._asked_for_none(module, test, f"{name} is None")],
            )

    def _asked_for_none(self, module: Module, node: ast.expr, text: str) -> Fix | None:
        return module.fix("ask for None instead", Safety.UNSAFE, module.replace(node, text))


def _non_empty_test(test: ast.expr) -> ast.expr | None:
    """`x` of `len(x) > 0`, `len(x)`, `len(x) != 0` and plain `x`."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        right = test.comparators[0]
        if not (isinstance(right, ast.Constant) and right.value == 0):
            return None
        if not isinstance(test.ops[0], (ast.Gt, ast.NotEq)):
            return None
        test = test.left
        if not isinstance(test, ast.Call):
            return None
    if isinstance(test, ast.Call):
        is_len = isinstance(test.func, ast.Name) and test.func.id == "len" and len(test.args) == 1
        return test.args[0] if is_len else None
    return test if isinstance(test, (ast.Name, ast.Attribute)) else None


def _is_size(module: Module, node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and bool(_SIZE.search(node.id))


def _size_of_tensor(node: ast.expr) -> bool:
    """`t.size()` or `t.shape`, whole."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr == "size" and not node.args
    return isinstance(node, ast.Attribute) and node.attr == "shape"
