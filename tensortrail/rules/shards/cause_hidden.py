from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.findings import Confidence, Edit, Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Did, Good, Module, Near, Rule, Timeline
from tensortrail.rules.shards._call import filled_with_dicts, keep_whole, one_file
from tensortrail.rules.shards._handlers import (
    free_name,
    groups_cut_before,
    is_broad,
    only_logs,
    uses_anywhere,
    uses_name,
    work_in,
)
from tensortrail.rules.shards._saving import KEEP_GROUPS_WHOLE
from tensortrail.rules.shards._unbound import used_unbound
from tensortrail.rules.shared.sentences import one_line

_CLAIMS = re.compile(r"because|due to|not support|unsupported|could not|try |failed to", re.I)
_ONLY_FAILED = re.compile(r"could not|failed to", re.I)
"""True of every failure: what the caller does not see is the reason."""
_BROAD = (
    rb"\s+except(?: \(?(?:\w+, *)*(?:Exception|BaseException)(?:, *\w+)*,?\)?)?"
    rb"(?: as \w+)?:[^\n]*\n"
)
_RAISES = re.compile(
    _BROAD + rb"(?:[^\n]*\n){0,8}?\s*raise \w+[\w.]*\((?:[^\n]*\n){0,6}?[^\n]*"
    rb"(?i:because|due to|not support|unsupported|could not|try |failed to)"
)
_LOGGED = re.compile(
    rb"\s+try:[^\n]*\n(?:[^\n]*\n){0,14}?[^\n]*(?:revert|convert|conversion|compile|interpret|load|"
    rb"save|quantize|refit|materialize|shard|build_serialized)\w*\([\s\S]*?"
    + _BROAD
    + rb"\s*(?:(?:#|import |from )[^\n]*\n\s*)*[\w.]*"
    rb"(?:pass\b|(?:error|warning|warn|exception|info|debug|critical|print|print_exc)\()"
)
_LONGEST = 1500
"""Bytes of a `try` that the triggers can see whole."""


class CauseHidden(Rule):
    """A broad `except` around conversion, compiling or saving hides the real error.

    ## What it does
    In code, reports `except Exception` around work that converts, moves, compiles or saves weights,
    if the handler

    - raises a fixed explanation without the exception that it caught;
    - only logs, and the code goes on to use a name that the failed `try` never bound.

    Reported as a note: a message that names no reason and only says that it failed ("could not load
    the model").

    Not reported: a handler that claims no cause of its own. Python keeps the first exception as its
    context.

    In a recorded run, reports the exception that stopped `save_pretrained` of transformers.

    ## Why is this bad?
    Users follow a wrong explanation ("because of offloading", "not supported", "try a smaller
    ..."): they change shard sizes for a `ValueError` in a line of bookkeeping. If only the last
    message is logged or sent on, the real one is lost. Where the code goes on, it fails with an
    `UnboundLocalError` that does not mention the cause.

    ## What you may see
    ```
    RuntimeError: We could not revert some weight conversions because of offlading
    ```

    ## Fix safety
    Unsafe: `from error` only sets the cause that is shown, but the file is one that saves or
    converts, and a bare `except:` becomes `except BaseException`. Where the code goes on after
    logging, no fix is offered.

    ## References
    - huggingface/transformers issue 47333
    - pytorch/TensorRT pull request 4089
    """

    code = "SHD404"
    name = "cause-hidden"
    since = "0.2.0"
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
def load(path):
    try:
        picture = open_picture(path)
        picture = convert_picture(picture)
    except Exception as error:
        print(path, error)
    return picture
"""
        ),
        Good(
            """\
def load(path):
    picture = open_picture(path)
    try:
        picture = picture.convert("RGBA")
    except Exception:
        raise ValueError("could not convert the picture, try another one")
    return picture
"""
        ),
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
            work = work_in(module, tried)
            if work is None or module.function_of(tried) is None:
                continue
            for handler in tried.handlers:
                if is_broad(handler):
                    yield from self._other_cause(module, work, handler)
                    yield from self._goes_on(module, tried, work, handler)

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for event in timeline.events(Did.HOOK):
            raised, hidden = event.facts.get("raised"), event.facts.get("hidden")
            if isinstance(raised, dict) and isinstance(hidden, dict):
                yield self.finding_in_run(
                    timeline,
                    event,
                    f"This save was stopped by {hidden.get('type')} in "
                    f"`{event.facts.get('within')}`: {hidden.get('message')}. The "
                    f"{raised.get('type')} that was raised instead has the same text for every "
                    "failure",
                    confidence=Confidence.HIGH,
                    settings=one_file(timeline, event)
                    if filled_with_dicts(event)
                    else keep_whole(timeline, event, groups_cut_before(timeline, event)),
                    evidence={
                        "raised": f"{raised.get('type')}: {raised.get('message')}",
                        "from": str(event.facts.get("at", "")),
                    },
                )

    def _other_cause(
        self, module: Module, work: ast.Call, handler: ast.ExceptHandler
    ) -> Iterator[Finding]:
        for statement in handler.body:
            if not isinstance(statement, ast.Raise) or statement.cause is not None:
                continue
            raised = statement.exc
            if not isinstance(raised, ast.Call) or uses_name(raised, handler.name):
                continue
            text = " ".join(
                each.value
                for each in ast.walk(raised)
                if isinstance(each, ast.Constant) and isinstance(each.value, str)
            )
            if not _CLAIMS.search(text) or uses_anywhere(handler, statement):
                continue
            yield self.finding(
                module,
                statement,
                f"whatever fails in `{one_line(module, work.func)}` is reported as this one cause",
                severity=None if _CLAIMS.search(_ONLY_FAILED.sub("", text)) else Severity.NOTE,
                trail=[(work, "the work that may fail for any reason")],
                fixes=[self._chained(module, handler, statement)],
                settings=KEEP_GROUPS_WHOLE if "max_shard_size" in text else (),
            )

    def _chained(
        self, module: Module, handler: ast.ExceptHandler, statement: ast.Raise
    ) -> Fix | None:
        name = handler.name or free_name(module, handler)
        edits = [module.insert_after(statement, f" from {name}")]
        if handler.type is None:
            if module.text(handler).partition("\n")[0].rstrip() != "except:":
                return None
            head = module.site(handler)
            edits.append(Edit(head, f"except BaseException as {name}:"))
        elif handler.name is None:
            edits.append(module.insert_after(handler.type, f" as {name}"))
        return module.fix("keep the cause", Safety.UNSAFE, *edits)

    def _goes_on(
        self, module: Module, tried: ast.Try, work: ast.Call, handler: ast.ExceptHandler
    ) -> Iterator[Finding]:
        if len(module.text(tried)) > _LONGEST:
            return
        if not all(only_logs(statement) for statement in handler.body):
            return
        missing = used_unbound(module, tried, work)
        if missing is None:
            return
        yield self.finding(
            module,
            handler,
            f"after a failure of `{one_line(module, work.func)}`, the code goes on, but "
            f"`{missing.id}` is not assigned",
            severity=Severity.ERROR,
            trail=[
                (work, "the work that may fail"),
                (missing, f"`{missing.id}` is used here: UnboundLocalError hides the cause"),
            ],
        )
