"""What the arguments of a program are, by what `argparse` was told to make of them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from tensortrail.rules.words import UNKNOWN_VALUE, Kind, Value

NAMESPACE = "argparse.Namespace"
NAMESPACE_VALUE = Value(frozenset({Kind.OTHER}), cls=NAMESPACE)


def parsed_argument(
    added: Sequence[ast.Call], name: str, qualified: Callable[[ast.AST], str]
) -> Value:
    """`args.device` is a device after `add_argument("--device", type=torch.device)`, and a text if
    no type is said; a default that is a text goes through the same type."""
    types = [_type_of(call, qualified) for call in added if _destination(call) == name]
    if types and all(each == "torch.device" for each in types):
        return Value(frozenset({Kind.DEVICE}))
    if types and "device" in name and all(each == "str" for each in types):
        return Value(frozenset({Kind.DEVICE_STRING}))
    return UNKNOWN_VALUE


def _type_of(call: ast.Call, qualified: Callable[[ast.AST], str]) -> str:
    several = any(each.arg in ("nargs", "action") for each in call.keywords)
    given = [each.value for each in call.keywords if each.arg == "type"]
    if several:
        return ""
    return qualified(given[0]) if given else "str"


def _destination(call: ast.Call) -> str:
    """The name under which the argument is kept: `dest`, else of its first long option."""
    said = [each.value for each in call.keywords if each.arg == "dest"] or call.args
    texts = [str(each.value) for each in said if isinstance(each, ast.Constant)]
    long = [each for each in texts if each.startswith("--")] or texts
    return long[0].lstrip("-").replace("-", "_") if long else ""
