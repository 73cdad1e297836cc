"""Where numpy reads a tensor without being asked for by name, and what is one for sure."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tensortrail.rules.places import Place, What, Where
from tensortrail.rules.shared.given_devices import said_device
from tensortrail.rules.shared.imports import imported_packages
from tensortrail.rules.shared.moves import TO_DEVICE
from tensortrail.rules.shared.objects import called, is_called_on, receiver
from tensortrail.rules.shared.tensor_methods import ONLY_TENSORS
from tensortrail.rules.shared.tensor_origin import origin_of
from tensortrail.rules.view import Module
from tensortrail.rules.words import Guard, Kind

_DEPTH = 8
_OTHERS = frozenset({"paddle", "tensorflow", "mindspore", "jax", "mxnet", "oneflow"})
_ARRAYS = tuple(
    f"numpy.{each}"
    for each in "array asarray ascontiguousarray isnan isinf isfinite sqrt exp log log2 log10 "
    "unique allclose isclose savetxt linalg.norm linalg.inv linalg.svd linalg.eig".split()
)
_PAIRS = (
    *("numpy.save", "numpy.dot", "numpy.matmul"),
    *(
        f"sklearn.metrics.{each}"
        for each in "accuracy_score f1_score precision_score recall_score roc_auc_score "
        "average_precision_score confusion_matrix balanced_accuracy_score classification_report "
        "mean_squared_error mean_absolute_error r2_score roc_curve".split()
    ),
)
"""Read two arguments so, or the second one."""
_JOINS = tuple(
    f"numpy.{each}"
    for each in "concatenate stack vstack hstack array asarray mean sum median std".split()
)
"""Read each tensor of a list."""
_PLOTTED = "plot scatter hist imshow bar semilogy".split()
_PLOTS = tuple(f"matplotlib.pyplot.{each}" for each in _PLOTTED)
_AXES = frozenset({"subplots", "subplot", "add_subplot", "gca", "axes", "add_axes"})
"""What gives the axes that are plotted on."""


def read_by_numpy(module: Module) -> Iterator[tuple[ast.Call, ast.expr]]:
    """`np.array(x)`, `plt.plot(x)`: the call, and what it reads by numpy."""
    for call in module.calls(*_ARRAYS):
        yield from ((call, each) for each in call.args[:1])
    for call in module.calls(*_PAIRS):
        yield from ((call, each) for each in call.args[:2])
    for call in module.calls(*_PLOTS):
        yield from ((call, each) for each in call.args)
    for call in module.calls(*_PLOTTED):
        if _is_on_axes(module, call):
            yield from ((call, each) for each in call.args)
    for call in module.calls(*_JOINS):
        yield from ((call, each) for each in _appended(module, call))


def _is_on_axes(module: Module, call: ast.Call) -> bool:
    """`ax.plot(x)`, after `figure, ax = plt.subplots()`."""
    owner = receiver(call)
    while isinstance(owner, ast.Subscript):
        owner = owner.value
    origins = module.value_of(owner).origins if isinstance(owner, ast.Name) else ()
    return any(isinstance(each, ast.Call) and called(each) in _AXES for each in origins)


def _appended(module: Module, join: ast.Call) -> Sequence[ast.expr]:
    """What was put into the list that `np.concatenate(rows)` takes."""
    rows, function = module.argument(join, 0, "arrays"), module.function_of(join)
    if not isinstance(rows, ast.Name):
        return ()
    adding = module.calls("append", "extend", "insert", inside=function)
    adds = [each for each in adding if is_called_on(each, rows.id)]
    only = all(called(each) == "append" and len(each.args) == 1 for each in adds)
    return [each.args[0] for each in adds][:1] if only and len(adds) == 1 else ()


def is_surely_a_tensor(module: Module, node: ast.expr, depth: int = _DEPTH) -> bool:
    """Not what an unknown function may have given: a method of tensors or a module made it."""
    function = module.function_of(node)
    held = module.places(function or module.top).seen.get(node)
    if module.value_of(node).is_tensor or (held is not None and held.what is What.TENSOR):
        return True
    if isinstance(node, ast.Name) and depth:
        origins = module.value_of(node).origins
        return bool(origins) and all(is_surely_a_tensor(module, e, depth - 1) for e in origins)
    if not isinstance(node, ast.Call):
        return False
    of_tensors = isinstance(node.func, ast.Attribute) and called(node) in ONLY_TENSORS | {"softmax"}
    return of_tensors or module.kind_of(node.func) is Kind.MODULE


def is_moved_here(node: ast.expr) -> bool:
    """`x.to(device).data`: whoever writes `.numpy()` behind that may know that it is the CPU."""
    owner = receiver(node) if isinstance(node, ast.Call) else None
    if isinstance(node, ast.Call) and called(node) in TO_DEVICE:
        return owner is not None
    if isinstance(node, ast.Attribute):
        owner = node.value
    return owner is not None and is_moved_here(owner)


def is_always_on_cpu(module: Module, tensor: ast.expr) -> bool:
    """Every caller in the file brings the argument to the CPU."""
    given, function = origin_of(module, tensor).node, module.function_of(tensor)
    if function is None or not isinstance(given, ast.Name):
        return False
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    if given.id not in names:
        return False
    at = names.index(given.id) - (names[0] in ("self", "cls"))
    calls = list(module.calls(function.name))
    passed = [module.argument(each, at, given.id) for each in calls]
    return bool(passed) and all(
        each is not None and module.text(each).endswith((".cpu()", 'to("cpu")')) for each in passed
    )


def inferred_place(module: Module, tensor: ast.expr) -> Place | None:
    """The device that is a value in the code, on which the tensor lies on every path."""
    held = module.places(module.function_of(tensor) or module.top).seen.get(tensor)
    place = held.only if held is not None and held.what is What.TENSOR else None
    if place is None or place.where is not Where.DEVICE or place.given:
        return None
    if not place.subject.replace(".", "").isidentifier():
        return None  # a default of another file
    said = said_device(module, place.by) if isinstance(place.by, ast.Call) else None
    names = [each for each in module.uses(place.subject) if isinstance(each.ctx, ast.Load)]
    known = [module.value_of(each).constant for each in (said, *names) if each is not None]
    return None if "cpu" in known else place


def starts_with(tensor: ast.expr, name: str) -> bool:
    """`state.detach()` of `state`: the tensor as it was given, and nothing computed from it."""
    while isinstance(tensor, (ast.Attribute, ast.Call, ast.Subscript)):
        tensor = tensor.func if isinstance(tensor, ast.Call) else tensor.value
    return isinstance(tensor, ast.Name) and tensor.id == name


def _is_of_another_class(module: Module, guard: Guard, shown: str) -> bool:
    """`isinstance(x, warp.array)` holds: what another library calls `numpy` may bring it over."""
    test = guard.test
    if not guard.holds or not isinstance(test, ast.Call) or len(test.args) != 2:
        return False
    if module.qualified(test.func) != "isinstance" or module.text(test.args[0]) != shown:
        return False
    library, dot, _ = module.qualified(test.args[1]).partition(".")
    return bool(dot) and library not in ("torch", module.name.partition(".")[0])


def is_of_another_library(module: Module) -> bool:
    """The file imports a library whose tensors give numpy a copy, and not torch: by itself, or
    through the project, as in `from net.lazy import tensorflow`."""
    handed_on = {each.name for node in module.nodes(ast.ImportFrom) for each in node.names}
    imported = imported_packages(module) | handed_on
    return "torch" not in imported and not imported.isdisjoint(_OTHERS)


def is_decided(module: Module, node: ast.AST) -> bool:
    """A condition around it asks for a device, or says that it is of another library."""
    guards = module.guards_of(node)
    owner = receiver(node) if isinstance(node, ast.Call) else None
    shown = module.text(owner) if owner is not None else ""
    return any(
        each.mentions("cpu", "cuda", "device") or _is_of_another_class(module, each, shown)
        for each in guards
    )
