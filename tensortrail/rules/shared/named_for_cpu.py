"""Tensors that are meant for the CPU, as the name says that they are bound to."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.rules.view import Module

# Nothing but the name tells a tensor that shall stay on the CPU from one that was forgotten there.
_SAYS = re.compile(r"(^|_)(cpu|host)(_|\b)")


def is_named_for_the_cpu(module: Module, call: ast.AST) -> bool:
    """`lengths_cpu = torch.ones(2)`, `Batch(lengths_host=torch.tensor(lengths))`."""
    return any(_SAYS.search(each) for each in _names(module, call))


def _names(module: Module, call: ast.AST) -> Iterator[str]:
    for above in module.ancestors(call):
        if isinstance(above, ast.keyword):
            yield above.arg or ""
        if isinstance(above, ast.Assign):
            yield from (module.text(each).rpartition(".")[2] for each in above.targets)
        elif isinstance(above, ast.AnnAssign):
            yield module.text(above.target).rpartition(".")[2]
        if isinstance(above, ast.stmt):
            return
