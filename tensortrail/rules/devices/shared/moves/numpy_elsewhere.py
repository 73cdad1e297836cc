"""Tensors that `.numpy()` is asked of, and that lie where a model or their own object was moved."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.devices.shared.modules.kept_where_made import keeps_where_made
from tensortrail.rules.devices.shared.moves.numpy_reads import is_moved_here, is_surely_a_tensor
from tensortrail.rules.devices.shared.named.devices_said import device_read
from tensortrail.rules.places import ON_CPU_UNLESS_ASKED, What
from tensortrail.rules.shared.given_devices import said_device
from tensortrail.rules.shared.moves import MOVES, TO_DEVICE, moves_to_cpu
from tensortrail.rules.shared.objects import is_called_on, is_self, names_in
from tensortrail.rules.shared.tensor_origin import origin_of
from tensortrail.rules.shared.who_decides import Decides
from tensortrail.rules.view import FunctionNode, Module
from tensortrail.rules.words import Kind


def is_callers(module: Module, tensor: ast.expr) -> bool:
    """An argument or what a module computed, in a file that knows of devices."""
    decides = origin_of(module, tensor).decides
    if decides not in (Decides.GIVEN, Decides.OWN):
        return False
    if decides is Decides.OWN and _is_never_moved(module, tensor):
        return False
    words = ("cuda", "device")
    return any(node.attr in words for node in module.nodes(ast.Attribute)) or any(
        said_device(module, call) is not None for call in module.nodes(ast.Call)
    )


def lies_elsewhere(module: Module, tensor: ast.expr) -> str | None:
    """Who decides where the tensor is, if it may be a GPU: to follow "it is"."""
    if is_moved_here(tensor) or _is_on_the_cpu(module, tensor) or _is_never_moved(module, tensor):
        return None
    function, chain = module.function_of(tensor), _chain(tensor)
    if _is_left_of_a_batch(module, chain[-1]):
        return None
    used = module.may_use_gpu() or module.is_for_users(tensor)
    if not used and not any(device_read(module, function or module.top)):
        return None
    mover = _mover(module, chain)
    if mover is not None:
        return f"where `{mover}` put it"
    has_graph = any(_leaves_its_graph(module, each) for each in chain)
    if not has_graph or _is_a_leaf(module, chain[-1]) or _brings_a_model_back(module, tensor):
        return None
    return "where the model that computed it is"


def _is_a_leaf(module: Module, root: ast.expr) -> bool:
    """The code asks for its gradient (`x.requires_grad_()`): no model computed it."""
    asked = module.calls("requires_grad_", inside=module.function_of(root) or module.top)
    return isinstance(root, ast.Name) and any(is_called_on(each, root.id) for each in asked)


def _is_never_moved(module: Module, tensor: ast.expr) -> bool:
    function = module.function_of(tensor)
    return function is not None and keeps_where_made(module, function)


def _chain(tensor: ast.expr) -> list[ast.expr]:
    """`x.a.detach()[0]` from its end to `x`."""
    found = [tensor]
    while isinstance(tensor, (ast.Attribute, ast.Call, ast.Subscript)):
        tensor = tensor.func if isinstance(tensor, ast.Call) else tensor.value
        found.append(tensor)
    return found


def _is_left_of_a_batch(module: Module, root: ast.expr) -> bool:
    """`labels` of `rows, labels = batch`, whose rows are moved and whose labels are not."""
    function = module.function_of(root)
    if not isinstance(root, ast.Name) or function is None:
        return False
    moves = (each for each in module.calls(*TO_DEVICE, inside=function))
    moved = {module.text(each.func.value) for each in moves if isinstance(each.func, ast.Attribute)}
    batches = (names_in(each) for each in _unpacked(module, function))
    return root.id not in moved and any(
        root.id in names and not names.isdisjoint(moved) for names in batches
    )


def _unpacked(module: Module, function: FunctionNode) -> Iterator[ast.expr]:
    """The targets of what a loop over a loader gives, at once or by a name."""
    yield from (each.target for each in module.nodes(ast.For, function))
    for assign in module.nodes(ast.Assign, function):
        if isinstance(assign.value, ast.Name):
            yield from (each for each in assign.targets if isinstance(each, ast.Tuple))


def _leaves_its_graph(module: Module, node: ast.expr) -> bool:
    """`x.detach`, and `x.data` of what is a tensor."""
    if not isinstance(node, ast.Attribute):
        return False
    return node.attr == "detach" or (node.attr == "data" and is_surely_a_tensor(module, node.value))


def _is_on_the_cpu(module: Module, tensor: ast.expr) -> bool:
    """Something in its chain is known to lie there, or to be no tensor of torch."""
    seen = module.places(module.function_of(tensor) or module.top).seen
    if any(module.placement_at(each).device == "cpu" for each in _chain(tensor)):
        return True
    for each in _chain(tensor):
        held = seen.get(each)
        if held is None:
            continue
        if held.what in (What.NUMBER, What.NONE):
            return True
        if any(p.where in ON_CPU_UNLESS_ASKED or p.subject == "cpu" for p in held.places):
            return True
    return False


def _mover(module: Module, chain: list[ast.expr]) -> str | None:
    """`Graph.to` of `self.edges`, in a method of a class that has its own move; modules are not
    meant, which move what is registered."""
    cls = module.class_of(chain[0])
    facts = module.class_facts(cls) if cls is not None else None
    if cls is None or facts is None or facts.is_module or not is_self(chain[-1]):
        return None
    own = [each.name for each in cls.body if isinstance(each, ast.FunctionDef)]
    around = module.function_of(chain[0])
    name = next((each for each in ("to", "cuda") if each in own), None)
    asks = around is not None and around.name in MOVES
    return None if name is None or asks or len(chain) < 2 else f"{cls.name}.{name}"


def _brings_a_model_back(module: Module, tensor: ast.expr) -> bool:
    """`model.cpu()` in the same function."""
    function = module.function_of(tensor)
    return any(
        moves_to_cpu(module, call)
        and (
            isinstance(module.parent(call), ast.Expr)
            or (
                isinstance(call.func, ast.Attribute)
                and module.kind_of(call.func.value) is Kind.MODULE
            )
        )
        for call in module.calls("cpu", "to", inside=function)
    )
