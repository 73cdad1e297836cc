"""What is computed on the device in a round of a loop."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from tensortrail.rules.shared.called_modules import is_a_module
from tensortrail.rules.shared.given_devices import said_device
from tensortrail.rules.shared.moves import TO_DEVICE
from tensortrail.rules.shared.objects import called, given, receiver
from tensortrail.rules.shared.parts_moved import is_to_a_device
from tensortrail.rules.view import Module

_LEAVES = frozenset(
    "cpu numpy item tolist size dim numel nelement element_size get_device data_ptr".split()
)
"""Methods whose result is not on the device."""
_NO_TENSOR = frozenset("shape device dtype ndim requires_grad grad_fn layout names".split())


def _bound(assign: ast.Assign) -> Iterator[tuple[str, ast.expr]]:
    """Each name with its value; the parts of a value that is not written as a tuple have its."""
    value = assign.value
    for target in assign.targets:
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        apart = isinstance(value, ast.Tuple) and isinstance(target, ast.Tuple)
        values = value.elts if apart and isinstance(value, ast.Tuple) else [value] * len(names)
        for name, each in zip(names, values, strict=False):
            if isinstance(name, ast.Name):
                yield name.id, each


class OnDevice:
    """Which expressions of a round lie on the device, as they are computed from moved parts."""

    def __init__(
        self,
        module: Module,
        scope: ast.AST,
        filled: Collection[str] = (),
        since: tuple[int, int] = (0, 0),
    ) -> None:
        """`filled` are lists whose members are on the device, from that position on."""
        self._module = module
        self._at: dict[str, list[tuple[tuple[int, int], bool]]] = {
            name: [(since, True)] for name in filled
        }
        for assign in module.nodes(ast.Assign, scope):
            at = (assign.lineno, assign.col_offset)
            for name, value in _bound(assign):
                self._at.setdefault(name, []).append((at, self.holds(value)))

    def holds(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            here = self._module.statement_of(node)
            before = (here.lineno, here.col_offset)
            known = [each for each in self._at.get(node.id, ()) if each[0] < before]
            return bool(known) and max(known, key=lambda each: each[0])[1]
        if isinstance(node, ast.Attribute):
            return node.attr not in _NO_TENSOR and self.holds(node.value)
        if isinstance(node, ast.Subscript):
            return self.holds(node.value)
        if isinstance(node, ast.UnaryOp):
            return self.holds(node.operand)
        if isinstance(node, ast.BinOp):
            return self.holds(node.left) or self.holds(node.right)
        if isinstance(node, ast.Compare):
            return self.holds(node.left) or any(map(self.holds, node.comparators))
        if isinstance(node, ast.DictComp):
            return self.holds(node.value)
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            return self.holds(node.elt)
        return isinstance(node, ast.Call) and self._is_given(node)

    def _is_given(self, call: ast.Call) -> bool:
        if called(call) in TO_DEVICE and is_to_a_device(self._module, call):
            return True
        owner = receiver(call)
        if owner is not None and self.holds(owner):
            return called(call) not in (*_LEAVES, "to") or _is_cast(self._module, call)
        unpacked = [each.value for each in call.keywords if each.arg is None]
        return keeps_device(self._module, call) and any(map(self.holds, given(call) + unpacked))


def _is_cast(module: Module, call: ast.Call) -> bool:
    """`.to(torch.float32)` leaves the tensor where it is."""
    return called(call) == "to" and said_device(module, call) is None


def keeps_device(module: Module, call: ast.Call) -> bool:
    """A function of torch, or a module: it answers where its input is."""
    return module.qualified(call.func).startswith("torch.") or is_a_module(module, call.func)
