from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.offload._restoring import (
    is_set_back,
    is_switch_of_file,
    is_work,
    left_undone,
    restores,
)
from tensortrail.rules.offload._who_goes_on import somebody_goes_on
from tensortrail.rules.shared.in_tests import in_tests


class ContextNotExceptionSafe(Rule):
    """A context manager restores device, offload or hook state only if its body succeeds.

    ## What it does
    Reports a `@contextmanager` function with a bare `yield` outside `try ... finally`, if the
    statements after it restore devices, offloading, hooks or a replaced `forward`.

    Reported as a note: other state that was saved before the `yield` and is set back after it,
    global names of the file, and a project that never catches exceptions of the body, because its
    run then ends. In an installed package, state is only reported if it outlives the call: a model,
    an object that is passed in, a list or dict of the file, the environment. Classes that run in
    Ray are reported in full, because their actor continues after an exception.

    ## Why is this bad?
    After an exception inside the `with` block, the model stays onloaded (out of memory at the
    retry), or a global switch stays off for every later save. The exception is raised at the
    `yield`, and what follows never runs.

    ## Fix safety
    Unsafe: the restoring code also runs after a failure, with the state that the failure left.
    Offered where all of it directly follows the `yield` and does nothing else.

    ## References
    - vllm-project/compressed-tensors pull request 790
    - `contextlib.contextmanager`: "the generator is resumed by raising at the yield"
    """

    code = "OFF106"
    name = "context-not-exception-safe"
    since = "0.2.0"
    severity = Severity.WARNING
    triggers = (("contextmanager", "yield"),)

    bad = (
        Bad(
            """\
from contextlib import contextmanager

@contextmanager
def offloading_disabled(cache):
    before = cache.offloading_disabled
    cache.offloading_disabled = True
    yield
    cache.offloading_disabled = before
""",
            lines=(7,),
            fixed="""\
from contextlib import contextmanager

@contextmanager
def offloading_disabled(cache):
    before = cache.offloading_disabled
    cache.offloading_disabled = True
    try:
        yield
    finally:
        cache.offloading_disabled = before
""",
        ),
        Bad(
            """\
import contextlib

@contextlib.contextmanager
def suspend_offloading(model):
    info = {}
    for name, module in model.named_modules():
        info[name] = remove_offload(module)

    yield

    for name, module in model.named_modules():
        offload_module(module, *info[name])
""",
            lines=(9,),
            fixed="""\
import contextlib

@contextlib.contextmanager
def suspend_offloading(model):
    info = {}
    for name, module in model.named_modules():
        info[name] = remove_offload(module)

    try:
        yield
    finally:
        for name, module in model.named_modules():
            offload_module(module, *info[name])
""",
        ),
        Bad(
            """\
from contextlib import contextmanager

_hooks_enabled = True

@contextmanager
def without_hooks():
    global _hooks_enabled
    _hooks_enabled = False
    yield
    _hooks_enabled = True
""",
            lines=(9,),
            fixed="""\
from contextlib import contextmanager

_hooks_enabled = True

@contextmanager
def without_hooks():
    global _hooks_enabled
    _hooks_enabled = False
    try:
        yield
    finally:
        _hooks_enabled = True
""",
        ),
        Bad(
            """\
from contextlib import contextmanager

@contextmanager
def captured(graph, device_stream):
    before = current_stream()
    set_device_stream(device_stream)
    yield
    graph.replay()
    set_device_stream(before)
""",
            lines=(7,),
        ),
        Bad(
            """\
from contextlib import contextmanager

@contextmanager
def choosing(choices):
    before = choices.open
    choices.open = True
    yield
    choices.open = before
""",
            lines=(7,),
            fixed="""\
from contextlib import contextmanager

@contextmanager
def choosing(choices):
    before = choices.open
    choices.open = True
    try:
        yield
    finally:
        choices.open = before
""",
        ),
    )
    good = (
        Good(
            """\
from contextlib import contextmanager
import gc
import torch

@contextmanager
def less_memory(device):
    yield
    if device and torch.cuda.is_available():
        gc.collect()
        torch.cuda.empty_cache()
"""
        ),
        Good(
            """\
from contextlib import contextmanager

@contextmanager
def onloaded(module):
    module.to("cuda")
    try:
        yield
    finally:
        module.to("cpu")
"""
        ),
        Good(
            """\
from contextlib import contextmanager

@contextmanager
def rank_zero_first(fabric):
    if fabric.rank > 0:
        fabric.barrier()
    yield
    if fabric.rank == 0:
        fabric.barrier()
"""
        ),
        Good(
            """\
from contextlib import contextmanager

@contextmanager
def timed(device):
    start = time.perf_counter()
    yield
    print(device, time.perf_counter() - start)
"""
        ),
        Good(
            """\
from contextlib import contextmanager

@contextmanager
def unchanged(model):
    before = total(model.state_dict())
    yield
    after = total(model.state_dict())
    if before != after:
        raise ValueError(model)
"""
        ),
        Good(
            """\
from contextlib import contextmanager

@contextmanager
def nothing(device):
    yield device
"""
        ),
        Good(
            """\
from contextlib import contextmanager

@contextmanager
def recorded(self):
    self.sizes = []
    yield
    if self.step % 8 == 0:
        self.offload_ratio = min(1.0, self.offload_ratio + 0.1)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for function in module.nodes(ast.FunctionDef):
            if not any(
                module.qualified(each).rpartition(".")[2].endswith("contextmanager")
                for each in function.decorator_list
            ):
                continue
            for node in module.nodes(ast.Yield, function):
                if module.function_of(node) is function:
                    yield from self._unprotected(module, node)

    def _unprotected(self, module: Module, node: ast.Yield) -> Iterator[Finding]:
        statement = module.statement_of(node)
        if _is_protected(module, statement):
            return
        following = _following(module, statement)
        restoring = [each for each in following if restores(module, each)]
        if not restoring:
            yield from self._saved(module, node, statement, following)
            return
        yield self.finding(
            module,
            statement,
            f"if the `with` body raises, {left_undone(module, restoring[0])}",
            severity=Severity.NOTE
            if all(is_switch_of_file(module, each) for each in restoring)
            or not somebody_goes_on(module, node)
            else None,
            trail=[
                (restoring[0], "the state is restored here, but only if the body does not raise")
            ],
            fixes=[self._in_finally(module, statement, following, restoring)],
        )

    def _saved(
        self, module: Module, node: ast.Yield, statement: ast.stmt, following: Sequence[ast.stmt]
    ) -> Iterator[Finding]:
        """State of another sort that was saved before, and is set back after."""
        back = [each for each in following if is_set_back(module, node, each)]
        if back:
            yield self.finding(
                module,
                statement,
                f"if the `with` body raises, {left_undone(module, back[0])}",
                severity=Severity.NOTE,
                trail=[
                    (back[0], "the state is restored here, but only if the body does not raise")
                ],
                fixes=[self._in_finally(module, statement, following, back)],
            )

    def _in_finally(
        self,
        module: Module,
        statement: ast.stmt,
        following: Sequence[ast.stmt],
        restoring: Sequence[ast.stmt],
    ) -> Fix | None:
        """What restores goes into `finally`, and never the work that follows or stands between."""
        direct = isinstance(statement, ast.Expr) and following[-1] in _block(module, statement)
        first = list(following[: len(restoring)])
        if not direct or first != list(restoring) or any(is_work(each) for each in restoring):
            return None
        return module.wrap_in_try_finally(statement, restoring[-1], Safety.UNSAFE)


def _is_protected(module: Module, statement: ast.stmt) -> bool:
    child: ast.AST = statement
    for up in module.ancestors(statement):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        if isinstance(up, ast.Try) and child in up.body and (up.finalbody or up.handlers):
            return True
        child = up
    return False


def _block(module: Module, statement: ast.stmt) -> Sequence[ast.stmt]:
    parent = module.parent(statement)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, [])
        if isinstance(block, list) and statement in block:
            return block
    return [statement]


def _following(module: Module, statement: ast.stmt) -> list[ast.stmt]:
    """What runs after the yield: the rest of its block, and of the blocks that end with it."""
    block = _block(module, statement)
    rest = list(block[block.index(statement) + 1 :])
    parent = module.parent(statement)
    if not rest and isinstance(parent, (ast.With, ast.AsyncWith, ast.If)):
        return _following(module, parent)
    return rest
