"""What is not text and no tensor, by the code: numbers, lists, None."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.shared.annotations import names_said
from tensortrail.rules.shared.assignments import is_bound_in
from tensortrail.rules.shared.functions import matched, parameters
from tensortrail.rules.shared.objects import called, is_none, keyword
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.view import FunctionNode, Module

_NUMBERS = frozenset("int float bool str len round time.time".split())
_NAMED = frozenset({"int", "float", "bool"})
_METHODS = ("item", "state_dict", "tolist")
_COUNTS = ("range", "enumerate")


def is_no_tensor(module: Module, value: ast.expr) -> bool:
    value = behind(module, value)
    if isinstance(value, ast.Constant):
        return value.value is not None
    if isinstance(value, (ast.JoinedStr, ast.List, ast.Dict)):
        return True
    if not isinstance(value, ast.Call):
        return False
    method = value.func.attr if isinstance(value.func, ast.Attribute) else ""
    return method in _METHODS or module.qualified(value.func) in _NUMBERS


def is_no_text(module: Module, value: ast.expr) -> bool:
    """Of a value of metadata."""
    value = behind(module, value)
    if isinstance(value, ast.Constant):
        return not isinstance(value.value, str)
    if isinstance(value, (ast.JoinedStr, ast.BoolOp)):
        return False
    if isinstance(value, ast.Call) and module.qualified(value.func) == "str":
        return False
    if isinstance(value, ast.Name):
        return _is_numeric_name(module, value)
    if isinstance(value, ast.Attribute):
        return _is_numeric_option(module, value)
    return is_no_tensor(module, value) or isinstance(value, ast.Tuple)


def _is_numeric_name(module: Module, name: ast.Name) -> bool:
    """A parameter that is annotated so, or that each call of the file gives a number; what a loop
    counts."""
    function = module.function_of(name)
    if _is_counted(module, name):
        return True
    given = next((e for e in parameters(function) if e.arg == name.id), None) if function else None
    if function is None or given is None or is_bound_in(module, function, name.id):
        return False
    if given.annotation is not None:
        said = set(names_said(module, given.annotation))
        return bool(said) and said <= _NAMED
    numbers = [_is_number(each) for each in _given_to(module, function, name.id)]
    return bool(numbers) and all(numbers)


def _is_counted(module: Module, name: ast.Name) -> bool:
    for up in module.ancestors(name):
        if isinstance(up, ast.For) and isinstance(up.iter, ast.Call) and called(up.iter) in _COUNTS:
            whole = (
                up.target if called(up.iter) == "range" else getattr(up.target, "elts", [None])[0]
            )
            if isinstance(whole, ast.Name) and whole.id == name.id:
                return True
    return False


def _given_to(module: Module, function: FunctionNode, name: str) -> Iterator[ast.expr]:
    for call in module.calls(function.name):
        yield from (value for parameter, value in matched(function, call) if parameter == name)


def _is_number(value: ast.expr) -> bool:
    number = isinstance(value, ast.Constant) and isinstance(value.value, (int, float))
    return number or is_none(value)


def _is_numeric_option(module: Module, read: ast.Attribute) -> bool:
    """`args.rank` of `add_argument("--rank", type=int)`."""
    added = _added(module, read)
    kind = keyword(added, "type") if added is not None else None
    return kind is not None and module.qualified(kind) in _NAMED


def may_be_none(module: Module, value: ast.expr) -> bool:
    """`args.author` of `add_argument("--author")`, which has no default."""
    read = behind(module, value)
    added = _added(module, read) if isinstance(read, ast.Attribute) else None
    if added is None or not _option(added).startswith("-") or module.guards_of(value):
        return False
    default = keyword(added, "default")
    return keyword(added, "required") is None and (default is None or is_none(default))


def _added(module: Module, read: ast.Attribute) -> ast.Call | None:
    """What gave the program this option, if it is the only one that does and takes one value."""
    if module.value_of(read.value).cls != "argparse.Namespace":
        return None
    found = [each for each in module.calls("add_argument") if _destination(each) == read.attr]
    takes_one = len(found) == 1 and not any(e.arg in ("action", "nargs") for e in found[0].keywords)
    return found[0] if takes_one else None


def _option(added: ast.Call) -> str:
    """Its first long name."""
    texts = [str(each.value) for each in added.args if isinstance(each, ast.Constant)]
    return next((each for each in texts if each.startswith("--")), texts[0] if texts else "")


def _destination(added: ast.Call) -> str:
    said = keyword(added, "dest")
    named = said.value if isinstance(said, ast.Constant) else _option(added)
    return str(named).lstrip("-").replace("-", "_")
