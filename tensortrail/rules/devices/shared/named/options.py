"""Options of a command line that say a device, and that nothing reads."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.shared.functions import called_here, matched
from tensortrail.rules.view import FunctionNode, Module


def unread_options(module: Module) -> Iterator[ast.Call]:
    """`parser.add_argument("--device")`, where the file uses what was parsed only for other
    attributes, also in functions of the file that it is passed to."""
    options = [each for each in module.calls("add_argument") if _name_of(each)]
    read = _attributes_read(module, _parsed(module)) if options else None
    if read is not None:
        yield from (option for option in options if _name_of(option) not in read)


def _name_of(option: ast.Call) -> str:
    """`device` of `add_argument("--device", ...)`, if it says a device."""
    said = option.args[-1] if option.args else None
    text = said.value if isinstance(said, ast.Constant) else None
    if not isinstance(text, str) or any(each.arg == "dest" for each in option.keywords):
        return ""
    name = text.lstrip("-").replace("-", "_")
    return name if name == "device" or name.endswith("_device") else ""


def _parsed(module: Module) -> set[str]:
    """Names that hold what was parsed; empty if something else may hold it."""
    found: set[str] = set()
    for call in module.calls("parse_args", "parse_known_args"):
        above = module.parent(call)
        target = above.targets[0] if isinstance(above, ast.Assign) else None
        if isinstance(target, ast.Tuple) and target.elts:
            target = target.elts[0]
        if not isinstance(target, ast.Name):
            return set()
        found.add(target.id)
    return found


def _attributes_read(module: Module, names: set[str]) -> set[str] | None:
    """None if nothing was parsed, or what was parsed is returned, unpacked, asked by name, or
    passed to other code."""
    read: set[str] = set()
    asked: list[tuple[str, FunctionNode | None]] = [(name, None) for name in sorted(names)]
    for name, inside in asked:
        for use in module.uses(name, inside):
            above = module.parent(use)
            if isinstance(above, ast.keyword):
                above = module.parent(above)
            taken = _taken_as(module, above, use) if isinstance(above, ast.Call) else None
            if isinstance(above, ast.Attribute):
                read.add(above.attr)
            elif taken is not None:
                asked += [taken] if taken not in asked else []
            elif isinstance(use.ctx, ast.Load):
                return None
    return read if names else None


def _taken_as(
    module: Module, call: ast.Call, given: ast.Name
) -> tuple[str, FunctionNode | None] | None:
    """The parameter of a function of the file."""
    function = called_here(module, call)
    passed = matched(function, call) if function is not None else ()
    return next(((name, function) for name, each in passed if each is given), None)
