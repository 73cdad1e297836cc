"""A key that a dict lacks, and has with a name before it."""

from __future__ import annotations

from traceback import walk_tb
from typing import Any

from tensortrail.tracer.identity.assignments import assignment
from tensortrail.tracer.identity.sites import OWNERS, USER
from tensortrail.tracer.identity.storages import Storages
from tensortrail.tracer.identity.variables import variables

MOST_KEYS = 20_000


def lacked_key(error: BaseException, _: Storages) -> dict[str, Any] | None:
    """What the innermost function of the program, which raised it, has of such a dict."""
    key = error.args[0] if isinstance(error, KeyError) and error.args else None
    steps = list(walk_tb(error.__traceback__))
    if type(key) is not str or not steps or OWNERS[steps[-1][0].f_code.co_filename] != USER:
        return None
    frame, line = steps[-1]
    for name, value in {**frame.f_globals, **variables(frame)}.items():
        prefix = _prefix(value, key) if isinstance(value, dict) and name[:1] != "_" else ""
        if prefix:
            made = assignment(frame, name, line)
            at = [frame.f_code.co_filename, made.lineno] if made is not None else []
            return {"lacks key": key, "prefix": prefix, "of": name, "made": at}
    return None


def _prefix(held: dict[Any, Any], key: str) -> str:
    """`module` where it has `module.weight` for `weight`, and the same before all its keys."""
    keys = [each for each in list(dict.keys(held))[:MOST_KEYS] if type(each) is str]
    ending = f".{key}"
    found = [each[: -len(ending)] for each in keys if each.endswith(ending)]
    if len(found) != 1:
        return ""
    return found[0] if all(each.startswith(f"{found[0]}.") for each in keys) else ""
