"""Types said in another way than by an annotation."""

from __future__ import annotations

import ast

from tensortrail.rules.shared.functions import parameters
from tensortrail.testing.paraphrases.rewriting import FUNCTIONS, Rewrite, after_docstring, of_tree


def _assert_instead(tree: ast.Module) -> None:
    """`def f(x: C)` -> `assert isinstance(x, C)` first in the body."""
    for function in ast.walk(tree):
        if not isinstance(function, FUNCTIONS):
            continue
        asked: list[ast.stmt] = []
        for each in parameters(function):
            if isinstance(each.annotation, (ast.Name, ast.Attribute)):
                called = ast.Name("isinstance", ast.Load())
                subject = ast.Name(each.arg, ast.Load())
                asked.append(ast.Assert(ast.Call(called, [subject, each.annotation], []), None))
                each.annotation = None
        at = after_docstring(function.body)
        function.body[at:at] = asked


def _use_instead(tree: ast.Module) -> None:
    """`def f(x: torch.Tensor)` -> `x = x.contiguous()` first in the body: no annotation at all."""
    for function in ast.walk(tree):
        if not isinstance(function, FUNCTIONS):
            continue
        used: list[ast.stmt] = []
        for each in parameters(function):
            if each.annotation is not None and ast.unparse(each.annotation) == "torch.Tensor":
                method = ast.Attribute(ast.Name(each.arg, ast.Load()), "is_contiguous", ast.Load())
                used.append(ast.Assert(ast.Call(method, [], []), None))
                each.annotation = None
        at = after_docstring(function.body)
        function.body[at:at] = used


def _as_text(tree: ast.Module) -> None:
    """`def f(x: C)` -> `def f(x: "C")`."""
    for function in ast.walk(tree):
        if isinstance(function, FUNCTIONS):
            for each in parameters(function):
                if each.annotation is not None and not isinstance(each.annotation, ast.Constant):
                    each.annotation = ast.Constant(ast.unparse(each.annotation))


REWRITES: dict[str, Rewrite] = {
    "annotation to assertion": of_tree(_assert_instead),
    "annotation to use": of_tree(_use_instead),
    "annotation as text": of_tree(_as_text),
}
