"""Edits of a program that several rules offer."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from tensortrail.findings import Edit, Fix, Safety, Site
from tensortrail.rules.shared.buffers import registration
from tensortrail.rules.shared.objects import all_given
from tensortrail.rules.timeline import Timeline
from tensortrail.rules.view import Module


def statement_at(tree: ast.Module, line: int) -> ast.stmt | None:
    """The innermost statement over that line that holds no others."""
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt)
        and not hasattr(node, "body")
        and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    return max(around, key=lambda node: (node.lineno, node.col_offset), default=None)


def statement_of(timeline: Timeline, site: Site | None) -> ast.stmt | None:
    """That statement of the program that ran, if its source is known."""
    tree = timeline.tree(site.file) if site is not None else None
    return statement_at(tree, site.line) if tree is not None and site is not None else None


def edited(timeline: Timeline, text: str, *edits: Edit | None) -> Fix:
    """The fix with these edits; as advice alone where one is missing, or the file would not parse
    with them."""
    known = [each for each in edits if each is not None]
    fix = timeline.fix(text, Safety.UNSAFE, *known) if len(known) == len(edits) else None
    return fix or Fix(text, Safety.DISPLAY, ())


def called_before(timeline: Timeline, site: Site | None, method: str, text: str) -> Edit | None:
    """`x.detach().numpy()` for the only `x.numpy()` of the statement."""
    statement = statement_of(timeline, site)
    owners = [
        node.func.value
        for node in (ast.walk(statement) if statement else ())
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == method
    ]
    if site is None or len(owners) != 1:
        return None
    owner = owners[0]
    return timeline.replace(site.file, owner, source_of(timeline, site.file, owner) + text)


def device_given(module: Module, call: ast.Call, device: str) -> Edit | None:
    """`, device=...` behind the last argument of the call; None if nothing can be put there."""
    return keyword_given(module, call, "device", device)


def keyword_given(module: Module, call: ast.Call, name: str, value: str) -> Edit | None:
    """The same of any keyword."""
    given = all_given(call)
    if not value or not given or isinstance(given[-1], ast.GeneratorExp):
        return None
    return module.insert_after(given[-1], f", {name}={value}")


def line_behind(timeline: Timeline, file: str, statement: ast.stmt, line: str) -> Edit:
    """The line, behind the statement and as far to the right."""
    at = (statement.end_lineno or statement.lineno) + 1
    return timeline.insert(file, at, f"{' ' * statement.col_offset}{line}\n")


def lines_removed(timeline: Timeline, file: str, first: int, last: int) -> Edit:
    """Nothing in the place of whole lines."""
    lines = ast.Constant(value=None)
    lines.lineno, lines.col_offset, lines.end_lineno, lines.end_col_offset = first, 0, last + 1, 0
    return timeline.replace(file, lines, "")


def brought_around(timeline: Timeline, site: Site, parameter: str) -> Fix | None:
    """The statement under `align_module_device(module)`, which brings the module's weights."""
    tree = timeline.tree(site.file)
    statement = statement_at(tree, site.line) if tree else None
    if tree is None or statement is None:
        return None
    module = _owner_in(statement, parameter)
    if not module:
        return None
    indent = " " * statement.col_offset
    lines = source_of(timeline, site.file, statement).splitlines(keepends=True)
    body = "".join(f"{indent}    {each}" if each.strip() else each for each in lines)
    text = f"with align_module_device({module}):\n{body}"
    edits = [
        timeline.replace(site.file, statement, text),
        *_imported(timeline, site.file, tree, "accelerate.utils", "align_module_device"),
    ]
    what = f"load the weights of `{module}` for this statement, or call `{module}` itself"
    return timeline.fix(what, Safety.UNSAFE, *edits)


def source_of(timeline: Timeline, file: str, node: ast.AST) -> str:
    return timeline.replace(file, node, "").site.source


def _owner_in(statement: ast.stmt, parameter: str) -> str:
    """How the statement calls the module that the parameter belongs to."""
    path, _, name = parameter.rpartition(".")
    owners = {
        ast.unparse(node.value)
        for node in ast.walk(statement)
        if isinstance(node, ast.Attribute) and node.attr == name
    }
    inside = path.partition(".")[2]  # the statement may know the model by another name
    fitting = {each for each in owners if each == path or each.endswith(f".{path}")}
    fitting = fitting or {each for each in owners if inside and each.endswith(f".{inside}")}
    chosen = fitting or (owners if len(owners) == 1 else set())
    return chosen.pop() if len(chosen) == 1 else ""


def _imported(
    timeline: Timeline, file: str, tree: ast.Module, module: str, name: str
) -> Iterator[Edit]:
    """The import, behind the last one at the top of the file, unless it is there."""
    imports = [each for each in tree.body if isinstance(each, (ast.Import, ast.ImportFrom))]
    if any(alias.name == name for each in imports for alias in each.names):
        return
    line = (imports[-1].end_lineno or imports[-1].lineno) + 1 if imports else 1
    yield timeline.insert(file, line, f"from {module} import {name}\n")


def registered(
    timeline: Timeline, site: Site, attribute: str, others: Collection[str] = ()
) -> Fix | None:
    """`self.attribute = value` in a constructor of the file, as a buffer; the constructor around
    the line, if there are several. The same statement may assign `others` that are to be buffers
    too."""
    tree = timeline.tree(site.file)
    everywhere = list(_assignments(tree, attribute)) if tree else []
    around = [each for each in everywhere if each[0].lineno <= site.line <= _last(each[0])]
    assigned = around or everywhere
    if len(assigned) != 1:
        return None
    function, statement = assigned[0]
    stored = {ast.unparse(node) for node in ast.walk(statement.targets[0])}
    names = [attribute, *(each for each in others if f"self.{each}" in stored)]
    text = registration(function, statement, names, ast.unparse)
    if text is None:
        return None
    what = " and ".join(f"`{each}`" for each in dict.fromkeys(names))
    told = f"make {what} a buffer, which moves with its module"
    if len(set(names)) > 1:
        told = f"make {what} buffers, which move with their module"
    return timeline.fix(told, Safety.UNSAFE, timeline.replace(site.file, statement, text))


def _assignments(tree: ast.Module, attribute: str) -> Iterator[tuple[ast.FunctionDef, ast.Assign]]:
    """`self.attribute = value` in functions, also as one of several targets."""
    for function in (each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)):
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and _is_of_self(node, attribute):
                yield function, node


def _last(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _is_of_self(node: ast.Assign, attribute: str) -> bool:
    target = node.targets[0]
    targets = target.elts if isinstance(target, ast.Tuple) else [target]
    return len(node.targets) == 1 and f"self.{attribute}" in map(ast.unparse, targets)
