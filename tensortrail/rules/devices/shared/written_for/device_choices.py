"""Conditions that choose between devices."""

from __future__ import annotations

import ast

from tensortrail.patterns import pattern
from tensortrail.rules.shared.functions import names_of_parameters
from tensortrail.rules.view import FunctionNode
from tensortrail.rules.words import Guard

_ELSEWHERE = pattern(r"numpy|\bnp\b|onnx|export|trac|script|jit|test|debug|training|lazy")
"""Words of conditions under which code runs on the CPU, or not at all on tensors."""
_OF_GPUS = pattern(r"cuda|gpu")
_OF_OTHERS = pattern(r"cpu|device|meta|trac|proxy|jit|\bnot\b|!=")


def is_choice(condition: str, function: FunctionNode) -> bool:
    """The condition is a setting of the caller or of the object, such as `not normalize` or
    `self.mode == 'add'`: both branches run somewhere, and neither knows of devices."""
    try:
        test = ast.parse(condition, mode="eval").body
    except SyntaxError:  # the opposite of what is no test, as in `not x := f()`
        return False
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = test.operand
    if isinstance(test, ast.Compare) and isinstance(test.comparators[0], ast.Constant):
        if test.comparators[0].value is None or not isinstance(test.ops[0], (ast.Eq, ast.NotEq)):
            return False
        test = test.left
    own = isinstance(test, ast.Attribute) and getattr(test.value, "id", "") == "self"
    given = isinstance(test, ast.Name) and test.id in names_of_parameters(function)
    return (own or given) and not _ELSEWHERE.search(condition)


def leads_to_a_gpu(guard: Guard) -> bool:
    """`if self.use_gpu:`, and no word of other devices in the condition."""
    return guard.holds and bool(_OF_GPUS.search(guard.text)) and not _OF_OTHERS.search(guard.text)
