"""The same code in another function, in a method, or in none."""

from __future__ import annotations

import ast

from tensortrail.rules.shared.functions import parameters
from tensortrail.rules.shared.objects import names_in
from tensortrail.testing.paraphrases.rewriting import (
    FunctionNode,
    Rewrite,
    functions_of,
    is_generator,
    of_tree,
)


def _into_helper(tree: ast.Module) -> None:
    """`def f(x): ...` hands everything on to `def f_of(x): ...`."""
    for function in functions_of(tree):
        if is_generator(function) or function.args.vararg or function.args.kwarg:
            continue
        if isinstance(function, ast.AsyncFunctionDef) or "locals" in names_in(function):
            continue
        given = [each.arg for each in parameters(function)]
        plain = ast.arguments([], parameters(function), None, [], [], None, [])
        helper = ast.FunctionDef(f"{function.name}_of", plain, function.body, [], function.returns)
        handed = ast.Call(
            ast.Name(helper.name, ast.Load()), [ast.Name(name, ast.Load()) for name in given], []
        )
        function.body = [ast.Return(handed)]
        tree.body.insert(tree.body.index(function), helper)


def _into_method(tree: ast.Module) -> None:
    """The functions of the file become methods of one class."""
    moved = functions_of(tree)
    if not moved:
        return
    names = {each.name for each in moved}
    for function in moved:
        function.args.args.insert(0, ast.arg("self"))

    class Called(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            if node.id not in names or not isinstance(node.ctx, ast.Load):
                return node
            made = ast.Call(ast.Name("Holder", ast.Load()), [], [])
            return ast.Attribute(made, node.id, ast.Load())

    Called().visit(tree)
    at = tree.body.index(moved[0])
    tree.body[:] = [each for each in tree.body if each not in moved]
    tree.body.insert(at, ast.ClassDef("Holder", [], [], list(moved), []))


def _to_the_top(tree: ast.Module) -> None:
    """The body of a function runs where the file does."""
    for function in functions_of(tree):
        if not _is_straight(function) or function.name in names_in(tree):
            continue
        given: list[ast.stmt] = []
        for each in parameters(function):
            asked = ast.Call(ast.Name("given", ast.Load()), [ast.Constant(each.arg)], [])
            target = ast.Name(each.arg, ast.Store())
            given.append(
                ast.AnnAssign(target, each.annotation, asked, 1)
                if each.annotation is not None
                else ast.Assign([target], asked)
            )
        last = function.body[-1]
        rest = function.body
        if isinstance(last, ast.Return):
            result = ast.Assign([ast.Name("result", ast.Store())], last.value or ast.Constant(None))
            rest = [*function.body[:-1], result]
        at = tree.body.index(function)
        tree.body[at : at + 1] = [*given, *rest]
        return


def _is_straight(function: FunctionNode) -> bool:
    """It returns at its end or not at all, and is an ordinary function."""
    if isinstance(function, ast.AsyncFunctionDef) or is_generator(function):
        return False
    if function.args.vararg or function.args.kwarg or "locals" in names_in(function):
        return False
    returns = [each for each in ast.walk(function) if isinstance(each, (ast.Return, ast.Global))]
    return not returns or returns == [function.body[-1]]


REWRITES: dict[str, Rewrite] = {
    "helper function": of_tree(_into_helper),
    "method": of_tree(_into_method),
    "module level": of_tree(_to_the_top),
}
