from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Bad, Good, Kind, Module, Rule
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called, receiver

_STORAGES = ("untyped_storage", "storage", "untyped")
_GEOMETRY = ("stride", "storage_offset", "as_strided", "numel", "view_as", "reshape", "view")
_MAKES = ("empty", "tensor", "new_empty", "new_tensor")


class StorageRebuildIgnoresGeometry(Rule):
    """A tensor is rebuilt from a storage without its offset, size and stride.

    ## What it does
    Reports `tensor.set_(storage)` with the storage alone, where the tensor stands for another one
    that may have a shape or an offset.

    Reported as a note: `torch.tensor(view.storage())`.

    Not reported: functions that handle strides or offsets themselves; a new and empty storage,
    which frees the memory of the tensor.

    ## Why is this bad?
    The shape is lost, and a view starts at the start of the storage instead of its own offset: it
    reads and writes what belongs to other tensors. With the storage alone, `set_` makes a 1-dim
    tensor over all of it.

    ## Fix safety
    No fix is offered: the new storage may need another offset.

    ## References
    - vllm-project/compressed-tensors #567: `set_` with a shared storage alone flattened the weight
    - pytorch/pytorch documentation of `torch.Tensor.set_`
    """

    code = "STO204"
    name = "storage-rebuild-ignores-geometry"
    since = "0.2.0"
    severity = Severity.ERROR
    warns = False
    errors_as = Severity.NOTE
    triggers = (("set_", "torage"), ("torch.tensor", "torage"), ("tensor(", "torage"))

    bad = (
        Bad(
            """\
import torch

def receive(tensor, handle):
    shared = torch.empty_like(tensor)
    shared.set_(torch.UntypedStorage._new_shared_filename_cpu(*handle))
    return shared
""",
            lines=(5,),
            instead="""\
import torch

def receive(tensor, storage):
    shared = torch.empty_like(tensor)
    shared.set_(storage, tensor.storage_offset(), tensor.size(), tensor.stride())
    return shared
""",
        ),
        Bad(
            """\
import torch

def typed(bucket, dtype):
    storage = bucket.data.storage().untyped()
    buffer = torch.tensor(storage, dtype=dtype, device=bucket.device)
    return buffer[: bucket.data.shape[0]]
""",
            lines=(5,),
        ),
    )
    good = (
        Good(
            """\
import torch

def same_memory(view):
    other = torch.empty_like(view)
    other.set_(view.untyped_storage(), view.storage_offset(), view.size(), view.stride())
    return other
"""
        ),
        Good(
            """\
import torch

def flat(source):
    meta = (source.size(), source.stride(), source.storage_offset())
    whole = torch.empty(0, dtype=source.dtype).set_(source.untyped_storage())
    return whole, meta
"""
        ),
        Good(
            """\
import torch

def bytes_of(source):
    return torch.empty(0, dtype=torch.uint8).set_(source.untyped_storage())
"""
        ),
        Good(
            """\
def keep_for(stream, value):
    whole = value.new_empty([0]).set_(value.untyped_storage())
    whole.record_stream(stream)
"""
        ),
        Good(
            """\
import torch

def swap(tensor, other):
    tensor.set_(other)
"""
        ),
        Good(
            """\
import torch

def free(tensor):
    tensor.set_(torch.UntypedStorage())
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for call in module.calls("set_"):
            subject = receiver(call)
            alone = len(call.args) == 1 and not call.keywords
            if subject is None or not alone or not _is_storage(module, call.args[0]):
                continue
            if _is_empty(module, subject) or _is_let_go_of(module, call.args[0]):
                continue
            if not _knows_geometry(module, call):
                yield self._found(module, call, f"`{module.text(subject)}`")
        for call in module.calls("torch.tensor"):
            if call.args and _is_storage(module, call.args[0]) and not _offset(module, call):
                yield self._found(module, call, "the tensor", Severity.NOTE)

    def _found(
        self, module: Module, call: ast.Call, what: str, severity: Severity | None = None
    ) -> Finding:
        return self.finding(
            module,
            call,
            f"{what} gets the storage alone: it starts at its first element and has one dimension, "
            "whatever offset and shape belong to it",
            severity=severity,
        )


def _is_storage(module: Module, node: ast.expr) -> bool:
    if module.kind_of(node) is Kind.STORAGE:
        return True
    return any(
        isinstance(each, ast.Call)
        and (called(each) in _STORAGES or "UntypedStorage" in module.qualified(each.func))
        for each in (node, *module.value_of(node).origins)
    )


def _is_empty(module: Module, subject: ast.expr) -> bool:
    """`torch.empty(0, ...)`: a flat alias of a whole storage is what is wanted."""
    for each in (subject, *module.value_of(subject).origins):
        if isinstance(each, ast.Call) and called(each) in _MAKES and each.args:
            size = each.args[0]
            fixed = isinstance(module.value_of(size).constant, int)
            if fixed or isinstance(size, (ast.Constant, ast.List, ast.Tuple)):
                return True
    return False


def _is_let_go_of(module: Module, storage: ast.expr) -> bool:
    """`UntypedStorage()`, which is empty: the tensor frees its memory and is nothing after it."""
    return any(
        isinstance(each, ast.Call)
        and not (each.args or each.keywords)
        and module.qualified(each.func).endswith("UntypedStorage")
        for each in (storage, *module.value_of(storage).origins)
    )


def _knows_geometry(module: Module, call: ast.Call) -> bool:
    return any(called(each) in _GEOMETRY for each in _calls_around(module, call))


def _offset(module: Module, call: ast.Call) -> bool:
    """The function reads an offset by itself."""
    function = module.function_of(call)
    read = (each.attr for each in module.nodes(ast.Attribute, function))
    named = (each.id for each in module.nodes(ast.Name, function))
    return any("offset" in each or each == "as_strided" for each in (*read, *named))


def _calls_around(module: Module, call: ast.Call) -> Iterator[ast.Call]:
    yield from module.nodes(ast.Call, module.function_of(call))
