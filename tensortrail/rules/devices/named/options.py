"""Options of a command line that say a device, and that nothing reads."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.view import Module


def unread_options(module: Module) -> Iterator[ast.Call]:
    """`parser.add_argument("--device")`, where the file uses what was parsed only for other
    attributes."""
    options = [each for each in module.calls("add_argument") if _name_of(each)]
    names = _parsed(module) if options else set()
    reads = [module.parent(each) for each in _reads(module, names)]
    read = {each.attr for each in reads if isinstance(each, ast.Attribute)}
    if not names or not all(isinstance(each, ast.Attribute) for each in reads):
        return  # it is passed on, returned, unpacked or asked by name
    for option in options:
        if _name_of(option) not in read:
            yield option


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


def _reads(module: Module, names: set[str]) -> Iterator[ast.Name]:
    for name in sorted(names):
        yield from (each for each in module.uses(name) if isinstance(each.ctx, ast.Load))
