"""How code asks a device map for its devices."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeVar

from tensortrail.rules import Module
from tensortrail.rules.shared.functions import outermost_function
from tensortrail.rules.shared.objects import called, keyword, receiver
from tensortrail.rules.shared.origins import behind, text_behind

N = TypeVar("N", bound=ast.AST)


def entries_counted(module: Module) -> Iterator[tuple[ast.Compare, ast.expr]]:
    """`len(device_map.values()) > 1`, and the values it counts."""
    for test in _beside_values(module, ast.Compare):
        counted = _counted(module, test)
        if counted is not None and _one_of_map(module, counted) and _asks_for_one(module, test):
            yield test, counted


def arbitrary(module: Module) -> Iterator[ast.expr]:
    """`list(set(device_map.values()))[0]`, where the map may have several devices."""
    for element in _beside_values(module, ast.Subscript):
        constant = isinstance(element.slice, ast.Constant) and isinstance(element.slice.value, int)
        inner = _inside(behind(module, element.value), "list") if constant else None
        if _is_set_of_map(module, inner) and not _counts(module, element):
            yield element
    for call in module.calls("next"):
        inner = _inside(call.args[0], "iter") if call.args else None
        if _is_set_of_map(module, inner) and not _counts(module, call):
            yield call


def only_on_gpu(module: Module) -> Iterator[ast.expr]:
    """`next(d for d in device_map.values() if d not in ("cpu", "disk"))`, without a default."""
    for call in module.calls("next"):
        if (
            len(call.args) == 1
            and _takes_gpus(module, call.args[0])
            and not _ruled_out(module, call)
        ):
            yield call
    for element in _beside_values(module, ast.Subscript):
        first = module.value_of(element.slice).constant == 0
        if first and _takes_gpus(module, element.value) and not _ruled_out(module, element):
            yield element


def _beside_values(module: Module, kind: type[N]) -> Iterator[N]:
    """Nodes of functions that ask some mapping for its `values()`, nested ones with them."""
    functions = [outermost_function(module, call) for call in module.calls("values")]
    for function in dict.fromkeys(functions):
        yield from module.nodes(kind, function)


def _takes_gpus(module: Module, node: ast.expr) -> bool:
    """The devices of a map that are not the CPU."""
    taken = behind(module, node)
    if not isinstance(taken, (ast.GeneratorExp, ast.ListComp)) or len(taken.generators) > 1:
        return False
    loop = taken.generators[0]
    tests = [text_behind(module, each) for each in loop.ifs]
    left_out = any("cpu" in each and ("not in" in each or "!=" in each) for each in tests)
    return left_out and _one_of_map(module, loop.iter)


def _ruled_out(module: Module, node: ast.AST) -> bool:
    """A condition knows of the CPU or counts what is left, or what is raised is caught."""
    texts = [text_behind(module, guard.test) for guard in module.guards_of(node)]
    known = any(word in each for each in texts for word in ("cpu", "len(", "device_map", "values("))
    return known or any(isinstance(each, ast.Try) for each in module.ancestors(node))


def without_disk(module: Module) -> Iterator[tuple[ast.stmt, ast.Compare]]:
    """`devices = set(device_map.values()) - {"disk"}`, and the test that takes one for all."""
    for assign in _beside_values(module, ast.Assign):
        target, value = assign.targets[0], assign.value
        taken = behind(module, _inside(value, "list") or value)
        if not isinstance(target, ast.Name) or not _leaves_out_disk(module, taken):
            continue
        for test in module.later(assign, ast.Compare):
            counted = _counted(module, test)
            equal = isinstance(test.ops[0], ast.Eq) and _asks_for_one(module, test)
            if equal and isinstance(counted, ast.Name) and counted.id == target.id:
                yield assign, test
                break


def _leaves_out_disk(module: Module, node: ast.expr) -> bool:
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Sub):
        return False
    right = behind(module, node.right)
    members = right.elts if isinstance(right, ast.Set) else []
    return [module.value_of(each).constant for each in members] == ["disk"] and _is_set_of_map(
        module, node.left
    )


def _is_set_of_map(module: Module, node: ast.expr | None) -> bool:
    inner = _inside(behind(module, node), "set") if node is not None else None
    return inner is not None and _one_of_map(module, inner)


def _one_of_map(module: Module, node: ast.expr) -> bool:
    """`device_map.values()`."""
    node = behind(module, node)
    if not isinstance(node, ast.Call) or called(node) != "values" or node.args:
        return False
    owner = receiver(node)
    return owner is not None and _is_map(module, owner)


def _is_map(module: Module, owner: ast.expr) -> bool:
    """By its name or what it was made by, or because it is given to somebody as a device map."""
    if "device_map" in text_behind(module, owner):
        return True
    around = module.function_of(owner)
    given = [keyword(each, "device_map") for each in module.nodes(ast.Call, around)]
    given += [
        each.args[1] for each in module.calls("dispatch_model", inside=around) if each.args[1:]
    ]
    return any(each is not None and module.text(each) == module.text(owner) for each in given)


def _counted(module: Module, test: ast.Compare) -> ast.expr | None:
    """`X` of `len(X) == ...`."""
    return _inside(behind(module, test.left), "len") if len(test.ops) == 1 else None


def _counts(module: Module, node: ast.AST) -> bool:
    """A condition around it counts something: one device, most likely."""
    return any("len(" in text_behind(module, guard.test) for guard in module.guards_of(node))


def _asks_for_one(module: Module, test: ast.Compare) -> bool:
    return module.value_of(test.comparators[0]).constant == 1


def _inside(node: ast.expr | None, function: str) -> ast.expr | None:
    """`X` of `function(X)`."""
    if not isinstance(node, ast.Call) or called(node) != function or len(node.args) != 1:
        return None
    return node.args[0] if isinstance(node.func, ast.Name) else None
