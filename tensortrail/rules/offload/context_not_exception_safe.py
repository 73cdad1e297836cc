from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from tensortrail.findings import Finding, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Near, Rule

_STATE = re.compile(
    r"offload|onload|device|hook|\bforward\b|requires_grad|param|weight|placement|materiali[sz]e"
    r"|state_dict|\.data\b|_disabled|\.(to|cpu|cuda)\b",
    re.IGNORECASE,
)
_HARMLESS = re.compile(
    r"barrier|log|print|time|perf_counter|synchroni[sz]e|profil|record|report|assert|warn|progress"
    r"|elapsed|memory_allocated|memory_stats|memory_reserved|peak|tqdm|set_description|save|dump",
    re.IGNORECASE,
)


_THEN_MORE = re.compile(
    rb"([ \t]+)(?:\w+ = )?yield\b[^\n]*\n(?:[ \t]*(?:#[^\n]*)?\r?\n)*"
    rb"[ \t]+(?!finally|except|else|elif|@|def |async def |class )\S"
)


class ContextNotExceptionSafe(Rule):
    """A context manager restores device, offload or hook state only if its body does not fail.

    ## What it does
    Flags a `@contextmanager` function with a bare `yield` outside `try ... finally`, followed by
    statements that restore where things are: devices, offloading, hooks, a replaced `forward`.

    ## Why is this bad?
    An exception inside the `with` block is raised at the `yield`, and what follows never runs:
    the model stays onloaded (out of memory at the retry), or a global switch stays off for
    every later save.

    ## Example
    ```python
    @contextmanager
    def onloaded(module):
        module.to("cuda")
        yield
        module.to("cpu")
    ```
    Use instead:
    ```python
    @contextmanager
    def onloaded(module):
        module.to("cuda")
        try:
            yield
        finally:
            module.to("cpu")
    ```

    ## Fix safety
    Unsafe: what restores now also runs after a failure, with whatever state the failure left.

    ## References
    - vllm-project/compressed-tensors pull request 790
    - `contextlib.contextmanager`: "the generator is resumed by raising at the yield"
    """

    code = "OFF106"
    name = "context-not-exception-safe"
    severity = Severity.WARNING
    triggers = (Near("yield", _THEN_MORE, ("contextmanager",)),)

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
    )
    good = (
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
def nothing(device):
    yield device
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
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
        restoring = [each for each in following if _restores(module, each)]
        if not restoring:
            return
        direct = following[-1] in _block(module, statement)
        simple = isinstance(statement, ast.Expr) and direct and not _shared_names(following)
        yield self.finding(
            module,
            statement,
            f"if the `with` body raises, `{_first_line(module, restoring[0])}` never runs",
            trail=[(restoring[0], "this restores the state, only after a body that succeeded")],
            fixes=[module.wrap_in_try_finally(statement, following[-1], Safety.UNSAFE)]
            if simple
            else [],
        )


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
    """What runs after the yield: the rest of its block, else what follows a `with` around it."""
    block = _block(module, statement)
    rest = list(block[block.index(statement) + 1 :])
    parent = module.parent(statement)
    if not rest and isinstance(parent, (ast.With, ast.AsyncWith)):
        return _following(module, parent)
    return rest


def _restores(module: Module, statement: ast.stmt) -> bool:
    if isinstance(statement, (ast.Return, ast.Raise, ast.Pass, ast.Assert, ast.FunctionDef)):
        return False
    text = module.text(statement)
    if _HARMLESS.search(text):
        return False
    acts = isinstance(statement, (ast.Delete,)) or any(
        isinstance(each, (ast.Attribute, ast.Subscript)) and isinstance(each.ctx, ast.Store)
        for each in ast.walk(statement)
    )
    calls = [each.func for each in ast.walk(statement) if isinstance(each, ast.Call)]
    loops = [each.iter for each in ast.walk(statement) if isinstance(each, ast.For)]
    targets = [
        each
        for each in ast.walk(statement)
        if isinstance(each, (ast.Attribute, ast.Subscript)) and isinstance(each.ctx, ast.Store)
    ]
    said = " ".join(ast.unparse(each) for each in (*calls, *loops, *targets))
    return bool(acts or calls) and bool(_STATE.search(said))


def _shared_names(following: Sequence[ast.stmt]) -> bool:
    """A return among what follows would change meaning inside `finally`."""
    return any(isinstance(each, ast.Return) for node in following for each in ast.walk(node))


def _first_line(module: Module, node: ast.AST) -> str:
    return module.text(node).split("\n")[0]
