"""Functions and methods that are named where their answer is meant: `if cuda.is_available:`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.rules.devices.shared.moves.dropped_on_purpose import is_provoked
from tensortrail.rules.shared.functions import is_property
from tensortrail.rules.shared.given_devices import said_device
from tensortrail.rules.shared.imports import imported_packages
from tensortrail.rules.shared.moves import MOVES
from tensortrail.rules.shared.objects import called, is_called, receiver
from tensortrail.rules.view import Module
from tensortrail.rules.words import Kind

_QUESTION = re.compile(
    r"torch(\.\w+)*\.(is_available|is_initialized|is_built|is_bf16_supported|is_nccl_available"
    r"|is_gloo_available|is_scripting|is_tracing|is_compiling|is_grad_enabled)"
)
_ABOUT_THE_GROUP = re.compile(r"torch\.distributed\.is_(available|initialized)")
_NEED_A_GROUP = (".DistributedSampler", ".DistributedDataParallel", ".FullyShardedDataParallel")
_FLAGS = frozenset("pin_memory non_blocking enabled use_cuda use_gpu cuda gpu use_amp".split())
_SKIPS = frozenset(
    "pytest.mark.skipif pytest.mark.xfail unittest.skipIf unittest.skipUnless".split()
)
_GIVE_A_DEVICE = frozenset({"torch.cuda.current_device", "torch.get_default_device"})
_JOBS = re.compile(
    r"torch\.(cuda|xpu|mps|npu)\.(empty_cache|synchronize|reset_\w+_stats|ipc_collect)"
)
STEPS = frozenset("eval train zero_grad backward step share_memory".split())
"""Methods of models, losses and optimizers that do something, and are asked for nothing."""
_TELL = STEPS | {"parameters", "state_dict", "load_state_dict"}
_SETTINGS = re.compile(r"(^|[._])(args|opts?|cfg|conf\w*|settings|params|hparams|flags)$")


def questions_taken_for_answers(module: Module) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Functions of torch that answer yes or no, and where each is taken for its answer."""
    names: list[ast.Attribute | ast.Name] = [*module.nodes(ast.Attribute), *module.nodes(ast.Name)]
    for node in names:
        if not isinstance(node.ctx, ast.Load) or not _QUESTION.fullmatch(module.qualified(node)):
            continue
        if isinstance(node, ast.Name) and _is_bound_inside(module, node):
            continue
        place = node if is_condition(module, node) else _condition_by_name(module, node)
        if place is not None and not _asked_beside(module, node):
            yield node, place


def _is_bound_inside(module: Module, node: ast.Name) -> bool:
    """A function around it has an argument or a variable of that name."""
    function = module.function_of(node)
    while function is not None:
        given = any(each.arg == node.id for each in module.nodes(ast.arg, function))
        if given or any(
            each.id == node.id and isinstance(each.ctx, ast.Store)
            for each in module.nodes(ast.Name, function)
        ):
            return True
        function = module.function_of(function)
    return False


def is_answered_beside(module: Module, node: ast.expr) -> bool:
    """`dist.is_initialized and isinstance(sampler, DistributedSampler)`: nothing is one without a
    process group, so that the answer is yes wherever the rest holds."""
    up = module.parent(node)
    return (
        _ABOUT_THE_GROUP.fullmatch(module.qualified(node)) is not None
        and isinstance(up, ast.BoolOp)
        and isinstance(up.op, ast.And)
        and any(_needs_a_group(module, each) for each in up.values)
    )


def _needs_a_group(module: Module, test: ast.expr) -> bool:
    match test:
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, kind]):
            return module.qualified(kind).endswith(_NEED_A_GROUP)
    return False


def devices_not_asked_for(module: Module) -> Iterator[ast.expr]:
    """`torch.cuda.current_device` where a device is needed: as `device=`, in `.to(...)`, and as
    one of two choices of which the other is a device."""
    for node in module.nodes(ast.Attribute):
        if module.qualified(node) not in _GIVE_A_DEVICE or is_called(module, node):
            continue
        above = module.parent(node)
        if isinstance(above, ast.IfExp) and above.test is not node:
            other = above.orelse if above.body is node else above.body
            meant = module.value_of(other).is_only(Kind.DEVICE, Kind.DEVICE_STRING)
            if meant and not is_called(module, above):
                yield node
        elif any(
            said_device(module, each) is node
            for each in module.ancestors(node)
            if isinstance(each, ast.Call)
        ):
            yield node


def is_condition(module: Module, node: ast.expr) -> bool:
    """Only whether the value is true is asked of it, or it stands for a flag."""
    up = module.parent(node)
    if isinstance(up, (ast.If, ast.While, ast.IfExp, ast.Assert)):
        return up.test is node
    if isinstance(up, ast.BoolOp):
        if up.values[-1] is not node or isinstance(up.op, ast.And):
            return True
        return is_condition(module, up)
    if isinstance(up, ast.Compare):
        return is_compared_with_bool(up)
    if isinstance(up, ast.keyword):
        return up.arg in _FLAGS
    if isinstance(up, ast.Call):
        return node in up.args[:1] and module.qualified(up.func) in _SKIPS | {"bool"}
    return (isinstance(up, ast.UnaryOp) and isinstance(up.op, ast.Not)) or (
        isinstance(up, ast.comprehension) and node in up.ifs
    )


def is_compared_with_bool(compare: ast.Compare) -> bool:
    return any(
        isinstance(each, ast.Constant) and isinstance(each.value, bool)
        for each in (compare.left, *compare.comparators)
    )


def _condition_by_name(module: Module, node: ast.expr) -> ast.expr | None:
    """`gpu = torch.cuda.is_available`: where `gpu` is a condition, if it is never called."""
    stored = module.parent(node)
    if not isinstance(stored, ast.Assign) or len(stored.targets) != 1:
        return None
    name, around = module.text(stored.targets[0]), module.function_of(node)
    if not isinstance(stored.targets[0], (ast.Name, ast.Attribute)):
        return None
    named = [*module.nodes(ast.Name, around), *module.nodes(ast.Attribute, around)]
    reads = [
        each
        for each in named
        if isinstance(each, (ast.Name, ast.Attribute))
        and isinstance(each.ctx, ast.Load)
        and module.text(each) == name
    ]
    if any(is_called(module, each) for each in reads):
        return None
    return next((each for each in reads if is_condition(module, each)), None)


def _asked_beside(module: Module, node: ast.expr) -> bool:
    """`torch.xpu.is_available and torch.xpu.is_available()`: the first asks if there is such a
    function."""
    text = module.text(node)
    whole = next((up for up in module.ancestors(node) if isinstance(up, ast.stmt)), None)
    return whole is not None and any(
        module.text(call.func) == text for call in module.nodes(ast.Call, whole)
    )


def moves_not_made(module: Module) -> Iterator[ast.Attribute]:
    """`model.cuda` as a statement, `x = x.cuda`, `x = x.cuda if gpu else x`; and
    `torch.cuda.empty_cache` or `model.eval` as a statement."""
    for node in module.nodes(ast.Attribute):
        statement = module.parent(node)
        if isinstance(statement, ast.Expr):
            job = _JOBS.fullmatch(module.qualified(node))
            meant = job or _is_move(module, node) or _is_step(module, node)
            if meant and not is_provoked(module, statement):
                yield node
        elif _is_move(module, node) and _is_stored_as_itself(module, node):
            yield node


def _is_move(module: Module, node: ast.Attribute) -> bool:
    if node.attr not in MOVES or _SETTINGS.search(module.text(node.value).lower()):
        return False
    first = module.qualified(node).partition(".")[0]
    return first not in _imported(module) and not _is_no_method(module, node)


def _is_no_method(module: Module, node: ast.Attribute) -> bool:
    """Its class keeps something else under that name, or computes it when the name is read."""
    cls = module.value_of(node.value).cls
    facts = module.class_facts(cls) if cls else None
    if facts is None:
        return False
    return node.attr in facts.fields or node.attr in (module.about(cls, _properties) or ())


def _properties(module: Module, cls: ast.AST) -> frozenset[str]:
    return frozenset(each.name for each in module.nodes(ast.FunctionDef, cls) if is_property(each))


def _is_step(module: Module, node: ast.Attribute) -> bool:
    """`model.eval` of a module, or of what is called or asked as one in the same function."""
    if node.attr not in STEPS or _SETTINGS.search(module.text(node.value).lower()):
        return False
    if module.qualified(node).partition(".")[0] in _imported(module):
        return False
    if module.value_of(node.value).may_be(Kind.MODULE, Kind.TENSOR):
        return True
    owner, around = module.text(node.value), module.function_of(node)
    return any(
        module.text(each.func) == owner
        or (called(each) in _TELL and module.text(receiver(each) or each) == owner)
        for each in module.nodes(ast.Call, around)
    )


def _imported(module: Module) -> set[str]:
    names = {each.name for node in module.nodes(ast.ImportFrom) for each in node.names}
    return imported_packages(module) | names


def _is_stored_as_itself(module: Module, node: ast.Attribute) -> bool:
    """`x = x.cuda`, also as one of two choices of which the other is `x` itself."""
    owner, up = module.text(node.value), module.parent(node)
    if isinstance(up, ast.IfExp):
        other = up.orelse if up.body is node else up.body
        return up.test is not node and module.text(other) == owner
    return isinstance(up, ast.Assign) and any(module.text(each) == owner for each in up.targets)
