"""What code around a comparison tells of its sides, and what hangs on it."""

from __future__ import annotations

import ast

from tensortrail.findings import Severity
from tensortrail.rules import Kind, Module, Value
from tensortrail.rules.devices.shared.named.asked_of_meta import is_nothing_on_meta
from tensortrail.rules.devices.shared.named.device_names_held import is_named_too
from tensortrail.rules.devices.shared.named.only_moves import always_moves, only_loads
from tensortrail.rules.devices.shared.named.switched_off import is_switched
from tensortrail.rules.shared.sentences import only_logs


def is_told_a_device(module: Module, value: Value) -> bool:
    """More than a parameter's name says that it may be one: where one branch stores a string and
    another such a parameter, only the string is known."""
    if not (value.sure and value.may_be(Kind.DEVICE)):
        return False
    stored = [module.value_of(each) for each in value.origins if isinstance(each, ast.expr)]
    devices = [each for each in stored if each.may_be(Kind.DEVICE)]
    return not devices or any(each.sure for each in devices)


def how_bad(
    module: Module, node: ast.expr, device: ast.expr, names: list[ast.expr], certain: bool
) -> Severity:
    if always_moves(module, node) or is_named_too(module, device) or is_switched(module, node):
        return Severity.NOTE
    if only_loads(module, node):
        return Severity.NOTE
    if only_decides_words(module, node) or is_nothing_on_meta(module, node, names):
        return Severity.NOTE
    return Severity.ERROR if certain else Severity.WARNING


def only_decides_words(module: Module, node: ast.expr) -> bool:
    """Whether a warning is said hangs on it, and nothing else."""
    statement = module.statement_of(node)
    return isinstance(statement, ast.If) and all(
        only_logs(each) for each in (*statement.body, *statement.orelse)
    )


def asked_as_a_device_too(module: Module, node: ast.expr, device: ast.expr) -> bool:
    """`d != "cpu" and d != torch.device("cpu")` has both forms in mind."""
    around = module.parent(node)
    if not isinstance(around, ast.BoolOp):
        return False
    shown = module.text(device)
    negated = isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.NotEq, ast.NotIn))
    either = isinstance(around.op, ast.And if negated else ast.Or)
    return any(
        (
            isinstance(each, ast.Compare)
            and module.text(each.left) == shown
            and module.kind_of(each.comparators[0]) is Kind.DEVICE
        )
        or (either and each is not node and _asks_for_type(module, each, shown))
        for each in around.values
    )


def _asks_for_type(module: Module, condition: ast.expr, shown: str) -> bool:
    return any(
        each.attr == "type" and module.text(each.value) == shown
        for each in module.nodes(ast.Attribute, condition)
    )


def refuses_every_device(module: Module, node: ast.expr, device: ast.expr) -> bool:
    """`d != "cuda" or (isinstance(d, torch.device) and ...)` is true for each torch.device."""
    around = module.parent(node)
    unequal = isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.NotEq)
    if not (unequal and isinstance(around, ast.BoolOp) and isinstance(around.op, ast.Or)):
        return False
    shown = module.text(device)
    return any(
        call.args and module.text(call.args[0]) == shown and "device" in module.text(call.args[-1])
        for call in module.calls("isinstance", inside=around)
    )
