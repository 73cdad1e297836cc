from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Near, Rule

_WORK = re.compile(
    r"(^|_)(revert|convert|conversion|compile|interpret|onload|offload|offloaded|save|quantize|"
    r"dequantize|refit|materialize|shard|shards|load_state_dict|build_serialized_network)(_|$)"
)
_CLAIMS = re.compile(r"because|due to|not support|unsupported|could not|try |failed to", re.I)
_LOGS = frozenset({"error", "warning", "warn", "exception", "info", "debug", "critical", "print"})


_BROAD = rb"\s+except(?: \(?(?:Exception|BaseException)\)?)?(?: as \w+)?:[^\n]*\n"
_RAISES = re.compile(
    _BROAD + rb"(?:[^\n]*\n){0,8}?\s*raise \w+[\w.]*\((?:[^\n]*\n){0,6}?[^\n]*"
    rb"(?i:because|due to|not support|unsupported|could not|try |failed to)"
)
_LOGGED = re.compile(
    rb"\s+try:[^\n]*\n(?:[^\n]*\n){0,14}?[^\n]*(?:revert|convert|conversion|compile|interpret|load|"
    rb"save|quantize|refit|materialize|shard|build_serialized)\w*\([\s\S]*?"
    + _BROAD
    + rb"\s*(?:#[^\n]*\n\s*)*[\w.]*"
    rb"(?:error|warning|warn|exception|info|debug|critical|print)\("
)
_LONGEST = 1500
"""Bytes of a `try` that the triggers can see whole."""


class CauseHidden(Rule):
    """A broad `except` around conversion, compiling or saving hides what went wrong.

    ## What it does
    Flags `except Exception` around work that converts, moves, compiles or saves weights, when
    the handler raises a fixed explanation without the exception it caught, or only logs and lets
    the code go on to use a name that the failed `try` never bound.

    ## Why is this bad?
    The message names one cause and the real one is another: users change shard sizes for a
    `ValueError` in a line of bookkeeping. Where the code goes on, it fails later with an
    `UnboundLocalError` that says nothing of the device mismatch behind it.

    ## Example
    ```python
    try:
        shard = revert_weight_conversion(model, shard)
    except Exception:
        raise RuntimeError("could not revert: the group is split over files")
    ```
    Use instead:
    ```python
    try:
        shard = revert_weight_conversion(model, shard)
    except Exception as error:
        raise RuntimeError("could not revert: is the group split over files?") from error
    ```

    ## Fix safety
    Safe: `from error` only sets the cause that is shown. Where the code goes on after logging
    no fix is offered.

    ## References
    - huggingface/transformers issue 47333
    - pytorch/TensorRT pull request 4089
    """

    code = "SHD404"
    name = "cause-hidden"
    severity = Severity.WARNING
    triggers = (Near("except", _RAISES), Near("try:", _LOGGED, ("except",)))

    bad = (
        Bad(
            """\
def save(model, shard):
    try:
        shard = revert_weight_conversion(model, shard)
    except Exception:
        raise RuntimeError("We could not revert some conversions because of offloading.")
    return shard
""",
            lines=(5,),
            fixed="""\
def save(model, shard):
    try:
        shard = revert_weight_conversion(model, shard)
    except Exception as error:
        raise RuntimeError("We could not revert some conversions because of offloading.") from error
    return shard
""",
        ),
        Bad(
            """\
def build(module, settings):
    try:
        result = interpret_module(module, settings)
    except Exception as e:
        logger.error("got an error: %s", e)
    return result.engine
""",
            lines=(4,),
        ),
    )
    good = (
        Good(
            """\
def save(model, shard):
    try:
        shard = revert_weight_conversion(model, shard)
    except Exception as e:
        raise RuntimeError("could not revert because of offloading") from e
"""
        ),
        Good(
            """\
def save(model, shard):
    try:
        shard = revert_weight_conversion(model, shard)
    except Exception as e:
        raise RuntimeError(f"could not revert: {e}")
"""
        ),
        Good(
            """\
def load():
    try:
        import convert_weights
    except Exception:
        raise RuntimeError("convert_weights is not installed, try pip")
"""
        ),
        Good(
            """\
def build(module):
    result = None
    try:
        result = interpret_module(module)
    except Exception as e:
        logger.error(e)
    return result
"""
        ),
        Good(
            """\
def build(module):
    try:
        result = interpret_module(module)
    except Exception as e:
        logger.error(e)
        return None
    return result
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for tried in module.nodes(ast.Try):
            work = _work_in(module, tried)
            if work is None or module.function_of(tried) is None:
                continue
            for handler in tried.handlers:
                if _is_broad(handler):
                    yield from self._other_cause(module, work, handler)
                    yield from self._goes_on(module, tried, work, handler)

    def _other_cause(
        self, module: Module, work: ast.Call, handler: ast.ExceptHandler
    ) -> Iterator[Finding]:
        for statement in handler.body:
            if not isinstance(statement, ast.Raise) or statement.cause is not None:
                continue
            raised = statement.exc
            if not isinstance(raised, ast.Call) or _uses(raised, handler.name):
                continue
            text = " ".join(
                each.value
                for each in ast.walk(raised)
                if isinstance(each, ast.Constant) and isinstance(each.value, str)
            )
            if not _CLAIMS.search(text) or _uses_anywhere(handler, statement):
                continue
            yield self.finding(
                module,
                statement,
                f"whatever fails in `{module.text(work.func)}` is told as this one cause",
                trail=[(work, "the work that may fail for any reason")],
                fixes=[self._chained(module, handler, statement)],
            )

    def _chained(
        self, module: Module, handler: ast.ExceptHandler, statement: ast.Raise
    ) -> Fix | None:
        name = handler.name or "error"
        edits = [module.insert_after(statement, f" from {name}")]
        if handler.name is None and handler.type is not None:
            edits.append(module.insert_after(handler.type, f" as {name}"))
        elif handler.type is None:
            return None
        return module.fix("keep the cause", Safety.SAFE, *edits)

    def _goes_on(
        self, module: Module, tried: ast.Try, work: ast.Call, handler: ast.ExceptHandler
    ) -> Iterator[Finding]:
        if len(module.text(tried)) > _LONGEST:
            return
        if not all(_only_logs(statement) for statement in handler.body):
            return
        bound = _bound_by(tried.body) - _bound_before(module, tried)
        missing = next(
            (
                name
                for name in module.later(tried, ast.Name)
                if name.id in bound and isinstance(name.ctx, ast.Load)
            ),
            None,
        )
        if missing is None or _bound_again(module, tried, missing):
            return
        yield self.finding(
            module,
            handler,
            f"after a failure of `{module.text(work.func)}` the code goes on, and "
            f"`{missing.id}` is not bound",
            severity=Severity.ERROR,
            trail=[
                (work, "the work that may fail"),
                (missing, f"`{missing.id}` is used here: UnboundLocalError hides the cause"),
            ],
        )


def _work_in(module: Module, tried: ast.Try) -> ast.Call | None:
    for statement in tried.body:
        for call in module.nodes(ast.Call, statement):
            name = module.qualified(call.func).rpartition(".")[2]
            if isinstance(call.func, ast.Attribute):
                name = call.func.attr
            if _WORK.search(name) and not module.qualified(call.func).startswith("re."):
                return call
    return None


def _is_broad(handler: ast.ExceptHandler) -> bool:
    kind = handler.type
    return kind is None or (
        isinstance(kind, ast.Name) and kind.id in ("Exception", "BaseException")
    )


def _uses(node: ast.AST, name: str | None) -> bool:
    return name is not None and any(
        isinstance(each, ast.Name) and each.id == name for each in ast.walk(node)
    )


def _uses_anywhere(handler: ast.ExceptHandler, but: ast.stmt) -> bool:
    """The caught exception is shown or looked at by another statement of the handler."""
    others = [each for each in handler.body if each is not but]
    text = " ".join(ast.unparse(each) for each in others)
    return any(_uses(each, handler.name) for each in others) or "exc_info" in text


def _only_logs(statement: ast.stmt) -> bool:
    if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)):
        return False
    func = statement.value.func
    name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
    return name in _LOGS


def _bound_by(statements: list[ast.stmt]) -> set[str]:
    return {
        each.id
        for statement in statements
        for each in ast.walk(statement)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }


def _bound_before(module: Module, tried: ast.Try) -> set[str]:
    function = module.function_of(tried)
    names: set[str] = set()
    if function is not None:
        arguments = function.args
        names = {each.arg for each in (*arguments.args, *arguments.kwonlyargs)}
        for node in module.nodes(ast.Name, function):
            if isinstance(node.ctx, ast.Store) and node.lineno < tried.lineno:
                names.add(node.id)
    return names | {name for each in module.nodes(ast.Global) for name in each.names}


def _bound_again(module: Module, tried: ast.Try, use: ast.Name) -> bool:
    """Something between the `try` and the use binds the name after all."""
    if tried.orelse and any(use is each for node in tried.orelse for each in ast.walk(node)):
        return True
    return any(
        node.id == use.id and isinstance(node.ctx, ast.Store) and node.lineno <= use.lineno
        for node in module.later(tried, ast.Name)
    )
